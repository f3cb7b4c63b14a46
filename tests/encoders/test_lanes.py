"""Lanes of numbers in a numba kernel, against NumPy."""

from typing import Any

import numpy as np
import pytest
from numba import njit

from nodepiece.encoders.lanes import (
    LANES,
    fill,
    larger,
    load,
    smaller,
    square_root,
    store,
    where_equal,
    where_larger,
)


@njit
def all_operations(one, other, number, found):  # type: ignore[no-untyped-def]
    """Each operation on the lanes of two arrays, the second from its third number on."""
    a, b = load(one, 0), load(other, 2)
    store(found, 0, a + b)
    store(found, LANES, a - b)
    store(found, 2 * LANES, a * b)
    store(found, 3 * LANES, a / b)
    store(found, 4 * LANES, larger(a, b))
    store(found, 5 * LANES, smaller(a, b))
    store(found, 6 * LANES, square_root(a * a))
    store(found, 7 * LANES, where_equal(a, b, a))
    store(found, 8 * LANES, fill(found, number))
    store(found, 9 * LANES, where_larger(a, b, a))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_operation_is_that_of_numpy(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    one, other = (rng.standard_normal(size).astype(dtype) for size in (LANES, LANES + 2))
    b = other[2:]
    b[5] = one[5]
    found = np.full((11, LANES), 7, dtype)
    all_operations(one, other, 3, found.reshape(-1))
    expected = [one + b, one - b, one * b, one / b, np.maximum(one, b), np.minimum(one, b)]
    expected += [np.abs(one), np.where(one == b, one, 0), np.full(LANES, 3)]
    expected += [np.where(one > b, one, 0), np.full(LANES, 7)]
    np.testing.assert_array_equal(found, np.array(expected, dtype))
