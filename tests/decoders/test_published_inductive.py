"""The inductive model with the settings of the published one, beside a slow model in plain PyTorch.

The slow model follows the published behaviour: [PAD] is zero, attention has the slope 0.1, graph
layers read complex numbers as halves, the decoder and the projection to unit modulus as adjacent
numbers, and the score is the norm of the whole difference.
"""

import numpy as np
import pytest
import torch
from tests.decoders.test_inductive_model import FACTS, GRAPH, SETTINGS
from tests.encoders.slow_compgcn import Edge, slow_compgcn
from torch import Tensor

from nodepiece.decoders.inductive_model import EncodedGraph, InductiveModel
from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.graph_view import GraphView, tokenize_by_relations
from nodepiece.encoders.mlp import MLPEncoder
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.encoders.pieces import count_pieces
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.training.batches import FactBatch
from nodepiece.training.inductive import loss_of_targets
from nodepiece.training.settings import OneVsAllSettings, SampledSettings, TrainingSettings

LAYERS = GraphLayerSettings(
    kind="compgcn", layers=2, attention_heads=2, dropout=0.0, attention_dropout=0.0
)


def published_model(
    dropout: float = 0.0, *, slope: float = 0.1
) -> tuple[InductiveModel, GraphView]:
    table = tokenize_by_relations(GRAPH, SETTINGS, 2, rng=np.random.default_rng(0))
    model = InductiveModel(
        count_pieces(table),
        EncoderSettings("mlp", 8, 16, dropout=dropout, zero_padding=True),
        GraphLayerSettings(**(vars(LAYERS) | {"attention_slope": slope})),
        DecoderSettings("rotate-and-scale", unit_relations=True, adjacent_pairs=True),
        (),
        generator=torch.Generator().manual_seed(0),
    )
    return model, model.view(GRAPH, table)


def slow_scores(model: InductiveModel, view: GraphView, facts: Tensor) -> Tensor:
    """The scores of facts (num_facts, 3), in training mode and without dropout."""
    assert isinstance(model.encoder, MLPEncoder) and model.layers is not None
    relations: Tensor = model.tables.relations
    pieces = torch.cat([relations, torch.zeros(1, 8)])[view.tokens.relations.long()]
    first, second = model.encoder.hidden, model.encoder.output
    hidden = (pieces.flatten(start_dim=1) @ first.weight.T + first.bias).clamp_min(0)
    nodes = hidden @ second.weight.T + second.bias
    edges: list[Edge] = [(h, r, t) for h, r, t in with_inverses(GRAPH).tolist()]
    nodes, relations = slow_compgcn(model.layers, nodes, relations, edges, [1.0] * len(edges))
    head, relation, tail = (
        torch.view_as_complex(rows.view(-1, 4, 2).contiguous())
        for rows in (nodes[facts[:, 0]], relations[facts[:, 1]], nodes[facts[:, 2]])
    )
    return -torch.view_as_real(head * relation - tail).flatten(start_dim=1).norm(dim=1)


def fast_scores(model: InductiveModel, view: GraphView, facts: Tensor) -> Tensor:
    graph = model.encode(view)
    scores = model.score_all_tails(facts[:, 0], facts[:, 1], graph)
    return scores.gather(1, facts[:, 2:])[:, 0]


@pytest.mark.parametrize("slope", [0.1, 0.2])
def test_scores_are_those_of_the_slow_published_model(slope: float) -> None:
    model, view = published_model(slope=slope)
    model.after_step()
    facts = torch.tensor(with_inverses(GRAPH)).long()
    torch.testing.assert_close(
        fast_scores(model, view, facts), slow_scores(model, view, facts), rtol=1e-4, atol=1e-5
    )


def test_adjacent_numbers_of_relations_have_modulus_1_and_halves_do_not() -> None:
    model, _ = published_model()
    with torch.no_grad():
        model.tables.relations.mul_(3)
    model.after_step()
    relations = model.tables.relations.detach()
    torch.testing.assert_close(relations.view(4, 4, 2).norm(dim=2), torch.ones(4, 4))
    assert (relations.view(4, 2, 4).norm(dim=1) - 1).abs().max() > 0.1


def test_zero_padding_is_not_trained() -> None:
    model, view = published_model()
    loss = fast_scores(model, view, torch.tensor([[0, 0, 1]])).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    assert model.tables.relation_padding.grad is None
    assert not model.tables.relation_padding.any()


def test_a_decoder_without_complex_numbers_has_no_pairs() -> None:
    with pytest.raises(InputError, match=r"decoder.adjacent_pairs: distmult has no complex"):
        DecoderSettings("distmult", adjacent_pairs=True)


def loss_of(model: InductiveModel, view: GraphView, *, separate_masks: bool) -> Tensor:
    facts = torch.tensor(FACTS).long()
    heads, relations, tails = facts.T
    batch = FactBatch(heads, relations, tails, torch.arange(len(facts)))
    return loss_of_targets(
        model,
        view,
        batch,
        training=TrainingSettings(loss="self-adversarial"),
        one_vs_all=OneVsAllSettings(),
        sampled=SampledSettings(num_negatives=6, separate_masks=separate_masks),
        hidden=None,
        generator=torch.Generator().manual_seed(0),
    )


def test_separate_masks_encode_facts_and_each_part_of_negatives_by_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, view = published_model(dropout=0.5)
    monkeypatch.setattr("nodepiece.training.inductive.NEGATIVES_IN_A_PASS", 10)  # 2 of each fact
    passes: list[Tensor] = []
    encode = model.encode

    def recorded(view: GraphView, edge_mask: Tensor | None) -> EncodedGraph:
        graph = encode(view, edge_mask)
        passes.append(graph.nodes.detach())
        return graph

    monkeypatch.setattr(model, "encode", recorded)
    loss_of(model, view, separate_masks=True)
    assert len(passes) == 4  # facts, and three parts
    assert all(not torch.equal(passes[0], other) for other in passes[1:])


def test_separate_masks_without_dropout_are_the_same_loss() -> None:
    model, view = published_model()
    losses = [loss_of(model, view, separate_masks=each) for each in (False, True)]
    torch.testing.assert_close(*losses)
