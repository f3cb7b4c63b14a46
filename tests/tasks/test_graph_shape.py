"""The shape of a graph, and what follows from it for memory."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.settings import load_experiment
from nodepiece.tasks.graph_shape import hops_to_reach, shape_of
from nodepiece.tasks.memory_estimate import Sizes, step_bytes


def graph_of(edges: list[tuple[int, int]], num_nodes: int) -> KnowledgeGraph:
    return KnowledgeGraph(np.array([(a, 0, b) for a, b in edges], np.int32), num_nodes, 1)


RING = graph_of([(n, (n + 1) % 500) for n in range(500)], 500)
STAR = graph_of([(0, n) for n in range(1, 500)], 500)


@pytest.mark.parametrize(("graph", "hops"), [(RING, 10), (STAR, 2)])
def test_hops_until_some_nodes_are_reached(graph: KnowledgeGraph, hops: int) -> None:
    assert hops_to_reach(graph, 20, rng=np.random.default_rng(0)) == hops


def test_hops_are_those_of_a_breadth_first_search() -> None:
    rng = np.random.default_rng(1)
    edges = rng.integers(200, size=(260, 2))
    found = hops_to_reach(graph_of(edges.tolist(), 200), 60, rng=np.random.default_rng(2))
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
