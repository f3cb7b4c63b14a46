"""Known answers that follow a change are those computed from all facts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodepiece.evaluation.changed_answers import answers_after
from nodepiece.evaluation.known_answers import KnownAnswers, known_relations, known_tails

Facts = set[tuple[int, int, int]]
NUM_RELATIONS = 3

facts = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=20)
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
@settings(max_examples=60, deadline=None)
@given(before=facts, added=later, data=st.data())
def test_answers_after_a_change_are_those_of_all_facts(
    kind: str, before: Facts, added: Facts, data: st.DataObject
) -> None:
    choices = st.sets(st.sampled_from(sorted(before))) if before else st.just(set())
    removed = data.draw(choices) - added
    found = answers_after(known(kind, before, 6), array(added), array(removed), 9)
    expected = known(kind, (before - removed) | added, 9)
    for name in ("queries", "offsets", "answers"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    assert found.num_nodes == 9 and found.kind == expected.kind
