"""The array types that stages pass to each other."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int32]  # ids, tokens, distances
LongArray = NDArray[np.int64]  # offsets into arrays that may be longer than 2^31
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

ScalarT = TypeVar("ScalarT", bound=np.generic)


def read_only(array: NDArray[ScalarT]) -> NDArray[ScalarT]:
    """A read-only view of an array, without a copy."""
    view = array.view()
    view.flags.writeable = False
    return view
