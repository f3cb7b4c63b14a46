"""The array types that stages pass to each other."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int32]  # ids, tokens, distances
LongArray = NDArray[np.int64]  # offsets into arrays that may be longer than 2^31
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

ScalarT = TypeVar("ScalarT", bound=np.generic)


def positions_of_runs(starts: LongArray, counts: LongArray) -> tuple[LongArray, LongArray]:
    """Runs of `counts` positions from `starts` on: the run of each position, and the position.

    (num_runs,) each -> (num_positions,) each.
    """
    run = np.repeat(np.arange(len(counts)), counts)
    shift = starts - (np.cumsum(counts) - counts)
    return run, np.arange(len(run)) + shift[run]


def read_only(array: NDArray[ScalarT]) -> NDArray[ScalarT]:
    """A read-only view of an array, without a copy."""
    view = array.view()
    view.flags.writeable = False
    return view
