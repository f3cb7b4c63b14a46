"""A table that follows the edges against a new search, after every batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graph.changes import Batch, histories

from nodepiece.errors import InputError
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.changed_edges import changed_edges
from nodepiece.graph.changing_adjacency import ChangingAdjacency
from nodepiece.graph.changing_nearest import NearestTable, Rows
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.nearest import UNREACHED, nearest_sources

History = tuple[KnowledgeGraph, list[Batch], np.random.Generator]
NO_FACTS = np.empty((0, 3), np.int32)


def start(
    graph: KnowledgeGraph, sources: IntArray, k: int, salt: np.uint64 | None
) -> tuple[ChangingAdjacency, NearestTable]:
    adjacency = build_adjacency(graph)
    table = nearest_sources(adjacency, sources, k, salt=salt)
    return ChangingAdjacency(adjacency), NearestTable(*table, len(sources), salt=salt)


def apply(adjacency: ChangingAdjacency, table: NearestTable, batch: Batch) -> Rows:
    rows = changed_by(adjacency, table, batch)
    adjacency.apply(batch.inserted, batch.removed, batch.num_new_nodes)
    table.add_nodes(batch.num_new_nodes)
    table.write(rows)
    return rows


def changed_by(adjacency: ChangingAdjacency, table: NearestTable, batch: Batch) -> Rows:
    with changed_edges(adjacency, batch.inserted, batch.removed, batch.num_new_nodes) as edges:
        return table.changed_by(edges)


@settings(max_examples=400, deadline=None)
@given(histories(), st.integers(1, 6), st.none() | st.integers(0, 2**64 - 1).map(np.uint64))
def test_after_every_batch_the_table_equals_a_new_search(
    history: History, k: int, salt: np.uint64 | None
) -> None:
    graph, batches, rng = history
    num_sources = int(rng.integers(1, graph.num_nodes + 1))
    sources = rng.permutation(graph.num_nodes)[:num_sources].astype(np.int32)
    adjacency, table = start(graph, sources, k, salt)
    for batch in batches:
        before = table.nearest.copy(), table.distance.copy()
        rows = apply(adjacency, table, batch)
        nearest, distance = nearest_sources(adjacency.compact(), sources, k, salt=salt)
        np.testing.assert_array_equal(table.nearest[: table.num_nodes], nearest)
        np.testing.assert_array_equal(table.distance[: table.num_nodes], distance)
        differs = (table.nearest != before[0][: len(table.nearest)]).any(axis=1)
        differs |= (table.distance != before[1][: len(table.distance)]).any(axis=1)
        np.testing.assert_array_equal(rows.nodes, np.flatnonzero(differs))


@pytest.mark.parametrize("salt", [None, np.uint64(5)])
def test_only_asking_leaves_everything_as_it_was(salt: np.uint64 | None) -> None:
    # 0 - 1 - 2 - 3, sources 0 and 3; a fact 0 - 3 would close the ring
    path = KnowledgeGraph(np.array([[0, 0, 1], [1, 0, 2], [2, 0, 3]], np.int32), 4, 1)
    adjacency, table = start(path, np.array([0, 3], np.int32), 2, salt)
    before = table.distance.copy()
    fact = np.array([[0, 0, 3]], np.int32)
    rows = changed_by(adjacency, table, Batch(fact, NO_FACTS, 0))
    assert rows.nodes.tolist() == [0, 3]  # were three hops apart; for 1 and 2 nothing is nearer
    np.testing.assert_array_equal(rows.distance, [[0, 1], [0, 1]])
    np.testing.assert_array_equal(table.distance, before)
    assert changed_by(adjacency, table, Batch(NO_FACTS, NO_FACTS, 0)).nodes.size == 0


def test_a_part_that_is_cut_off_forgets_its_sources() -> None:
    # 0 - 1 - 2 - 3 - 1 with source 0: without 0 - 1, the ring must not keep its old distances
    ring = [[0, 0, 1], [1, 0, 2], [2, 0, 3], [3, 0, 1]]
    graph = KnowledgeGraph(np.array(ring, np.int32), 4, 1)
    adjacency, table = start(graph, np.array([0], np.int32), 1, None)
    cut = np.array([[0, 0, 1]], np.int32)
    rows = apply(adjacency, table, Batch(NO_FACTS, cut, 0))
    assert rows.nodes.tolist() == [1, 2, 3]
    assert (rows.nearest == UNREACHED).all() and (rows.distance == UNREACHED).all()


def test_of_two_parallel_edges_one_is_enough() -> None:
    graph = KnowledgeGraph(np.array([[0, 0, 1], [1, 0, 0]], np.int32), 2, 1)
    adjacency, table = start(graph, np.array([0], np.int32), 1, None)
    assert not apply(adjacency, table, Batch(NO_FACTS, graph.triples[:1], 0)).nodes.size
    assert apply(adjacency, table, Batch(NO_FACTS, graph.triples[1:], 0)).nodes.tolist() == [1]


def test_without_room_for_sources_nothing_ever_changes() -> None:
    graph = KnowledgeGraph(np.array([[0, 0, 1]], np.int32), 2, 1)
    adjacency, table = start(graph, np.array([0], np.int32), 0, None)
    assert not apply(adjacency, table, Batch(NO_FACTS, graph.triples, 0)).nodes.size


def test_a_distance_that_the_table_cannot_hold_is_refused() -> None:
    # Node 1 is as far from the source 0 as the table can say; the way there is not drawn.
    nearest, distance = np.array([[0], [0], [-1]], np.int32), np.array([[0], [32767], [-1]])
    table = NearestTable(nearest, distance.astype(np.int16), 1, salt=None)
    adjacency = ChangingAdjacency(build_adjacency(KnowledgeGraph(NO_FACTS, 3, 1)))
    fact = np.array([[1, 0, 2]], np.int32)
    with pytest.raises(InputError, match="more than 32,767 hops away"):
        changed_by(adjacency, table, Batch(fact, NO_FACTS, 0))


def test_many_more_nodes_than_there_is_spare_memory_for_can_be_added() -> None:
    nearest = np.array([[0], [0]], np.int32)
    changing = NearestTable(nearest, np.array([[0], [1]], np.int16), 1, salt=None)
    changing.add_nodes(5000)
    assert changing.num_nodes == 5002 <= len(changing.nearest)
    assert len(changing.nearest) == len(changing.distance)
    assert changing.nearest[:2].tolist() == nearest.tolist()
