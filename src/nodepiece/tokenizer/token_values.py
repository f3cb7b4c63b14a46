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
    flat = np.asarray(values).reshape(-1)
    if not len(flat):
        return None
    largest = int(flat.max())
    is_in_range = start <= int(flat.min()) and largest < end
    if is_in_range and (gap is None or largest < gap[0]):
        return None
    for first in range(0, len(flat), BLOCK):
        block = flat[first : first + BLOCK]
        is_outside = (block < start) | (block >= end)
        if gap is not None:
            is_outside |= (block >= gap[0]) & (block < gap[1])
        if is_outside.any():
            return int(block[is_outside][0])
    return None
