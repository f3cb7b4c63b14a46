"""Check that the values of a token table are valid indices; a damaged file may hold any number."""

import numpy as np

from nodepiece.graph.arrays import IntArray
from nodepiece.graph.nearest import UNREACHED, Distances
from nodepiece.tokenizer.vocabulary import Vocabulary

BLOCK = 2**16  # values compared at a time, so that they stay in the cache


def find_invalid_token(
    vocabulary: Vocabulary, anchors: IntArray, distances: Distances, relations: IntArray
) -> str | None:
    """A description of an invalid value in a token table; None if all are valid.

    anchors, distances: (num_rows, k); relations: (num_rows, m). Plain NumPy, as loading a
    compiled kernel would take longer than the check.
    """
    num_anchors, padding = vocabulary.num_anchors, vocabulary.padding
    anchor = _first_outside(anchors, 0, len(vocabulary), gap=(num_anchors, padding))
    if anchor is not None:
        return f"{anchor:,} among the anchors is out of range"
    nearest = int(np.asarray(distances).min(initial=0))
    if nearest < UNREACHED:
        return f"{nearest:,} among the distances is out of range"
    relation = _first_outside(relations, num_anchors, padding + 1)
    return None if relation is None else f"{relation:,} among the relations is out of range"


def _first_outside(
    values: IntArray, start: int, end: int, *, gap: tuple[int, int] | None = None
) -> int | None:
    """The first value that is not in [start, end), or is in a gap of that range."""
    flat = np.ascontiguousarray(values, np.int32).reshape(-1)
    if not len(flat):
        return None
    largest = int(flat.view(np.uint32).max())  # negative values are larger than all others
    is_in_range = largest < end and (not start or int(flat.min()) >= start)
    if is_in_range and (gap is None or largest < gap[0] or not _is_any_in(flat, *gap)):
        return None
    for first in range(0, len(flat), BLOCK):
        block = flat[first : first + BLOCK]
        is_outside = (block < start) | (block >= end)
        if gap is not None:
            is_outside |= (block >= gap[0]) & (block < gap[1])
        if is_outside.any():
            return int(block[is_outside][0])
    return None


def _is_any_in(flat: IntArray, start: int, end: int) -> bool:
    """Whether a value is in [start, end): it is that near to the start, as an unsigned number."""
    offsets = np.empty(BLOCK, np.int32)
    for first in range(0, len(flat), BLOCK):
        block = flat[first : first + BLOCK]
        offset = np.subtract(block, np.int32(start), out=offsets[: len(block)])
        if (offset.view(np.uint32) < np.uint32(end - start)).any():
            return True
    return False
