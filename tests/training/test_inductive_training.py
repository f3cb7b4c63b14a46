"""The loss of a batch of facts, each a query of its own, beside adding it up by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.tasks.citizens import EXPERIMENT, experiment, two_worlds

from nodepiece.decoders.inductive_model import InductiveModel
from nodepiece.decoders.walks import WalkSettings
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.settings import Experiment
from nodepiece.tasks.inductive_link_prediction import InductiveLinkPrediction, tokens_of
from nodepiece.training.batches import FactBatches
from nodepiece.training.inductive import loss_of_targets
from nodepiece.training.links import hidden_edges


def model_of(chosen: Experiment) -> InductiveModel:
    task = InductiveLinkPrediction(chosen, two_worlds())
    model = task.build_model(tokens_of(task.graph, chosen))
    model.training_view = model.view(task.graph, tokens_of(task.graph, chosen))
    return model.eval()  # without dropout


@pytest.mark.parametrize("vectors_alone", [0.0, 0.5])
@pytest.mark.parametrize("hide_targets", [False, True])
def test_the_loss_is_that_of_each_fact_in_a_graph_without_the_batch(
    vectors_alone: float, hide_targets: bool
) -> None:
    chosen = experiment(hide_targets=hide_targets, relation_weight=0.25)
    chosen = replace(chosen, walks=WalkSettings(2, vectors_alone=vectors_alone))
    model, generator = model_of(chosen), torch.Generator().manual_seed(0)
    view = model.training_view
    assert view is not None
    edges = torch.tensor(with_inverses(two_worlds().training.train))
    batches = FactBatches(edges, 5)
    batches.start_epoch(generator=generator)
    batch = batches.take(torch.tensor([1]))

    found = loss_of_targets(
        model,
        view,
        batch,
        training=chosen.training,
        one_vs_all=chosen.one_vs_all,
        sampled=chosen.sampled,
        hidden=hidden_edges(edges, view.num_nodes, chosen.training, chosen.one_vs_all),
        generator=generator,
    )

    weight = None
    if hide_targets:
        weight = torch.ones(len(edges))
        weight[batch.edges] = 0
        weight[(batch.edges + len(edges) // 2) % len(edges)] = 0
    graph = model.encode(view, weight)
    expected = []
    for head, relation, tail in edges[batch.edges].tolist():
        asked = torch.tensor([head]), torch.tensor([relation])
        answer = torch.tensor([tail])
        by_all, by_vectors = (
            model.score_all_tails(*asked, graph),
            model.score_by_vectors(*asked, graph),
        )
        of_relation = model.score_all_relations(asked[0], answer, graph)
        expected.append(
            -by_all.log_softmax(dim=1)[0, tail]
            - vectors_alone * by_vectors.log_softmax(dim=1)[0, tail]
            - 0.25 * of_relation.log_softmax(dim=1)[0, relation]
        )
    assert found.item() == pytest.approx(torch.stack(expected).mean().item(), rel=1e-5)


def test_a_batch_names_the_edges_that_its_facts_are() -> None:
    edges = torch.tensor(with_inverses(two_worlds().training.train))
    batches = FactBatches(edges, EXPERIMENT.training.batch_size)
    batches.start_epoch(generator=torch.Generator().manual_seed(0))
    seen = []
    for step in range(batches.num_batches):
        batch = batches.take(torch.tensor([step]))
        facts = torch.stack([batch.heads, batch.relations, batch.tails], dim=1)
        assert torch.equal(edges[batch.edges].long(), facts)
        seen.append(batch.edges)
    assert np.array_equal(np.unique(torch.cat(seen)), np.arange(len(edges)))
