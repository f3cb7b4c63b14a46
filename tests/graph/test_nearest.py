"""The k nearest sources against all-pairs shortest paths, which are slow and obvious."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from nodepiece.errors import InputError
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.arrays import FloatArray, IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.nearest import UNREACHED, nearest_sources

SALT, OTHER_SALT = np.uint64(7), np.uint64(2**63 + 11)
THREADS = (1, 2) if numba.get_num_threads() > 1 else (1,)


def graph_of(edges: NDArray[np.integer], num_nodes: int) -> KnowledgeGraph:
    heads, tails = np.asarray(edges, dtype=np.int32).reshape(-1, 2).T
    return KnowledgeGraph(np.stack([heads, 0 * heads, tails], axis=1), num_nodes, 1)


def random_graph(shape: str, num_nodes: int, num_edges: int, seed: int) -> KnowledgeGraph:
    """Sparse graphs fall into parts; a tenth of the edges are loops, a tenth parallel to others."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(num_nodes, size=(num_edges, 2))
    if shape == "hubs":
        edges[:, 0] %= 3
    if shape == "paths":
        edges[:, 1] = np.minimum(edges[:, 0] + 1, num_nodes - 1)
    loops = edges[: num_edges // 10, [0, 0]]
    parallel = edges[: num_edges // 10, ::-1]
    return graph_of(np.concatenate([edges, loops, parallel]), num_nodes)


@st.composite
def graphs(draw: st.DrawFn) -> KnowledgeGraph:
    num_nodes = draw(st.integers(1, 70))
    return random_graph(
        draw(st.sampled_from(["uniform", "hubs", "paths"])),
        num_nodes,
        draw(st.integers(0, 2 * num_nodes)),
        draw(st.integers(0, 2**32 - 1)),
    )


@st.composite
def searches(draw: st.DrawFn) -> tuple[KnowledgeGraph, IntArray, int]:
    """A graph, its sources, and k: 1, all of them, more than there are, or anything between."""
    graph = draw(graphs())
    num_sources = draw(st.integers(1, graph.num_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sources = rng.choice(graph.num_nodes, size=num_sources, replace=False).astype(np.int32)
    k = draw(st.sampled_from([1, num_sources, num_sources + 3]) | st.integers(1, num_sources))
    return graph, sources, k


def true_distances(graph: KnowledgeGraph, sources: IntArray) -> FloatArray:
    """(num_nodes, num_sources), inf where there is no path."""
    heads, _, tails = graph.triples.T
    shape = (graph.num_nodes, graph.num_nodes)
    matrix = csr_array((np.ones(len(heads)), (heads, tails)), shape=shape)
    return shortest_path(matrix, directed=False, unweighted=True, indices=sources).T


def search(
    graph: KnowledgeGraph, sources: IntArray, k: int, salt: np.uint64 | None, threads: int = 1
) -> tuple[IntArray, NDArray[np.int16]]:
    numba.set_num_threads(threads)
    result = nearest_sources(build_adjacency(graph), sources, k, salt=salt)
    numba.set_num_threads(1)
    return result


def k_smallest(distances: FloatArray, k: int) -> tuple[NDArray[np.integer], FloatArray]:
    """Positions and distances of the k nearest, ties to the earlier; both end in UNREACHED."""
    missing = np.full((len(distances), k), np.inf)
    padded = np.concatenate([distances, missing], axis=1)
    order = np.argsort(padded, axis=1, kind="stable")[:, :k]
    nearest = np.take_along_axis(padded, order, axis=1)
    unreached = np.isinf(nearest)
    return np.where(unreached, UNREACHED, order), np.where(unreached, UNREACHED, nearest)


def assert_exact_but_for_ties(
    nearest: IntArray, distance: NDArray[np.int16], truth: FloatArray
) -> None:
    """The distances are the k smallest, and every source is a different one at its distance.

    So every level but the last is there whole, and of the last one some that belong to it.
    """
    np.testing.assert_array_equal(distance, k_smallest(truth, distance.shape[1])[1])
    np.testing.assert_array_equal(nearest == UNREACHED, distance == UNREACHED)
    for node, (sources, hops) in enumerate(zip(nearest, distance, strict=True)):
        reached = sources[sources != UNREACHED]
        assert len(set(reached)) == len(reached)
        np.testing.assert_array_equal(truth[node, reached], hops[: len(reached)])
        pairs = list(zip(hops[: len(reached)], reached, strict=True))
        assert pairs == sorted(pairs)  # nearest first, equidistant ones by position


@settings(max_examples=500, deadline=None)
@given(searches())
def test_global_ties_give_exactly_the_sources_and_distances_of_brute_force(
    case: tuple[KnowledgeGraph, IntArray, int],
) -> None:
    graph, sources, k = case
    expected_nearest, expected_distance = k_smallest(true_distances(graph, sources), k)
    nearest, distance = search(graph, sources, k, None)
    np.testing.assert_array_equal(nearest, expected_nearest)
    np.testing.assert_array_equal(distance, expected_distance)


@settings(max_examples=500, deadline=None)
@given(searches(), st.integers(0, 2**64 - 1))
def test_per_node_ties_give_exact_distances_and_sources_that_are_there(
    case: tuple[KnowledgeGraph, IntArray, int], salt: int
) -> None:
    graph, sources, k = case
    nearest, distance = search(graph, sources, k, np.uint64(salt))
    assert_exact_but_for_ties(nearest, distance, true_distances(graph, sources))


@settings(max_examples=60, deadline=None)
@given(searches(), st.none() | st.integers(0, 2**64 - 1).map(np.uint64))
def test_one_and_two_threads_give_the_same_bytes(
    case: tuple[KnowledgeGraph, IntArray, int], salt: np.uint64 | None
) -> None:
    results = [search(*case, salt, threads) for threads in THREADS]
    for result in results:
        assert [array.tobytes() for array in result] == [array.tobytes() for array in results[0]]


@pytest.mark.parametrize("salt", [None, SALT])
def test_one_and_two_threads_give_the_same_bytes_on_a_larger_graph(salt: np.uint64 | None) -> None:
    graph = random_graph("hubs", 4000, 6000, seed=1)
    sources = np.arange(0, 4000, 40, dtype=np.int32)
    results = [search(graph, sources, 12, salt, threads) for threads in THREADS]
    for result in results:
        assert [array.tobytes() for array in result] == [array.tobytes() for array in results[0]]


@pytest.mark.parametrize("salt", [None, SALT])
@pytest.mark.parametrize("k", [255, 256, 300])
def test_more_sources_a_node_than_a_byte_counts(salt: np.uint64 | None, k: int) -> None:
    graph = random_graph("uniform", 420, 900, seed=2)
    sources = np.random.default_rng(3).permutation(420)[:310].astype(np.int32)
    truth = true_distances(graph, sources)
    nearest, distance = search(graph, sources, k, salt)
    assert_exact_but_for_ties(nearest, distance, truth)
    if salt is None:
        np.testing.assert_array_equal(nearest, k_smallest(truth, k)[0])


@pytest.mark.parametrize("salt", [None, SALT])
def test_a_long_path_on_which_few_nodes_speak_at_a_time(salt: np.uint64 | None) -> None:
    # 0 - 1 - ... - 599   600 - 601 - ... - 699   with sources 0, 10 and 300; k leaves room for all
    nodes = np.arange(699)
    path = graph_of(np.stack([nodes, nodes + 1], axis=1)[nodes != 599], 700)
    sources = np.array([300, 0, 10], dtype=np.int32)
    nearest, distance = search(path, sources, 3, salt)
    for node in range(600):
        hops = sorted((abs(node - int(source)), i) for i, source in enumerate(sources))
        assert list(zip(distance[node], nearest[node], strict=True)) == hops
    assert (nearest[600:] == UNREACHED).all() and (distance[600:] == UNREACHED).all()


def star_of_sources() -> tuple[KnowledgeGraph, IntArray]:
    """Nodes 40 to 239 are each tied to all of the sources 0 to 39."""
    pairs = np.stack(np.meshgrid(np.arange(40, 240), np.arange(40)), axis=-1)
    return graph_of(pairs, 240), np.arange(40, dtype=np.int32)


def test_per_node_ties_depend_on_the_salt_and_on_nothing_else() -> None:
    graph, sources = star_of_sources()
    first, again = (search(graph, sources, 5, SALT)[0] for _ in range(2))
    other = search(graph, sources, 5, OTHER_SALT)[0]
    assert first.tobytes() == again.tobytes()
    assert (first[40:] != other[40:]).any(axis=1).mean() > 0.9


def test_per_node_ties_spread_over_all_equidistant_sources_and_global_ties_do_not() -> None:
    graph, sources = star_of_sources()
    spread = np.bincount(search(graph, sources, 5, SALT)[0][40:].ravel(), minlength=40)
    assert spread.min() > 5 and spread.max() < 60  # 25 each on average, deviation 5
    first = search(graph, sources, 5, None)[0]
    assert (first[40:] == [0, 1, 2, 3, 4]).all()


def test_without_sources_nothing_is_reached() -> None:
    graph = graph_of(np.array([[0, 1]]), 2)
    nearest, distance = search(graph, np.empty(0, np.int32), 2, None)
    assert (nearest == UNREACHED).all() and (distance == UNREACHED).all()


def test_k_of_0_and_a_graph_without_nodes_give_empty_tables() -> None:
    no_room = search(graph_of(np.array([[0, 1]]), 2), np.array([1], np.int32), 0, SALT)
    assert [array.shape for array in no_room] == [(2, 0), (2, 0)]
    no_nodes = search(graph_of(np.empty((0, 2), np.int32), 0), np.empty(0, np.int32), 2, SALT)
    assert [array.shape for array in no_nodes] == [(0, 2), (0, 2)]


@pytest.mark.parametrize("k", [1, 2])
def test_distances_as_far_as_the_table_can_hold_are_kept_and_farther_ones_refused(
    monkeypatch: pytest.MonkeyPatch, k: int
) -> None:
    # 0 - 1 - ... - 9 and, apart from them, 10; sources 0 and 10, so that k = 2 leaves room
    path = graph_of(np.array([[node, node + 1] for node in range(9)]), 11)
    sources = np.array([0, 10], dtype=np.int32)
    monkeypatch.setattr("nodepiece.graph.nearest.MAX_DISTANCE", 9)
    assert search(path, sources, k, None)[1][9, 0] == 9
    monkeypatch.setattr("nodepiece.graph.nearest.MAX_DISTANCE", 8)
    with pytest.raises(InputError, match=r"more than 8 hops away .* choose more anchors"):
        search(path, sources, k, None)
