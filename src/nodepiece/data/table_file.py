"""Tables as files, in the format that the ending of the name says."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from nodepiece.errors import InputError
from nodepiece.files import atomic_file

Sink = Callable[[pa.RecordBatch], None]


def write_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: Path) -> None:
    """Write batches of rows to a file, atomically: .parquet, .csv, .tsv or .jsonl.

    In .csv and .tsv a list of fixed size, such as a vector, is a column for each element, named
    vector_0, vector_1 and so on; any other list is a JSON array in one cell.
    """
    check_ending(path)
    with atomic_file(path) as partial, TABLE_FORMATS[path.suffix.lower()](partial, schema) as write:
        for batch in batches:
            write(batch)


def check_ending(path: Path, *others: str) -> None:
    """Refuse a file name whose ending is none of the formats for tables, nor of `others`."""
    known = [*TABLE_FORMATS, *others]
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file, such as {path / 'table.parquet'}")
    if path.suffix.lower() not in known:
        raise InputError(
            f"cannot write {path}: the ending says the format; use one of {', '.join(known)}"
        )


@contextmanager
def parquet_sink(path: Path, schema: pa.Schema) -> Iterator[Sink]:
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        yield writer.write_batch


@contextmanager
def csv_sink(path: Path, schema: pa.Schema) -> Iterator[Sink]:
    with delimited_sink(path, schema, ",") as write:
        yield write


@contextmanager
def tsv_sink(path: Path, schema: pa.Schema) -> Iterator[Sink]:
    with delimited_sink(path, schema, "\t") as write:
        yield write


@contextmanager
def delimited_sink(path: Path, schema: pa.Schema, delimiter: str) -> Iterator[Sink]:
    flat = flat_batch(schema.empty_table().combine_chunks(), schema).schema
    options = pa_csv.WriteOptions(delimiter=delimiter)
    with pa_csv.CSVWriter(path, flat, write_options=options) as writer:
        yield lambda batch: writer.write(flat_batch(batch, schema))


def flat_batch(batch: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows without lists, which a cell cannot hold."""
    columns: dict[str, pa.Array] = {}
    for field in schema:
        column = batch.column(field.name)
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_fixed_size_list(field.type):
            size = field.type.list_size
            values = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, size)
            for place in range(size):
                columns[f"{field.name}_{place}"] = pa.array(values[:, place])
        elif pa.types.is_list(field.type):
            cells = [None if row is None else as_json(row) for row in column.to_pylist()]
            columns[field.name] = pa.array(cells, pa.string())
        else:
            columns[field.name] = column
    return pa.table(columns)


@contextmanager
def json_lines_sink(path: Path, schema: pa.Schema) -> Iterator[Sink]:
    with path.open("w", encoding="utf-8") as file:
        yield lambda batch: file.writelines(json_lines(batch))


def json_lines(batch: pa.RecordBatch | pa.Table) -> Iterator[str]:
    """A JSON object for each row, with a line end."""
    shorten = [field.name for field in batch.schema if is_single_precision(field.type)]
    for row in batch.to_pylist():
        for name in shorten:
            row[name] = short_numbers(row[name])
        yield as_json(row) + "\n"


def is_single_precision(kind: pa.DataType) -> bool:
    return kind == (pa.float32()) or (pa.types.is_nested(kind) and kind.value_type == pa.float32())


def short_numbers(value: Any) -> Any:
    """float32 with the digits that it has: 0.1, and not 0.10000000149011612."""
    if isinstance(value, list):
        return [float(str(np.float32(number))) for number in value]
    return None if value is None else float(str(np.float32(value)))


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


TABLE_FORMATS = {
    ".parquet": parquet_sink,
    ".csv": csv_sink,
    ".tsv": tsv_sink,
    ".jsonl": json_lines_sink,
}
