"""Statistics of a table that can be counted on one hand, and shared hashes against a set."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.statistics import (
    TokenStatistics,
    compare_memory,
    count_distinct,
    describe_tokens,
)
from nodepiece.tokenizer.tokens import TokenTable, tokenize
from nodepiece.tokenizer.vocabulary import Vocabulary, fit_vocabulary


def five_nodes() -> TokenTable:
    """Anchors 1 and 2 (tokens 0 and 1), k = 2, m = 1, one relation and its inverse.

        3
        |
    0 - 1 - 2     4         1 is the head of all three facts

    node     anchors at distances   outgoing relations
    0        1@1, 2@2               inverse
    1        1@0, 2@1               direct
    2        2@0, 1@1               inverse
    3        1@1, 2@2               inverse              as 0
    4        none                   none
    """
    graph = KnowledgeGraph(np.array([[1, 0, 0], [1, 0, 2], [1, 0, 3]]), 5, 1)
    chosen = TokenizerSettings(num_anchors=2, anchors_per_node=2, relations_per_node=1)
    anchors = np.array([1, 2], dtype=np.int32)
    vocabulary = Vocabulary(anchors, 2, 5, graph.fingerprint, chosen)
    return tokenize(graph, vocabulary, rng=np.random.default_rng(0))


def random_table(num_nodes: int, seed: int, chosen: TokenizerSettings) -> TokenTable:
    rng = np.random.default_rng(seed)
    shape = (num_nodes, 3)
    triples = rng.integers((num_nodes, 3, num_nodes), size=shape, dtype=np.int32)
    graph = KnowledgeGraph(triples, num_nodes, 3)
    return tokenize(graph, fit_vocabulary(graph, chosen, rng=rng), rng=rng)


def test_statistics_of_five_nodes() -> None:
    assert describe_tokens(five_nodes()) == TokenStatistics(
        num_nodes=5,
        num_relations=1,
        num_anchors=2,
        anchors_per_node=2,
        relations_per_node=1,
        distance_histogram={0: 2, 1: 4, 2: 2},
        mean_distance=8 / 8,
        mean_nearest_distance=2 / 4,
        max_distance=2,
        num_disconnected=1,
        num_short_of_anchors=1,
        mean_relations=4 / 5,
        max_relations=1,
        distinct_anchor_sets=2,  # {1, 2} and none
        distinct_with_distances=4,
        distinct_hashes=4,
        top_anchor_use=0.5,
        unused_anchors=0,
    )


def test_memory_of_five_nodes() -> None:
    memory = compare_memory(five_nodes(), dim=10)
    assert memory.full_embedding == 5 * 10 * 4
    # 2 anchors, 2 relations, 2 specials, distances 0, 1, 2 and none
    assert memory.vocabulary_embedding == (6 + 4) * 10 * 4
    assert memory.token_table == 5 * (2 * 4 + 2 * 2 + 1 * 4)
    assert memory.to_json()["ratio"] == pytest.approx(0.5)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 80), st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_distinct_hashes_are_the_size_of_a_set_of_sets(
    num_nodes: int, seed: int, use_distances: bool, use_relations: bool
) -> None:
    k = max(1, num_nodes // 10)
    chosen = TokenizerSettings(num_anchors=2 * k - 1, anchors_per_node=k, relations_per_node=2)
    table = random_table(num_nodes, seed, chosen)
    hashes = set()
    for anchors, hops, relations in zip(
        table.anchors.tolist(), table.distances.tolist(), table.relations.tolist(), strict=True
    ):
        pairs = zip(anchors, hops if use_distances else [0] * len(hops), strict=True)
        hashes.add((frozenset(pairs), frozenset(relations if use_relations else [])))
    found = count_distinct(table, use_distances=use_distances, use_relations=use_relations)
    assert found == len(hashes)


def test_the_order_of_anchors_is_no_difference() -> None:
    table = five_nodes()
    vocabulary, sets = table.vocabulary, table.relation_sets
    swapped = TokenTable(
        vocabulary,
        np.array([[0, 1], [1, 0]], dtype=np.int32),
        np.array([[1, 1], [1, 1]], dtype=np.int16),
        np.array([[2], [2]], dtype=np.int32),
        sets,
    )
    assert count_distinct(swapped, use_distances=True, use_relations=True) == 1


@pytest.mark.parametrize("seed", range(5))
def test_the_counts_agree_with_plain_python(seed: int) -> None:
    table = random_table(60, seed, TokenizerSettings(num_anchors=12, anchors_per_node=4))
    statistics = describe_tokens(table)
    hops = [[d for d in row if d >= 0] for row in table.distances.tolist()]
    flat = [d for row in hops for d in row]
    held = [token for row in table.anchors.tolist() for token in row if token < 12]
    assert statistics.distance_histogram == {d: flat.count(d) for d in sorted(set(flat))}
    assert statistics.mean_distance == pytest.approx(sum(flat) / len(flat))
    nearest = [row[0] for row in hops if row]
    assert statistics.mean_nearest_distance == pytest.approx(sum(nearest) / len(nearest))
    assert statistics.max_distance == max(flat)
    assert statistics.num_disconnected == sum(not row for row in hops)
    assert statistics.num_short_of_anchors == sum(len(row) < 4 for row in hops)
    assert statistics.unused_anchors == 12 - len(set(held))
    most_used = max(held.count(token) for token in range(12))
    assert statistics.top_anchor_use == pytest.approx(most_used / len(held))
    sizes = [len(table.relation_sets.of(node)) for node in range(60)]
    assert statistics.mean_relations == pytest.approx(sum(sizes) / 60)
    assert statistics.max_relations == max(sizes)


def test_without_anchors_or_distances_there_is_no_mean_distance() -> None:
    without_anchors = describe_tokens(random_table(20, 0, TokenizerSettings(anchors_per_node=0)))
    assert without_anchors.mean_distance is None and without_anchors.top_anchor_use is None
    assert without_anchors.num_disconnected == without_anchors.num_short_of_anchors == 0
    assert without_anchors.distinct_anchor_sets == 1
    without_distances = describe_tokens(random_table(20, 0, TokenizerSettings(distances=False)))
    assert without_distances.mean_distance is None and without_distances.distance_histogram == {}
    assert without_distances.distinct_anchor_sets == without_distances.distinct_with_distances
