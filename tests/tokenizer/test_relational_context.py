"""The relations that leave a node: all of them where they fit, else a fair sample."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodepiece.errors import InputError
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.tokenizer.context import RelationSets, relation_sets

THREADS = min(2, numba.get_num_threads())


def sets_of(
    triples: list[tuple[int, int, int]], num_nodes: int, num_relations: int
) -> RelationSets:
    array = np.array(triples, dtype=np.int32).reshape(-1, 3)
    return relation_sets(build_adjacency(KnowledgeGraph(array, num_nodes, num_relations)))


def hub_with(num_relations: int) -> RelationSets:
    """Node 0 is the head of one fact of every relation."""
    return sets_of([(0, r, r + 1) for r in range(num_relations)], num_relations + 1, num_relations)


def test_inverses_are_outgoing_relations_of_the_tail() -> None:
    # 0 -0-> 1, 0 -0-> 2, 0 -1-> 1, 2 -1-> 2, and 3 alone; inverses of 0 and 1 are 2 and 3
    sets = sets_of([(0, 0, 1), (0, 0, 2), (0, 1, 1), (2, 1, 2)], 4, 2)
    assert [sets.of(node).tolist() for node in range(4)] == [[0, 1], [2, 3], [1, 2, 3], []]


def test_a_sample_holds_the_whole_set_where_it_fits_and_is_padded_at_the_end() -> None:
    sets = sets_of([(0, 0, 1), (0, 0, 2), (0, 1, 1), (2, 1, 2)], 4, 2)
    sample = sets.sample(3, 99, rng=np.random.default_rng(0))
    assert sample.tolist() == [[0, 1, 99], [2, 3, 99], [1, 2, 3], [99, 99, 99]]


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(0, 14), st.integers(0, 2**32 - 1))
def test_a_sample_is_m_distinct_relations_of_the_node_in_ascending_order(
    num_nodes: int, num_relations: int, m: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    triples = rng.integers((num_nodes, num_relations, num_nodes), size=(3 * num_nodes, 3))
    sets = sets_of([tuple(triple) for triple in triples.tolist()], num_nodes, num_relations)
    padding = 2 * num_relations
    sample = sets.sample(m, padding, rng=rng)
    assert sample.shape == (num_nodes, m) and sample.dtype == np.int32
    for node in range(num_nodes):
        whole, row = set(sets.of(node).tolist()), sample[node].tolist()
        kept = [relation for relation in row if relation != padding]
        assert row == sorted(set(kept)) + [padding] * (m - len(kept))
        assert set(kept) <= whole
        assert len(kept) == min(m, len(whole))


def test_every_relation_and_every_pair_is_sampled_about_equally_often() -> None:
    sets, rng = hub_with(10), np.random.default_rng(0)
    draws = 4000
    use = np.zeros((draws, 10))
    for draw in range(draws):
        use[draw, sets.sample(3, 99, rng=rng)[0]] = 1
    np.testing.assert_allclose(use.mean(axis=0), 0.3, atol=0.036)  # deviation 0.0072
    pairs = (use.T @ use / draws)[np.triu_indices(10, k=1)]
    np.testing.assert_allclose(pairs, 1 / 15, atol=0.02)  # deviation 0.0039


def test_nodes_with_the_same_relations_sample_independently_of_each_other() -> None:
    heads = [(head, relation, 1000) for head in range(1000) for relation in range(6)]
    sample = sets_of(heads, 1001, 6).sample(2, 99, rng=np.random.default_rng(0))[:1000]
    _, counts = np.unique(sample, axis=0, return_counts=True)
    assert len(counts) == 15  # all pairs of six
    assert counts.min() > 30 and counts.max() < 105  # 67 each on average, deviation 7.9


def test_a_generator_moves_on_to_a_new_sample_and_the_same_seed_repeats_it() -> None:
    sets, rng = hub_with(200), np.random.default_rng(0)
    first, second = (sets.sample(20, 999, rng=rng)[0].tolist() for _ in range(2))
    assert first != second
    assert sets.sample(20, 999, rng=np.random.default_rng(0))[0].tolist() == first


def test_one_and_two_threads_give_the_same_sample() -> None:
    heads = [(head, relation, 500) for head in range(500) for relation in range(6)]
    sets = sets_of(heads, 501, 6)
    alone = sets.sample(2, 99, rng=np.random.default_rng(0))
    numba.set_num_threads(THREADS)
    together = sets.sample(2, 99, rng=np.random.default_rng(0))
    numba.set_num_threads(1)
    assert together.tobytes() == alone.tobytes()


def test_a_random_order_shows_the_same_sample_in_an_order_of_each_node_s_own() -> None:
    heads = [(head, relation, 1000) for head in range(1000) for relation in range(3)]
    sets = sets_of(heads, 1001, 3)
    ascending = sets.sample(4, 99, rng=np.random.default_rng(0))[:1000]
    random = sets.sample(4, 99, rng=np.random.default_rng(0), ascending=False)[:1000]
    np.testing.assert_array_equal(np.sort(random, axis=1), ascending)
    assert (random[:, 3] == 99).all()  # what pads stays last
    _, counts = np.unique(random, axis=0, return_counts=True)
    assert len(counts) == 6  # all orders of three
    assert counts.min() > 110 and counts.max() < 225  # 167 each on average, deviation 11.8


def test_relations_outside_the_graph_are_refused_by_their_number() -> None:
    offsets = np.array([0, 2])
    RelationSets(offsets, np.array([0, 3], np.int32)).check(4)
    for values, wrong in (([0, 4], "4"), ([-7, 2], "-7"), ([-7, 9], "-7")):
        damaged = RelationSets(offsets, np.array(values, np.int32))
        with pytest.raises(InputError, match=rf"\({wrong} among the relations is out of range"):
            damaged.check(4)
