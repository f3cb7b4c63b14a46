"""Facts as rows of a Parquet file."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nodepiece.data.blocks import Block, Reading, ReadOptions
from nodepiece.data.column_names import ROLES, Positions
from nodepiece.data.columns import choose_columns
from nodepiece.data.input_file import InputFile
from nodepiece.errors import InputError

BATCH_ROWS = 1 << 20


def read_parquet(file: InputFile, options: ReadOptions) -> Reading:
    """Three columns of strings or integers; the decimal digits of integers become names."""
    with opened_table(file) as table:
        names = table.schema_arrow.names
    at = choose_columns(names, options.chosen, file.label)
    return Reading("Parquet", parquet_blocks(file, at), (names[at[0]], names[at[1]], names[at[2]]))


def parquet_blocks(file: InputFile, positions: Positions) -> Iterator[Block]:
    with opened_table(file) as table:
        names = table.schema_arrow.names
        chosen = [names[position] for position in positions]
        yield from converted_blocks(table, chosen, file.label)


@contextmanager
def opened_table(file: InputFile) -> Iterator[pq.ParquetFile]:
    try:
        with file.open() as stream, pq.ParquetFile(seekable(file, stream)) as table:
            yield table
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{file.label} cannot be read as Parquet: {error}; write it again, or give its --format"
        ) from error


def seekable(file: InputFile, stream: object) -> object:
    """A stream that can seek, as Parquet is read from its end; a compressed file is in memory."""
    return pa.BufferReader(file.arrow_stream().read_buffer()) if file.is_gzip else stream


def converted_blocks(table: pq.ParquetFile, chosen: list[str], label: str) -> Iterator[Block]:
    first_row = 1
    for batch in table.iter_batches(batch_size=BATCH_ROWS, columns=chosen):
        columns = [
            as_names(batch.column(name), f"the {role} (column {name!r})", first_row, label)
            for role, name in zip(ROLES, chosen, strict=True)
        ]
        yield Block(*columns)
        first_row += len(batch)


def as_names(column: pa.Array, what: str, first_row: int, label: str) -> pa.StringArray:
    """The column as strings, or an InputError that names the first row without a value."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    is_missing = pc.is_null(column, nan_is_null=True)
    if not pa.types.is_floating(column.type):
        column = cast_to_names(column, what, label)
        is_missing = pc.or_(is_missing, pc.fill_null(pc.equal(column, ""), False))
    missing = pc.index(is_missing, True).as_py()
    if missing >= 0:
        raise InputError(
            f"{label} row {first_row + missing:,}: {what} is empty; fill it in or leave the row out"
        )
    if pa.types.is_floating(column.type):
        refuse_type(column.type, what, label)
    return column


def cast_to_names(column: pa.Array, what: str, label: str) -> pa.StringArray:
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_binary(kind) or pa.types.is_integer(kind)):
        refuse_type(kind, what, label)
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise InputError(f"{label}: {what} is not UTF-8: {error}; write it as UTF-8") from error


def refuse_type(kind: pa.DataType, what: str, label: str) -> None:
    raise InputError(
        f"{label}: {what} holds {kind}, but names are strings or integers; convert the column"
    )
