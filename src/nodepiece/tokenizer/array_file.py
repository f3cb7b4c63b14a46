"""Array files that are written in blocks of rows, byte for byte as `np.save` writes them.

With `part_bytes` the file is cut into parts of this size (`array_parts.py`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import DTypeLike, NDArray

from nodepiece.tokenizer.array_parts import PartWriter

BLOCK_BYTES = 1 << 24  # of a whole array, written at a time


@contextmanager
def array_file(
    path: Path, shape: tuple[int, ...], dtype: DTypeLike, part_bytes: int | None = None
) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Yield a function that appends rows to an array file of the given shape."""
    kind, num_rows = np.dtype(dtype), 0
    with path.open("wb") if part_bytes is None else PartWriter(path, part_bytes) as file:
        write_header(file, shape, kind)

        def append(rows: NDArray[Any]) -> None:
            nonlocal num_rows
            num_rows += len(rows)
            if rows.size:
                file.write(np.ascontiguousarray(rows, kind).reshape(-1).data)

        yield append
    if num_rows != shape[0]:
        raise ValueError(f"{path} was to have {shape[0]} rows and has {num_rows}")


def write_header(file: Any, shape: tuple[int, ...], dtype: DTypeLike) -> None:
    """Write what an array file has before its values."""
    descr = npy_format.dtype_to_descr(np.dtype(dtype))
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    npy_format.write_array_header_1_0(file, header)


def save_array(path: Path, array: NDArray[Any], part_bytes: int | None = None) -> None:
    """`np.save` for a plain array, in parts where their size is given."""
    if part_bytes is None:
        np.save(path, array)
        return
    row_bytes = max(1, array.itemsize * int(np.prod(array.shape[1:], dtype=np.int64)))
    step = max(1, BLOCK_BYTES // row_bytes)
    with array_file(path, array.shape, array.dtype, part_bytes) as append:
        for start in range(0, len(array), step):
            append(array[start : start + step])
