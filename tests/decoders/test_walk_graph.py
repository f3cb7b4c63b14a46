"""Queries about nodes that only they have in their graph."""

import pytest
import torch
from torch import Tensor

from nodepiece.decoders.path_scorers import PathGraph, PathScorer, QueryEdges, ScorerSettings
from nodepiece.decoders.propagation import PropagationSettings
from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.edge_index import EdgeIndex

# 0 --a--> 1 --a--> 2, 0 --a--> 3, 3 --b--> 4, 4 --b--> 0; relations a = 0, b = 1, and inverses 2, 3
FACTS = [[0, 0, 1], [1, 0, 2], [0, 0, 3], [3, 1, 4], [4, 1, 0]]
NEW, NUM_RELATIONS, DIM = 5, 4, 8
# What each query knows of its node: two edges that lead to the same neighbour, four, one, none.
KNOWN = [
    [[NEW, 0, 3], [NEW, 3, 3]],
    [[NEW, 1, 0], [NEW, 2, 1], [NEW, 0, 2], [NEW, 0, 4]],
    [[NEW, 2, 2]],
    [],
]
QUERY_RELATIONS = torch.tensor([1, 0, 2, 3])
SETTINGS = [
    WalkSettings(3),
    WalkSettings(1, plain_steps=4),
    WalkSettings(2, counts=False),
    PropagationSettings(3, dim=4, rank=2),
]


def scorer(settings: ScorerSettings) -> tuple[PathScorer, Tensor]:
    """A scorer, and the relation vectors of the model that it belongs to."""
    generator = torch.Generator().manual_seed(0)
    built = settings.build(NUM_RELATIONS, DIM, generator=generator).double()
    return built, torch.randn(NUM_RELATIONS, DIM, generator=generator).double()


def with_back(edges: list[list[int]]) -> Tensor:
    """(2 * num_edges, 3): the edges, then their inverses."""
    there = torch.tensor(edges, dtype=torch.int64).view(-1, 3)
    head, relation, tail = there.T
    return torch.cat([there, torch.stack([tail, (relation + 2) % 4, head], dim=1)])


def own_edges() -> QueryEdges:
    rows = [with_back(edges) for edges in KNOWN]
    queries = torch.tensor([row for row, edges in enumerate(rows) for _ in edges])
    return QueryEdges(queries, *torch.cat(rows).T)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("at_once", [512, 3])
def test_a_query_with_edges_of_its_own_walks_in_the_graph_that_has_them(
    settings: ScorerSettings, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.decoders.walks.WALKS_AT_ONCE", at_once)
    paths, relations = scorer(settings)
    shared = with_back(FACTS)
    heads = torch.full_like(QUERY_RELATIONS, NEW)
    with torch.no_grad():
        edge_index = EdgeIndex(shared, NEW + 1, NUM_RELATIONS)
        graph = PathGraph(edge_index, relations, query_edges=own_edges())
        found = paths(heads, QUERY_RELATIONS, graph)
        for row, known in enumerate(KNOWN):
            whole = EdgeIndex(torch.cat([shared, with_back(known)]), NEW + 1, NUM_RELATIONS)
            alone = PathGraph(whole, relations)
            expected = paths(heads[:1], QUERY_RELATIONS[row : row + 1], alone)
            torch.testing.assert_close(found[row : row + 1], expected)


@pytest.mark.parametrize("settings", [WalkSettings(3, plain_steps=2), SETTINGS[-1]])
@torch.no_grad()
def test_hidden_edges_are_hidden_from_queries_with_edges_of_their_own(
    settings: ScorerSettings,
) -> None:
    paths, relations = scorer(settings)
    shared, heads = with_back(FACTS), torch.full_like(QUERY_RELATIONS, NEW)
    weight = torch.ones(len(shared), dtype=torch.float64)
    weight[[2, 7]] = 0.0  # 0 --a--> 3
    edge_index = [
        EdgeIndex(edges, NEW + 1, NUM_RELATIONS) for edges in (shared, shared[weight > 0])
    ]
    masked = PathGraph(edge_index[0], relations, weight, own_edges())
    without = PathGraph(edge_index[1], relations, None, own_edges())
    found, expected = (paths(heads, QUERY_RELATIONS, graph) for graph in (masked, without))
    torch.testing.assert_close(found, expected)
