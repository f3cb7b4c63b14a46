"""The random strategy: k sources for every node, whichever they are, at their true distances."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from nodepiece.errors import InputError
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.nearest import UNREACHED, choose_at_random, distances_to_chosen

THREADS = (1, 2) if numba.get_num_threads() > 1 else (1,)


def random_graph(num_nodes: int, num_triples: int, rng: np.random.Generator) -> KnowledgeGraph:
    triples = rng.integers((num_nodes, 2, num_nodes), size=(num_triples, 3))
    return KnowledgeGraph(triples.astype(np.int32), num_nodes, 2)


def brute_force(graph: KnowledgeGraph, sources: IntArray, chosen: IntArray) -> IntArray:
    heads, _, tails = graph.triples.T
    shape = (graph.num_nodes, graph.num_nodes)
    matrix = csr_array((np.ones(len(heads)), (heads, tails)), shape=shape)
    table = shortest_path(matrix, directed=False, unweighted=True, indices=sources).T
    picked = np.take_along_axis(table, chosen.astype(np.int64), axis=1)
    return np.where(np.isinf(picked), UNREACHED, picked).astype(np.int32)


@settings(max_examples=100, deadline=None)
@given(
    num_nodes=st.integers(1, 250),
    density=st.floats(0, 1.5),
    share=st.floats(0.01, 1),
    seed=st.integers(0, 2**32 - 1),
    data=st.data(),
)
def test_distances_to_any_choice_agree_with_brute_force(
    num_nodes: int, density: float, share: float, seed: int, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(num_nodes, int(density * num_nodes), rng)
    num_sources = max(1, int(share * num_nodes))  # up to 250: four batches of 64 bits
    sources = rng.choice(num_nodes, size=num_sources, replace=False).astype(np.int32)
    k = data.draw(st.sampled_from([1, num_sources]) | st.integers(1, num_sources))
    chosen = choose_at_random(num_nodes, num_sources, k, np.uint64(seed))
    distance = distances_to_chosen(build_adjacency(graph), sources, chosen)
    np.testing.assert_array_equal(distance, brute_force(graph, sources, chosen))


@pytest.mark.parametrize("num_sources", [63, 64, 65, 128, 200])
def test_batches_of_64_sources_meet_without_gap_or_overlap(num_sources: int) -> None:
    rng = np.random.default_rng(num_sources)
    graph = random_graph(220, 260, rng)
    sources = rng.permutation(220)[:num_sources].astype(np.int32)
    everything = np.tile(np.arange(num_sources, dtype=np.int32), (220, 1))
    distance = distances_to_chosen(build_adjacency(graph), sources, everything)
    np.testing.assert_array_equal(distance, brute_force(graph, sources, everything))


@settings(max_examples=100, deadline=None)
@given(num_sources=st.integers(1, 300), salt=st.integers(0, 2**64 - 1), data=st.data())
def test_a_choice_is_k_distinct_sources_in_ascending_order(
    num_sources: int, salt: int, data: st.DataObject
) -> None:
    k = data.draw(st.sampled_from([1, num_sources]) | st.integers(0, num_sources))
    chosen = choose_at_random(20, num_sources, k, np.uint64(salt))
    assert chosen.shape == (20, k)
    assert (np.diff(chosen, axis=1) > 0).all()
    assert ((chosen >= 0) & (chosen < num_sources)).all()


def test_every_source_and_every_pair_of_sources_is_chosen_about_equally_often() -> None:
    num_nodes, num_sources, k = 40_000, 12, 4
    chosen = choose_at_random(num_nodes, num_sources, k, np.uint64(5))
    use = np.zeros((num_nodes, num_sources))
    np.put_along_axis(use, chosen.astype(np.int64), 1, axis=1)
    single = use.mean(axis=0)  # 1/3 each; the deviation of a mean is 0.0024
    np.testing.assert_allclose(single, 1 / 3, atol=0.012)
    pairs = (use.T @ use / num_nodes)[np.triu_indices(num_sources, k=1)]
    np.testing.assert_allclose(pairs, 4 * 3 / (12 * 11), atol=0.008)  # 1/11; deviation 0.0014


def test_one_and_two_threads_choose_alike_and_find_the_same_distances() -> None:
    rng = np.random.default_rng(1)
    adjacency = build_adjacency(random_graph(1000, 1500, rng))
    sources = rng.permutation(1000)[:150].astype(np.int32)
    results = []
    for threads in THREADS:
        numba.set_num_threads(threads)
        chosen = choose_at_random(1000, 150, 5, np.uint64(1))
        distance = distances_to_chosen(adjacency, sources, chosen)
        results.append((chosen.tobytes(), distance.tobytes()))
        numba.set_num_threads(1)
    assert len(set(results)) == 1


def test_a_choice_depends_on_the_salt() -> None:
    first = choose_at_random(1000, 50, 5, np.uint64(1))
    again = choose_at_random(1000, 50, 5, np.uint64(1))
    assert first.tobytes() == again.tobytes()
    other = choose_at_random(1000, 50, 5, np.uint64(2))
    assert (first != other).any(axis=1).mean() > 0.9


def test_a_node_keeps_its_choice_when_the_graph_grows() -> None:
    small = choose_at_random(10, 50, 5, np.uint64(1))
    np.testing.assert_array_equal(choose_at_random(1000, 50, 5, np.uint64(1))[:10], small)


def test_distances_as_far_as_the_table_can_hold_are_kept_and_farther_ones_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # 0 - 1 - ... - 9, source 0
    triples = np.array([[node, 0, node + 1] for node in range(9)], dtype=np.int32)
    adjacency = build_adjacency(KnowledgeGraph(triples, 10, 1))
    sources, chosen = np.zeros(1, np.int32), np.zeros((10, 1), np.int32)
    monkeypatch.setattr("nodepiece.graph.nearest.MAX_DISTANCE", 9)
    np.testing.assert_array_equal(distances_to_chosen(adjacency, sources, chosen)[:, 0], range(10))
    monkeypatch.setattr("nodepiece.graph.nearest.MAX_DISTANCE", 8)
    with pytest.raises(InputError, match="more than 8 hops away"):
        distances_to_chosen(adjacency, sources, chosen)
