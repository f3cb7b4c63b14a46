"""The edges that walks reach, against all walks of larger graphs, enumerated one by one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nodepiece.decoders.path_scorers import PathGraph
from nodepiece.decoders.reached_edges import IN_ORDER, cut_out, reached_edges
from nodepiece.decoders.walk_paths import best_walks, flows
from nodepiece.decoders.walks import DAMPING, Walks, WalkSettings
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses

NUM_RELATIONS, DIM, TOP = 3, 4, 7
some_settings = st.builds(
    WalkSettings,
    steps=st.integers(1, 3),
    plain_steps=st.integers(0, 3),
    max_degree=st.integers(0, 9),
)


@dataclass(frozen=True, eq=False)
class Case:
    """A random graph some of whose facts are hidden, and a query with its answer."""

    graph: PathGraph
    head: int
    tail: int

    @property
    def edges(self) -> list[list[int]]:
        """Target, relation, source of each edge, in the order of the edge index."""
        index = self.graph.edge_index
        return index.edges[index.order].tolist()


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_nodes = draw(st.integers(2, 60))
    facts = rng.integers(0, [num_nodes, NUM_RELATIONS, num_nodes], (draw(st.integers(1, 120)), 3))
    graph = KnowledgeGraph(np.unique(facts, axis=0).astype(np.int32), num_nodes, NUM_RELATIONS)
    edges = torch.tensor(with_inverses(graph))
    index = EdgeIndex(edges, num_nodes, 2 * NUM_RELATIONS)
    if draw(st.booleans()):
        index = replace(index, sorted_by="target")
    mask = None
    if draw(st.booleans()):
        shown = rng.random(graph.num_triples) > draw(st.sampled_from([0.0, 0.1, 0.6]))
        mask = torch.from_numpy(np.tile(shown, 2)).float()[index.order]
    vectors = torch.randn(2 * NUM_RELATIONS, DIM, generator=torch.manual_seed(0))
    head, tail = rng.integers(0, num_nodes, 2).tolist()
    return Case(PathGraph(index, vectors, mask), head, tail)


def all_walks(case: Case, length: int) -> Iterator[tuple[int, ...]]:
    """Every sequence of edges from the head to the tail."""
    edges, visible = case.edges, case.graph.visible()
    leaving: list[list[int]] = [[] for _ in range(case.graph.num_nodes)]
    for place, (_, _, source) in enumerate(edges):
        if visible[place]:
            leaving[source].append(place)

    def follow(node: int, walk: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if walk and node == case.tail:
            yield walk
        if len(walk) < length:
            for place in leaving[node]:
                yield from follow(edges[place][0], (*walk, place))

    if case.head != case.tail:
        yield from follow(case.head, ())


def probabilities(case: Case, walks: Walks, walk: tuple[int, ...]) -> tuple[float, float]:
    """Of one walk, with preferences and the weight of its length, and without preferences."""
    edges, visible = case.edges, case.graph.visible()
    preferences, mix = walks.step_weights(case.graph.relations[:1], case.graph.relations)
    liked, plain = 1.0, 1 - DAMPING
    max_degree = walks.settings.max_degree or len(edges)
    for step, place in enumerate(walk):
        _, relation, source = edges[place]
        degree = sum(float(visible[other]) for other, edge in enumerate(edges) if edge[2] == source)
        plain *= DAMPING / degree
        liked *= float(preferences[step, relation, 0]) / degree if step < len(mix) else 0.0
        if degree > max_degree and (step > 0 or len(walk) > 1):
            liked = 0.0  # walks with preferences end at hubs, and take one step from them
    liked *= float(mix[len(walk) - 1, 0]) if len(walk) <= len(mix) else 0.0
    return liked, plain if len(walk) <= walks.plain_steps else 0.0


@settings(max_examples=60, deadline=None)
@given(cases(), some_settings)
def test_paths_flows_and_totals_are_those_of_all_walks(case: Case, chosen: WalkSettings) -> None:
    walks = Walks(DIM, chosen, generator=torch.manual_seed(1)).eval()
    with torch.no_grad():
        found, terms = best_walks(walks, case.head, 0, case.tail, case.graph, top=TOP)
        each = {
            walk: probabilities(case, walks, walk)
            for walk in all_walks(case, max(chosen.steps, chosen.plain_steps))
        }
    liked, plain = (sum(values) for values in zip((0.0, 0.0), *each.values(), strict=True))
    assert (terms.probability, terms.chance) == pytest.approx((liked, plain), rel=1e-5)
    scores = {walk: np.dot(terms.rates, both) for walk, both in each.items()}
    best = sorted((score for score in scores.values() if score), key=abs, reverse=True)[:TOP]
    assert [path.score for path in found.paths] == pytest.approx(best, rel=1e-5)
    assert all(path.score == pytest.approx(scores[path.edges]) for path in found.paths)
    expected = np.zeros((2, len(case.edges)))
    for walk, both in each.items():
        for edge in walk:
            expected[:, edge] += both
    along_edges = np.zeros_like(expected)
    along_edges[:, terms.reached.edges] = flows(terms)
    if case.head != case.tail:
        np.testing.assert_allclose(along_edges, expected, rtol=1e-5, atol=1e-14)


def a_long_path(num_nodes: int) -> KnowledgeGraph:
    """0 - 1 - 2 - ..."""
    facts = np.array([(node, 0, node + 1) for node in range(num_nodes - 1)], np.int32)
    return KnowledgeGraph(facts, num_nodes, 1)


def test_only_what_walks_reach_is_cut_out() -> None:
    edges = torch.tensor(with_inverses(a_long_path(1000)))
    graph = PathGraph(EdgeIndex(edges, 1000, 2), torch.zeros(2, DIM))
    reached = reached_edges(graph, 500, 503, 3, 0)
    assert reached.num_nodes == 6  # 498 to 503
    followed = edges[reached.edges].tolist()  # target, relation, source
    assert {(source, target) for target, _, source in followed} == {
        *((500, 499), (500, 501), (499, 498), (499, 500), (501, 500), (501, 502), (502, 503)),
    }
    hidden = torch.ones(len(edges))
    hidden[[502, 502 + 999]] = 0.0
    assert reached_edges(replace(graph, mask=hidden), 500, 503, 3, 0).tail == -1


def test_edges_without_ids_are_positions_in_the_rows() -> None:
    adjacency = build_adjacency(a_long_path(5))  # rows of 1, 2, 2, 2, 1 edges
    rows = adjacency.offsets, adjacency.neighbours, adjacency.relations
    reached = cut_out(rows, IN_ORDER, (0, 2), 2)
    assert reached.edges.tolist() == [0, 2]
    assert reached.tail == 2 and reached.num_steps == 2
