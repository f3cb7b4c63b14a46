"""The benchmark of an inductive model by the distance of head and tail."""

import numpy as np
import pytest
from benchmarks.ranks_by_distance import by_distance, distances_of

from nodepiece.evaluation.ranking import LinkRanks
from nodepiece.graph.knowledge_graph import KnowledgeGraph


def test_distances_are_shortest_paths_whatever_the_direction() -> None:
    #  0 -> 1 <- 2 -> 3    4 -> 5
    facts = np.array([[0, 0, 1], [2, 0, 1], [2, 1, 3], [4, 0, 5]], dtype=np.int32)
    asked = np.array([[0, 0, 1], [3, 0, 0], [0, 1, 2], [0, 0, 5], [4, 0, 4]], dtype=np.int32)
    found = distances_of(asked, KnowledgeGraph(facts, 6, 2))
    assert found.tolist() == [1, 3, 2, np.inf, 0]


def test_every_fact_is_in_one_class_with_the_ranks_of_both_sides() -> None:
    distances = np.array([0, 1, 3, 5, 9, np.inf])
    relation = np.zeros(6, dtype=np.int32)
    ranks = LinkRanks(np.array([1.0, 1, 2, 4, 20, 5]), np.array([1.0, 3, 2, 4, 20, 50]), relation)
    found = by_distance(distances, [ranks, ranks], ranks)
    assert {name: scores["facts"] for name, scores in found.items()} == {
        **{"1": 2, "3": 1, "4 to 6": 1},
        **{"more": 1, "not connected": 1},
    }
    assert found["1"]["mrr"] == pytest.approx((1 + 1 + 1 + 1 / 3) / 4)
    assert found["4 to 6"]["mrr, all nodes"] == pytest.approx(1 / 4)
    assert (found["more"]["hits@10"], found["not connected"]["hits@10"]) == (0, 0.5)
