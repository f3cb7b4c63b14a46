"""PageRank against a dense linear solve, networkx, and the closed form of a star."""

import networkx as nx
import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nodepiece.graph.adjacency import Adjacency, build_adjacency
from nodepiece.graph.arrays import FloatArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.pagerank import pagerank

THREADS = min(2, numba.get_num_threads())


def random_graph(num_nodes: int, num_triples: int, seed: int) -> KnowledgeGraph:
    """A multigraph with loops; where there are few triples, some nodes have no edge at all."""
    rng = np.random.default_rng(seed)
    triples = rng.integers((num_nodes, 3, num_nodes), size=(num_triples, 3))
    return KnowledgeGraph(triples.astype(np.int32), num_nodes, 3)


def solve(graph: KnowledgeGraph, damping: float) -> FloatArray:
    """rank = (1 - damping) / N + damping * steps.T @ rank, solved as a dense system."""
    steps = np.zeros((graph.num_nodes, graph.num_nodes))
    for head, _, tail in graph.triples:
        steps[head, tail] += 1
        steps[tail, head] += 1
    steps[steps.sum(axis=1) == 0] = 1  # without edges: to anywhere
    steps /= steps.sum(axis=1, keepdims=True)
    jump = np.full(graph.num_nodes, (1 - damping) / graph.num_nodes)
    return np.linalg.solve(np.eye(graph.num_nodes) - damping * steps.T, jump)


@settings(max_examples=100, deadline=None)
@given(
    num_nodes=st.integers(1, 40),
    num_triples=st.integers(0, 80),
    seed=st.integers(0, 2**32 - 1),
    damping=st.sampled_from([0.0, 0.5, 0.85, 0.95]),
)
@example(
    num_nodes=2, num_triples=10, seed=10, damping=0.5
)  # two steps agree by accident on the way
def test_pagerank_solves_its_linear_system(
    num_nodes: int, num_triples: int, seed: int, damping: float
) -> None:
    graph = random_graph(num_nodes, num_triples, seed)
    rank = pagerank(build_adjacency(graph), damping=damping, tolerance=1e-12, max_iterations=1000)
    np.testing.assert_allclose(rank, solve(graph, damping), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_pagerank_agrees_with_networkx_on_the_graph_with_inverses(seed: int) -> None:
    graph = random_graph(200, 220, seed)
    reference = nx.MultiDiGraph()
    reference.add_nodes_from(range(200))
    reference.add_edges_from((int(head), int(tail)) for head, _, tail in graph.triples)
    reference.add_edges_from((int(tail), int(head)) for head, _, tail in graph.triples)
    expected = nx.pagerank(reference, alpha=0.85, tol=1e-12, max_iter=1000)
    rank = pagerank(build_adjacency(graph))
    np.testing.assert_allclose(rank, [expected[node] for node in range(200)], atol=1e-7)


def star(num_leaves: int) -> Adjacency:
    leaves = np.arange(1, num_leaves + 1, dtype=np.int32)
    triples = np.stack([0 * leaves, 0 * leaves, leaves], axis=1)
    return build_adjacency(KnowledgeGraph(triples, num_leaves + 1, 1))


def test_a_hub_of_degree_300_000_has_the_rank_of_the_closed_form() -> None:
    # hub = (1 - d) / N + d * n * leaf and leaf = (1 - d) / N + d * hub / n, with N = n + 1
    n, d = 300_000, 0.85
    hub = (1 + d * n) / ((n + 1) * (1 + d))
    leaf = (1 - hub) / n
    rank = pagerank(star(n), tolerance=1e-10)
    assert rank[0] == pytest.approx(hub, rel=1e-9)
    np.testing.assert_allclose(rank[1:], leaf, rtol=1e-9)
    assert rank.sum() == pytest.approx(1, abs=1e-12)
    assert pagerank(star(n))[0] == pytest.approx(hub, rel=1e-7)  # with the default tolerance


def test_one_and_two_threads_give_the_same_bytes() -> None:
    adjacency = build_adjacency(random_graph(3000, 9000, seed=1))
    alone = pagerank(adjacency)
    numba.set_num_threads(THREADS)
    together = pagerank(adjacency)
    numba.set_num_threads(1)
    assert together.tobytes() == alone.tobytes()


def test_a_graph_without_nodes_or_without_edges() -> None:
    nothing = np.empty((0, 3), dtype=np.int32)
    assert pagerank(build_adjacency(KnowledgeGraph(nothing, 0, 0))).shape == (0,)
    np.testing.assert_allclose(pagerank(build_adjacency(KnowledgeGraph(nothing, 4, 0))), 0.25)
