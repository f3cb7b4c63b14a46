"""Vectors by name in a file, in the format that its ending says."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodepiece.data.table_file import check_ending, write_table
from nodepiece.files import atomic_file

ROWS_AT_ONCE = 1 << 16
MATRIX = ".npy"  # has no place for names, so these are written beside it


def write_vectors(
    names: Sequence[str],
    vectors: NDArray[np.float32],
    path: str | Path,
    *,
    kind: str = "node",
) -> None:
    """Write one row for each node or relation: its name, and its vector as a list of fixed size.

    vectors: (num_names, dim). A .npy file has the matrix, and a file beside it (`names_file`) the
    names in the same order, as a JSON array. Each file is written atomically.
    """
    path = Path(path)
    check_vector_file(path)
    if path.suffix.lower() != MATRIX:
        schema = vector_schema(vectors.shape[1], kind)
        write_table(schema, vector_batches(names, vectors, schema), path)
        return
    with atomic_file(names_file(path)) as partial:
        partial.write_text(json.dumps(list(names), ensure_ascii=False), encoding="utf-8")
    with atomic_file(path) as partial, partial.open("wb") as file:
        np.save(file, np.asarray(vectors, np.float32), allow_pickle=False)


def check_vector_file(path: Path) -> None:
    """Refuse a file name whose ending is no format for vectors."""
    check_ending(path, MATRIX)


def names_file(path: Path) -> Path:
    """Where the names of the rows of a .npy file are: vectors.names.json for vectors.npy."""
    return path.with_suffix(".names.json")


def vector_schema(dim: int, kind: str) -> pa.Schema:
    return pa.schema(
        [
            pa.field(kind, pa.string(), nullable=False),
            pa.field("vector", pa.list_(pa.float32(), dim), nullable=False),
        ]
    )


def vector_batches(
    names: Sequence[str], vectors: NDArray[np.float32], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(names), ROWS_AT_ONCE):
        part = np.ascontiguousarray(vectors[start : start + ROWS_AT_ONCE], np.float32)
        lists = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), vectors.shape[1])
        rows = [pa.array(names[start : start + ROWS_AT_ONCE], pa.string()), lists]
        yield pa.record_batch(rows, schema=schema)
