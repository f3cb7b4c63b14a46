"""One set of weights over any graph, on five people: hidden edges, walks, unseen relations."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from nodepiece.decoders.inductive_model import InductiveModel
from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.decoders.path_scorers import PathGraph
from nodepiece.decoders.walks import LOG_FLOOR, PLAIN_FLOOR, Walks, WalkSettings
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.graph_view import GraphView, tokenize_by_relations
from nodepiece.encoders.mlp import MLPEncoder
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.encoders.pieces import count_pieces
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.tokenizer.settings import TokenizerSettings

# 0 --a--> 1 --a--> 2, 0 --a--> 3, 3 --b--> 4, 4 --b--> 0
FACTS = np.array([[0, 0, 1], [1, 0, 2], [0, 0, 3], [3, 1, 4], [4, 1, 0]])
GRAPH = KnowledgeGraph(FACTS, 5, 2)
SETTINGS = TokenizerSettings(anchors_per_node=0, relations_per_node=3)
DIM = 8


def model(kind: str = "mlp", *, walk_steps: int = 0, layers: int = 2) -> InductiveModel:
    table = tokenize_by_relations(GRAPH, SETTINGS, 2, rng=np.random.default_rng(0))
    made = InductiveModel(
        count_pieces(table),
        EncoderSettings(kind, DIM, 16, layers=1, heads=2),
        GraphLayerSettings(kind="compgcn", layers=layers, attention_heads=2),
        DecoderSettings("distmult"),
        (WalkSettings(walk_steps, plain_steps=2),),
        generator=torch.Generator().manual_seed(0),
    )
    return made.eval()


def view(made: InductiveModel, graph: KnowledgeGraph = GRAPH) -> GraphView:
    table = tokenize_by_relations(graph, SETTINGS, 2, rng=np.random.default_rng(0))
    return made.view(graph, table)


@pytest.mark.parametrize("kind", ["mlp", "transformer", "gated-sum"])
@pytest.mark.parametrize("walk_steps", [0, 2])
def test_hidden_facts_are_as_if_they_were_not_there(kind: str, walk_steps: int) -> None:
    made = model(kind, walk_steps=walk_steps)
    whole = view(made)
    mask = torch.ones(2 * len(FACTS))
    mask[[2, 7, 4, 9]] = 0  # 0 --a--> 3, 4 --b--> 0, and their inverses
    without = view(made, KnowledgeGraph(FACTS[[0, 1, 3]], 5, 2))

    found = made.encode(whole, mask)
    expected = made.encode(without)

    torch.testing.assert_close(found.nodes, expected.nodes)
    heads, relations = torch.tensor([0, 3]), torch.tensor([0, 3])
    scores = [made.score_all_tails(heads, relations, graph) for graph in (found, expected)]
    torch.testing.assert_close(*scores)
    parameters = list(made.parameters())
    slopes = torch.arange(scores[0].numel()).cos().view_as(scores[0])
    gradients = [
        torch.autograd.grad((each * slopes).sum(), parameters, allow_unused=True) for each in scores
    ]
    torch.testing.assert_close(*gradients)


def test_another_graph_needs_no_other_weights_and_its_node_ids_mean_nothing() -> None:
    made = model(walk_steps=2)
    order = np.array([3, 1, 4, 0, 2])  # node n is now called order[n]
    moved = FACTS.copy()
    moved[:, 0], moved[:, 2] = order[FACTS[:, 0]], order[FACTS[:, 2]]
    here, there = made.encode(view(made)), made.encode(view(made, KnowledgeGraph(moved, 5, 2)))
    torch.testing.assert_close(there.nodes[torch.tensor(order)], here.nodes)
    scores_here = made.score_all_tails(torch.tensor([0]), torch.tensor([1]), here)
    head = torch.tensor([int(order[0])])
    scores_there = made.score_all_tails(head, torch.tensor([1]), there)
    torch.testing.assert_close(scores_there[:, torch.tensor(order)], scores_here)


def test_walks_of_a_few_queries_at_a_time_are_those_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = model(walk_steps=2)
    graph = made.encode(view(made))
    heads, relations = torch.tensor([0, 3, 4, 1, 2]), torch.tensor([0, 3, 1, 1, 2])
    together = made.score_all_tails(heads, relations, graph)
    monkeypatch.setattr("nodepiece.decoders.walks.WALKS_AT_ONCE", 2)
    with torch.no_grad():
        torch.testing.assert_close(made.score_all_tails(heads, relations, graph), together)


def test_factorized_and_plain_encoders_agree() -> None:
    made = model()
    seen = view(made)
    assert seen.bags is not None
    plain = replace(seen, bags=None)
    torch.testing.assert_close(made.encode(seen).nodes, made.encode(plain).nodes)


def test_unseen_relations_are_the_mean_of_the_seen() -> None:
    """Node 1 has the pieces c and the inverse of a, and c is not known."""
    made = model(layers=0)
    strange = FACTS.copy()
    strange[1, 1] = 2  # 1 --c--> 2
    there = made.encode(view(made, KnowledgeGraph(strange, 5, 3)))
    known = made.tables.relations
    mean, mean_of_inverses = known[:2].mean(dim=0), known[2:].mean(dim=0)
    expected = torch.stack([known[0], known[1], mean, known[2], known[3], mean_of_inverses])
    torch.testing.assert_close(there.relations, expected)
    pieces = torch.cat([mean, known[2], made.tables.relation_padding[0]])
    assert isinstance(made.encoder, MLPEncoder)
    hidden = made.encoder.hidden(pieces).relu()
    torch.testing.assert_close(there.nodes[1], made.encoder.output(hidden))


def test_relations_of_a_graph_are_found_in_a_view() -> None:
    strange = FACTS.copy()
    strange[4, 1] = 4
    seen = view(model(), KnowledgeGraph(strange, 5, 5))  # two known, three more: one unseen
    rows = [seen.relation_row(relation, 5) for relation in range(10)]
    assert rows == [0, 1, 2, 2, 2, 3, 4, 5, 5, 5]
    plain = view(model())
    assert [plain.relation_row(relation, 2) for relation in range(4)] == [0, 1, 2, 3]


def test_anchors_are_refused() -> None:
    counts = replace(
        count_pieces(tokenize_by_relations(GRAPH, SETTINGS, 2, rng=np.random.default_rng(0))),
        anchors_per_node=1,
    )
    with pytest.raises(InputError, match="anchors belong to one graph"):
        InductiveModel(
            counts,
            EncoderSettings(dim=DIM),
            GraphLayerSettings(),
            DecoderSettings(),
            (),
            generator=torch.Generator(),
        )


def plain_chances(head: int, edges: Tensor, num_steps: int) -> Tensor:
    """Of being at each node after some steps, 0.85 times as likely each, and 0 for the head."""
    chance, total = torch.eye(5)[head], torch.zeros(5)
    for _ in range(num_steps):
        after = torch.zeros(5)
        for node, _, neighbour in edges.tolist():
            after[node] += 0.85 * chance[neighbour] / (edges[:, 0] == neighbour).sum()
        chance, total = after, total + after
    total[head] = 0
    return 0.15 * total


@pytest.mark.parametrize("is_hidden", [False, True])
@pytest.mark.parametrize(
    "settings", [WalkSettings(3, counts=False), WalkSettings(3), WalkSettings(1, plain_steps=2)]
)
def test_walks_are_what_a_walker_finds_step_by_step(
    is_hidden: bool, settings: WalkSettings
) -> None:
    generator = torch.Generator().manual_seed(0)
    walks = Walks(DIM, settings, generator=generator)
    relations = torch.randn(4, DIM, generator=generator)
    edges = torch.tensor(with_inverses(GRAPH))
    weight = torch.ones(len(edges))
    if is_hidden:
        weight[[1, 6]] = 0
    heads, asked = torch.tensor([0, 4, 0]), torch.tensor([1, 0, 2])
    graph = PathGraph(EdgeIndex(edges, 5, 4), relations, weight)
    found = walks(heads, asked, graph)

    visible = edges[weight > 0]
    for row, (head, query_relation) in enumerate(zip(heads.tolist(), asked.tolist(), strict=True)):
        query = relations[query_relation]
        chance = torch.zeros(5)
        chance[head] = 1
        reached = torch.zeros(5)
        mix = torch.nn.functional.softplus(walks.mix(query))
        for step in range(settings.steps):
            preference = 2 * (relations @ walks.prefer[step](query) / DIM**0.5).sigmoid()
            after = torch.zeros(5)
            for (
                node,
                relation,
                neighbour,
            ) in visible.tolist():  # from neighbour to node
                degree = (visible[:, 0] == neighbour).sum()
                after[node] += chance[neighbour] * preference[relation] / degree
            chance = after
            reached += mix[step] * chance
        reached[head] = 0
        reach, floor = walks.weigh(query)
        answers, degrees = walks.weigh_counts(query) if walks.weigh_counts else torch.zeros(2)
        expected = (1 + reach) * (reached + (LOG_FLOOR + floor).exp()).log()
        if walks.weigh_plain is not None:
            plain, out = walks.weigh_plain(query)
            chances = plain_chances(head, visible, settings.plain_steps)
            expected += (1 + plain) * (chances + PLAIN_FLOOR).log() + out * (chances == 0)
        for node in range(5):
            around = visible[visible[:, 0] == node]
            is_answer = around[:, 1] == (query_relation + 2) % 4
            expected[node] += answers * is_answer.sum().log1p() + degrees * np.log1p(len(around))
        torch.testing.assert_close(found[row], expected)
