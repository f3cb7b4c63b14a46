"""The update of `RowAdam` on a CPU, in numba: each row is read and written once."""

from typing import Any

import numpy as np

from nodepiece.compiled import njit, prange


@njit(parallel=True, cache=True, error_model="numpy")
def update_rows(  # type: ignore[no-untyped-def]
    table: Any,  # (num_rows, dim)
    square: Any,  # (num_rows, dim)
    last: Any,  # (num_rows,)
    rows: Any,  # (num_distinct,)
    gradient: Any,  # (num_distinct, dim)
    constants: Any,  # (4,) of the type of the table: rate, decay, 1 - decay ** step, epsilon
    step: int,
):
    """Update rows in place; see `RowAdam.update`."""
    rate, decay, seen, epsilon = constants[0], constants[1], constants[2], constants[3]
    one = constants.dtype.type(1)
    for place in prange(len(rows)):
        row = rows[place]
        kept = constants.dtype.type(np.float64(decay) ** (step - last[row]))
        for column in range(table.shape[1]):
            slope = gradient[place, column]
            mean = square[row, column] * kept + (one - decay) * slope * slope
            square[row, column] = mean
            table[row, column] -= rate * slope / (np.sqrt(mean / seen) + epsilon)
        last[row] = step
