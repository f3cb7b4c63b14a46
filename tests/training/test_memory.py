"""Keeping freed memory."""

import numpy as np

from nodepiece.training.memory import keep_freed_memory


def test_arrays_can_be_made_and_freed_after_keeping_freed_memory() -> None:
    keep_freed_memory()
    for _ in range(3):
        array = np.ones(10_000_000)
        assert array.sum() == 10_000_000
        del array
