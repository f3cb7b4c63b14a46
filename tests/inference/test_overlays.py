"""Values with overridden rows are those of a copy with the same changes."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nodepiece.inference.patched_counts import PatchedCounts
from nodepiece.inference.patched_vectors import PatchedVectors

changes = st.lists(st.sets(st.integers(0, 9), max_size=6), max_size=6)


@settings(max_examples=60, deadline=None)
@given(changes=changes)
def test_counts_are_those_of_an_array(changes: list[set[int]]) -> None:
    counts, expected = PatchedCounts.of(np.arange(5)), np.append(np.arange(5), np.zeros(5, int))
    for number, nodes in enumerate(changes):
        some = np.array(sorted(nodes), np.int64)
        counts = counts.plus(np.concatenate([some, some]), np.full(2 * len(some), number), 10)
        expected[some] += 2 * number
    places = np.array([9, 0, 4, 4, 7])
    np.testing.assert_array_equal(counts.at(places), expected[places])
    np.testing.assert_array_equal(counts.whole(), expected[: counts.num_nodes])


@settings(max_examples=60, deadline=None)
@given(changes=changes, fork=st.integers(0, 5))
def test_vectors_that_follow_are_those_of_a_copy(changes: list[set[int]], fork: int) -> None:
    base = torch.zeros(10, 2)
    found, copied, kept = PatchedVectors.of(base), PatchedVectors.of(base), []
    for number, nodes in enumerate(changes):
        some = torch.tensor(sorted(nodes), dtype=torch.int64)
        rows = torch.full((len(some), 2), float(number + 1))
        if number == fork:  # another state that follows the same one
            found.followed_by(torch.tensor([3]), torch.full((1, 2), -7.0))
        found, copied = found.followed_by(some, rows), copied.with_rows(some, rows)
        kept.append((found, copied.whole.clone()))
    for state, expected in kept:  # earlier states have not changed
        torch.testing.assert_close(state.whole, expected)
        torch.testing.assert_close(state.rows(torch.arange(10)), expected)
        torch.testing.assert_close(state.scores(lambda vectors: vectors.T), expected.T)


def test_new_nodes_have_rows_behind_the_base() -> None:
    found = PatchedVectors.of(torch.zeros(2, 1))
    for node in range(2, 600):
        found = found.followed_by(torch.tensor([0, node]), torch.full((2, 1), float(node)))
    assert found.num_nodes == 600
    assert found.whole[:, 0].tolist() == [599.0, 0.0, *map(float, range(2, 600))]
    assert len(found.patch) <= 3 * 600  # outdated rows do not stay for ever
