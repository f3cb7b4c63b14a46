"""Pairs of nodes with edges between them."""

import numpy as np

from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.linked_pairs import best_confidence, confidences, linked_pairs

#   0 --0--> 1,  0 --1--> 1,  1 --0--> 2,  2 --1--> 2
GRAPH = KnowledgeGraph(np.array([[0, 0, 1], [0, 1, 1], [1, 0, 2], [2, 1, 2]]), 4, 2)


def test_a_pair_has_the_relations_of_its_edges_in_both_directions() -> None:
    linked = linked_pairs(GRAPH)

    relations = np.split(linked.relations, linked.starts[1:])
    found = {
        (head, tail): sorted(each.tolist())
        for head, tail, each in zip(
            linked.heads.tolist(), linked.tails.tolist(), relations, strict=True
        )
    }
    assert found == {(0, 1): [0, 1], (1, 0): [2, 3], (1, 2): [0], (2, 1): [2], (2, 2): [1, 3]}
    assert linked.degrees.tolist() == [2, 3, 3, 0]


def test_a_confidence_is_the_share_of_pairs_that_have_the_other_relation_too() -> None:
    linked = linked_pairs(GRAPH)

    found = confidences(linked, 4).toarray()

    assert found[0].tolist() == [1, 0.5, 0, 0]  # of (0, 1) and (1, 2), one has relation 1
    assert found[1].tolist() == [0.5, 1, 0, 0.5]  # of (0, 1) and (2, 2)
    assert best_confidence(linked, found[:, 1]).tolist() == [1, 0.5, 0.5, 0, 1]


def test_a_fact_that_is_stated_twice_counts_once() -> None:
    twice = KnowledgeGraph(np.array([[0, 0, 1], [0, 0, 1], [0, 1, 1]]), 2, 2)

    assert confidences(linked_pairs(twice), 4).toarray()[0].tolist() == [1, 1, 0, 0]


def test_a_graph_without_facts_has_no_pairs() -> None:
    linked = linked_pairs(KnowledgeGraph(np.empty((0, 3), np.int32), 3, 1))

    assert len(linked) == 0 and len(best_confidence(linked, np.zeros(2))) == 0
    assert confidences(linked, 2).nnz == 0
