"""Facts in blocks of rows: in one pass over a mapped file, one block is resident at a time."""

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK_ROWS = 1 << 21


def fact_blocks(triples: NDArray[Any], rows: int = BLOCK_ROWS) -> Iterator[NDArray[Any]]:
    """The rows of an array in order, in blocks; pages of a mapped file are released after use."""
    file = mapped_file(triples)
    for start in range(0, len(triples), rows):
        yield triples[start : start + rows]
        if file is not None:
            release_pages(file)


def mapped_file(array: NDArray[Any]) -> mmap.mmap | None:
    """The read-only map that an array is a view of; None: it is in memory."""
    base: Any = array
    while isinstance(base, np.ndarray) and base.base is not None:
        if isinstance(base, np.memmap) and base.mode != "r":
            return None
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def release_pages(file: mmap.mmap) -> None:
    """Give the resident pages of a map back to the system, which reads them again when needed."""
    if hasattr(mmap, "MADV_DONTNEED"):  # Linux
        file.madvise(mmap.MADV_DONTNEED)
