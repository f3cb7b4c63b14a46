"""Node vectors by name in a Parquet file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nodepiece.files import atomic_file, check_parquet

ROWS_AT_ONCE = 1 << 16


def write_vectors(names: Sequence[str], vectors: NDArray[np.float32], path: str | Path) -> None:
    """Write one row for each node: its name, and its vector as a list of fixed size.

    vectors: (num_names, dim). The file is written atomically.
    """
    check_parquet(Path(path))
    dim = vectors.shape[1]
    schema = pa.schema(
        [
            pa.field("node", pa.string(), nullable=False),
            pa.field("vector", pa.list_(pa.float32(), dim), nullable=False),
        ]
    )
    with (
        atomic_file(Path(path)) as partial,
        pq.ParquetWriter(partial, schema, compression="zstd") as writer,
    ):
        for start in range(0, len(names), ROWS_AT_ONCE):
            part = np.ascontiguousarray(vectors[start : start + ROWS_AT_ONCE], np.float32)
            lists = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), dim)
            rows = [pa.array(names[start : start + ROWS_AT_ONCE], pa.string()), lists]
            writer.write_batch(pa.record_batch(rows, schema=schema))
