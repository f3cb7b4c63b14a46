"""Rows of edges that follow updates, against those of the graph sorted afresh."""

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nodepiece.encoders.edge_rows import EdgeRows
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph

NUM_RELATIONS = 3
Fact = tuple[int, int, int]


@dataclass(frozen=True)
class State:
    """Facts of a graph, and its rows."""

    facts: frozenset[Fact]
    num_nodes: int
    rows: EdgeRows


def array(facts: set[Fact] | frozenset[Fact]) -> IntArray:
    return np.array(sorted(facts), np.int32).reshape(-1, 3)


def start(facts: set[Fact], num_nodes: int) -> State:
    graph = KnowledgeGraph(array(facts), num_nodes, NUM_RELATIONS)
    return State(frozenset(facts), num_nodes, EdgeRows.of_graph(graph))


def updated(state: State, add: set[Fact], remove: set[Fact], *, is_next: bool = True) -> State:
    added, removed = add - state.facts, remove & state.facts
    num_nodes = max([state.num_nodes, *(1 + max(fact[0], fact[2]) for fact in added)])
    rows = state.rows.after(
        array(added),
        array(removed),
        num_nodes=num_nodes,
        num_direct=NUM_RELATIONS,
        is_next=is_next,
    )
    return State(state.facts - removed | added, num_nodes, rows)


def edges_of(rows: EdgeRows) -> list[list[tuple[int, int]]]:
    """Target and relation of the edges of every node, sorted."""
    found = (rows.row(node) for node in range(rows.num_nodes))
    return [sorted(zip(*map(np.ndarray.tolist, row), strict=True)) for row in found]


def assert_right(state: State) -> None:
    assert edges_of(state.rows) == edges_of(start(set(state.facts), state.num_nodes).rows)


def facts_among(num_nodes: int) -> st.SearchStrategy[set[Fact]]:
    nodes = st.integers(0, num_nodes - 1)
    return st.sets(st.tuples(nodes, st.integers(0, NUM_RELATIONS - 1), nodes), max_size=25)


@settings(max_examples=60, deadline=None)
@given(facts_among(8), st.lists(st.tuples(facts_among(12), facts_among(12), st.booleans())))
def test_rows_are_those_of_the_changed_graph_and_earlier_states_keep_theirs(
    facts: set[Fact], changes: list[tuple[set[Fact], set[Fact], bool]]
) -> None:
    states = [start(facts, 8)]
    for add, remove, is_next in changes:
        latest = states[-1]
        updated(latest, remove, add, is_next=is_next)  # another state after the same one
        states.append(updated(latest, add, remove))
    for state in states:
        assert_right(state)


def a_star(num_leaves: int) -> set[Fact]:
    return {(0, 0, leaf) for leaf in range(1, num_leaves + 1)}


def test_an_update_shares_the_arrays_of_the_state_before() -> None:
    first = updated(start(a_star(500), 501), {(1, 1, 2)}, set())
    second = updated(first, {(3, 1, 4)}, {(1, 1, 2)})
    assert second.rows.base is first.rows.base
    assert np.shares_memory(first.rows.columns, second.rows.columns)
    assert second.rows.nodes.tolist() == [1, 2, 3, 4]


def test_of_two_states_after_the_same_one_neither_overwrites_the_other() -> None:
    before = updated(start(a_star(500), 501), {(1, 1, 2)}, set())
    one, other = (updated(before, {(1, 1, node)}, set()) for node in (3, 4))
    assert np.shares_memory(before.rows.columns, one.rows.columns)
    assert not np.shares_memory(before.rows.columns, other.rows.columns)
    for state in (before, one, other):
        assert_right(state)


def test_a_state_that_is_not_the_next_one_leaves_the_space_to_the_next() -> None:
    before = updated(start(a_star(500), 501), {(1, 1, 2)}, set())
    assumed = updated(before, {(1, 1, 3)}, set(), is_next=False)
    after = updated(before, {(1, 1, 4)}, set())
    assert not np.shares_memory(before.rows.columns, assumed.rows.columns)
    assert np.shares_memory(before.rows.columns, after.rows.columns)


def test_outdated_rows_do_not_accumulate() -> None:
    state = start(a_star(500), 501)
    for _ in range(40):
        state = updated(state, {(0, 1, 1)}, set())  # rows of 500 edges
        state = updated(state, set(), {(0, 1, 1)})
    assert state.rows.columns.shape[1] < 3 * 501 + 2 * 4096
    assert_right(state)


def test_a_new_base_is_due_where_many_edges_are_in_changed_rows() -> None:
    state = start(a_star(20_000), 20_001)
    assert not updated(state, {(1, 1, 2)}, set()).rows.has_many_changes
    hub = updated(state, {(0, 1, 1)}, set())  # half of all edges are in the row of 0
    assert hub.rows.has_many_changes
    assert_right(hub)
