"""Whether values of a token table may be used as indices: a damaged file may hold any number."""

import numpy as np
from numba import njit

from nodepiece.graph.arrays import IntArray
from nodepiece.graph.nearest import UNREACHED, Distances
from nodepiece.tokenizer.vocabulary import Vocabulary


def fault_in(
    vocabulary: Vocabulary, anchors: IntArray, distances: Distances, relations: IntArray
) -> str | None:
    """A value that no tokenization gives, in words; None where there is none.

    anchors, distances: (num_rows, k); relations: (num_rows, m). One pass over the arrays, about as
    quick as memory allows.
    """
    num_anchors, padding = vocabulary.num_anchors, vocabulary.padding
    anchor = _first_outside(anchors, (0, num_anchors), (padding, len(vocabulary)))
    if anchor is not None:
        return f"{anchor:,} is among the anchors"
    nearest = int(np.asarray(distances).min(initial=0))
    if nearest < UNREACHED:
        return f"{nearest:,} is among the distances"
    relation = _first_outside(relations, (num_anchors, padding + 1), (0, 0))
    return None if relation is None else f"{relation:,} is among the relations"


def _first_outside(values: IntArray, one: tuple[int, int], other: tuple[int, int]) -> int | None:
    """The first value that is in neither of two ranges."""
    flat = np.asarray(values).reshape(-1)
    starts, lengths = np.array([(start, end - start) for start, end in (one, other)]).T
    if not _is_any_outside(flat.view(np.uint32), starts.astype(np.uint32), lengths):
        return None
    is_inside = np.zeros(len(flat), np.bool_)
    for start, end in (one, other):
        is_inside |= (flat >= start) & (flat < end)
    return int(flat[~is_inside][0])


@njit(cache=True)
def _is_any_outside(values, starts, lengths):  # type: ignore[no-untyped-def]
    """Compared without a sign: what lies before a range is then far behind it."""
    first_start, second_start = starts[0], starts[1]
    first_length, second_length = np.uint32(lengths[0]), np.uint32(lengths[1])
    found = np.uint32(0)
    for i in range(len(values)):  # without a branch, so that several are compared at once
        is_in_first = np.uint32(values[i] - first_start) < first_length
        is_in_second = np.uint32(values[i] - second_start) < second_length
        found |= np.uint32(not (is_in_first or is_in_second))
    return found > 0
