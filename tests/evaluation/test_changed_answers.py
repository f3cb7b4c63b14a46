"""Known answers that follow a change are those computed from all facts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evaluation.all_answers import all_answers

from nodepiece.evaluation.changed_answers import answers_after
from nodepiece.evaluation.known_answers import KnownAnswers, known_relations, known_tails

Facts = set[tuple[int, int, int]]
NUM_RELATIONS = 3

facts = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=20)
positions = st.sets(st.integers(0, 20), max_size=6)  # of facts to remove
later = st.sets(st.tuples(st.integers(0, 8), st.integers(0, 2), st.integers(0, 8)), max_size=8)


def array(some: Facts) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    return np.array(sorted(some), np.int32).reshape(-1, 3)


def known(kind: str, some: Facts, num_nodes: int) -> KnownAnswers:
    if kind == "tails":
        return known_tails(array(some), num_nodes, NUM_RELATIONS)
    return known_relations(
        array(some), num_nodes, NUM_RELATIONS, direct_only=kind == "direct relations"
    )


@pytest.mark.parametrize("kind", ["tails", "relations", "direct relations"])
@settings(max_examples=40, deadline=None)
@given(before=facts, changes=st.lists(st.tuples(later, positions), min_size=1, max_size=3))
def test_answers_after_changes_are_those_of_all_facts(
    kind: str, before: Facts, changes: list[tuple[Facts, set[int]]]
) -> None:
    found, current = known(kind, before, 6), set(before)
    for added, places in changes:
        ordered = sorted(current)
        removed = {ordered[place] for place in places if place < len(ordered)} - added
        found = answers_after(found, array(added), array(removed), 9)
        current = (current - removed) | added
    assert all_answers(found) == all_answers(known(kind, current, 9))
    assert found.num_nodes == 9


def test_a_change_shares_the_arrays_of_all_facts() -> None:
    before = known("tails", {(0, 0, 1), (2, 1, 3)}, 6)
    after = answers_after(before, array({(0, 0, 4)}), array(set()), 6)
    assert np.shares_memory(after.queries, before.queries)
    assert np.shares_memory(after.answers, before.answers)


def test_the_answers_of_some_queries_are_those_of_all() -> None:
    before = known("tails", {(0, 0, 1), (0, 0, 2), (2, 1, 3)}, 6)
    for each in (before, answers_after(before, array({(0, 0, 4)}), array({(0, 0, 1)}), 6)):
        start, number = each.find(np.array([2, 0]), np.array([1, 0]))
        first, answers = each.only_of(start, number)
        for place in range(2):
            own = answers[first[place] : first[place] + number[place]].tolist()
            assert own == all_answers(each)[(2, 1) if place == 0 else (0, 0)]
