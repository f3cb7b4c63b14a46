"""Edges that come and go against a plain set of facts."""

import numpy as np
from hypothesis import given, settings
from tests.graph.changes import Batch, as_facts, histories

from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.changing_adjacency import ChangingAdjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph

History = tuple[KnowledgeGraph, list[Batch], np.random.Generator]


def in_order(facts: IntArray) -> list[list[int]]:
    return sorted(facts.tolist())


@settings(max_examples=200, deadline=None)
@given(histories())
def test_it_holds_the_facts_that_were_inserted_and_not_removed(history: History) -> None:
    graph, batches, _ = history
    adjacency = ChangingAdjacency(build_adjacency(graph))
    expected = set(map(tuple, graph.triples.tolist()))
    for batch in batches:
        adjacency.add_nodes(batch.num_new_nodes)
        assert adjacency.contains(batch.removed).all()
        assert not adjacency.contains(batch.inserted).any()
        adjacency.remove(batch.removed)
        adjacency.insert(batch.inserted)
        expected -= set(map(tuple, batch.removed.tolist()))
        expected |= set(map(tuple, batch.inserted.tolist()))
        assert in_order(adjacency.facts()) == in_order(as_facts(expected))
        fresh = build_adjacency(KnowledgeGraph(as_facts(expected), adjacency.num_nodes, 3))
        np.testing.assert_array_equal(adjacency.compact().offsets, fresh.offsets)
        assert adjacency.num_edges == 2 * len(expected)


def test_a_hub_may_grow_without_end_and_rows_left_behind_are_reclaimed() -> None:
    adjacency = ChangingAdjacency(build_adjacency(KnowledgeGraph(as_facts(set()), 1, 1)))
    size = len(adjacency.neighbours)
    adjacency.add_nodes(5000)
    rays = np.array([[0, 0, node] for node in range(1, 5001)], np.int32)
    for _ in range(3):
        adjacency.insert(rays)
        assert adjacency.count[0] == 5000 and adjacency.contains(rays).all()
        adjacency.remove(rays)
        assert not adjacency.num_edges
    assert size < len(adjacency.neighbours) < 20 * len(rays) + 200_000


def test_the_edges_of_some_nodes_lead_both_ways_and_a_loop_counts_twice() -> None:
    facts = np.array([[0, 1, 1], [1, 0, 1]], np.int32)
    adjacency = ChangingAdjacency(build_adjacency(KnowledgeGraph(facts, 2, 2)))
    assert in_order(adjacency.edges_of(np.array([1], np.int32))) == [
        [1, 0, 1],
        [1, 2, 1],
        [1, 3, 0],
    ]
