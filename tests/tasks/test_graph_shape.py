"""The shape of a graph, and what follows from it for memory."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from nodepiece.encoders.compressed_rows import rows_by_source
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.settings import load_experiment
from nodepiece.tasks import graph_shape
from nodepiece.tasks.graph_shape import edges_followed, hops_to_reach, shape_of
from nodepiece.tasks.memory_estimate import Sizes, step_bytes


def graph_of(edges: list[tuple[int, int]], num_nodes: int) -> KnowledgeGraph:
    return KnowledgeGraph(np.array([(a, 0, b) for a, b in edges], np.int32), num_nodes, 1)


def rows_of(graph: KnowledgeGraph) -> tuple[LongArray, IntArray]:
    offsets, neighbours, _ = rows_by_source(with_inverses(graph), graph.num_nodes)
    return offsets, neighbours


RING = graph_of([(n, (n + 1) % 500) for n in range(500)], 500)
STAR = graph_of([(0, n) for n in range(1, 500)], 500)


@pytest.mark.parametrize(("graph", "hops"), [(RING, 10), (STAR, 2)])
def test_hops_until_some_nodes_are_reached(graph: KnowledgeGraph, hops: int) -> None:
    assert hops_to_reach(*rows_of(graph), 20, rng=np.random.default_rng(0)) == hops


def test_hops_are_those_of_a_breadth_first_search() -> None:
    rng = np.random.default_rng(1)
    edges = rng.integers(200, size=(260, 2))
    found = hops_to_reach(*rows_of(graph_of(edges.tolist(), 200)), 60, rng=np.random.default_rng(2))
    undirected = nx.Graph(edges.tolist())
    undirected.add_nodes_from(range(200))
    expected = []
    for start in np.random.default_rng(2).integers(200, size=16):
        layers = list(map(len, nx.bfs_layers(undirected, int(start))))
        reached = np.cumsum(layers)
        expected.append(int(np.argmax(reached >= 60)) if reached[-1] >= 60 else len(layers))
    assert found == int(np.median(expected))


def test_long_distances_take_more_memory() -> None:
    assert shape_of(RING).num_hops > 100 > shape_of(STAR).num_hops
    experiment = load_experiment("own-large")
    near = Sizes(num_nodes=1_000_000, num_facts=2_000_000, num_relations=5)
    far = replace(near, num_distances=200)
    assert step_bytes(experiment, far) > step_bytes(experiment, near)


def test_the_edges_that_walks_follow() -> None:
    """Counted by hand: a ring of 500, where a step back reaches nodes again."""
    found = edges_followed(*rows_of(RING), np.array([3, 77], np.int32))
    assert found == (2.0, 2.0 + 4.0, 2.0 + 4.0 + 6.0)  # from 1, 2 and 3 nodes, two edges each


def test_the_edges_of_walks_are_those_of_a_slow_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_shape, "WALK_DEGREE", 6)
    rng = np.random.default_rng(3)
    edges = (40 * rng.random((150, 2)) ** 2).astype(int)  # the first nodes have many
    graph = graph_of(edges.tolist(), 40)
    heads = rng.integers(40, size=30).astype(np.int32)
    neighbours: dict[int, list[int]] = {node: [] for node in range(40)}
    for head, _, tail in with_inverses(graph).tolist():
        neighbours[tail].append(head)
    counts = np.zeros(3)
    for head in heads.tolist():
        level = {head}
        for step in range(3 if len(neighbours[head]) <= 6 else 1):
            ways = [neighbours[node] for node in level if step == 0 or len(neighbours[node]) <= 6]
            counts[step] += sum(map(len, ways))
            level = {node for way in ways for node in way}
    expected = np.cumsum(counts / len(heads))
    assert edges_followed(*rows_of(graph), heads) == pytest.approx(expected)
