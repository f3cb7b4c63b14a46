"""Many small graphs are quickest on one thread; tests about threads set their own number."""

from collections.abc import Iterator

import numba
import pytest


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)
