"""The best candidates of every query of a batch of scores."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.compiled import njit, prange
from nodepiece.graph.arrays import IntArray, LongArray

FloatRows = NDArray[np.float32]


class TopScores(NamedTuple):
    """The best candidates of all queries of a batch, query by query, best first."""

    row: LongArray  # (num_found,) which query, ascending
    place: IntArray  # (num_found,) the rank among the answers to the query, from 1
    candidate: IntArray  # (num_found,)
    score: FloatRows  # (num_found,)


def top_scores(scores: Tensor, top: int) -> TopScores:
    """The `top` largest scores of every row that are not -inf or NaN.

    scores: (batch, num_candidates). Of equal scores the smaller id comes first; on a GPU, any of
    those that tie for the last place may be chosen.
    """
    top = min(top, scores.shape[1])
    if scores.is_cuda:
        values, found = scores.topk(top, dim=1)
        by_id = found.argsort(dim=1)
        values, found = values.gather(1, by_id), found.gather(1, by_id)
        order = values.argsort(dim=1, descending=True, stable=True)
        best = values.gather(1, order).float().cpu().numpy()
        candidates = found.gather(1, order).int().cpu().numpy()
    else:
        rows = np.ascontiguousarray(scores.float().numpy())
        candidates, best = _best_of_rows(rows, top)
    is_found = np.isfinite(best) | np.isposinf(best)
    row, place = np.nonzero(is_found)
    return TopScores(row, (place + 1).astype(np.int32), candidates[is_found], best[is_found])


@njit(parallel=True, cache=True)
def _best_of_rows(scores: FloatRows, top: int) -> tuple[IntArray, FloatRows]:
    """Candidates and scores of the best, (batch, top) each; -inf behind the last one."""
    num_rows = len(scores)
    candidates = np.zeros((num_rows, top), np.int32)
    best = np.full((num_rows, top), -np.inf, np.float32)
    for row in prange(num_rows):
        _fill_row(scores[row], candidates[row], best[row])
    return candidates, best


@njit(cache=True)
def _fill_row(scores: FloatRows, heap: IntArray, value: FloatRows) -> None:
    """A heap of the best so far, with the worst of them at its root; then sorted, best first."""
    top, size = len(heap), 0
    for candidate in range(len(scores)):
        score = scores[candidate]
        if size == top:
            if score > value[0]:
                heap[0], value[0] = candidate, score
                _sink(heap, value, 0, top)
        elif score > -np.inf:
            at = size
            size += 1
            while at > 0:
                parent = (at - 1) // 2
                if not _is_worse(score, candidate, value[parent], heap[parent]):
                    break
                heap[at], value[at] = heap[parent], value[parent]
                at = parent
            heap[at], value[at] = candidate, score
    for last in range(size - 1, 0, -1):
        heap[0], heap[last] = heap[last], heap[0]
        value[0], value[last] = value[last], value[0]
        _sink(heap, value, 0, last)


@njit(cache=True, inline="always")
def _is_worse(score: float, candidate: int, other_score: float, other: int) -> bool:
    return score < other_score or (score == other_score and candidate > other)


@njit(cache=True)
def _sink(heap: IntArray, value: FloatRows, at: int, size: int) -> None:
    """Move an entry down until no entry below it is worse."""
    candidate, score = heap[at], value[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _is_worse(
            value[child + 1], heap[child + 1], value[child], heap[child]
        ):
            child += 1
        if not _is_worse(value[child], heap[child], score, candidate):
            break
        heap[at], value[at] = heap[child], value[child]
        at = child
    heap[at], value[at] = candidate, score
