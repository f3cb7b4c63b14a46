"""Array files that are written in blocks of rows, byte for byte as `np.save` writes them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import DTypeLike, NDArray


@contextmanager
def array_file(
    path: Path, shape: tuple[int, ...], dtype: DTypeLike
) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Yield a function that appends rows to an array file of the given shape."""
    kind, num_rows = np.dtype(dtype), 0
    with path.open("wb") as file:
        header = {
            "descr": npy_format.dtype_to_descr(kind),
            "fortran_order": False,
            "shape": shape,
        }
        npy_format.write_array_header_1_0(file, header)

        def append(rows: NDArray[Any]) -> None:
            nonlocal num_rows
            num_rows += len(rows)
            if rows.size:
                file.write(np.ascontiguousarray(rows, kind).reshape(-1).data)

        yield append
    if num_rows != shape[0]:
        raise ValueError(f"{path} was to have {shape[0]} rows and has {num_rows}")
