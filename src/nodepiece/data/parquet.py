"""Facts as rows of a Parquet file."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nodepiece.data.blocks import Block, Reading, ReadOptions
from nodepiece.data.column_names import ROLES, Positions
from nodepiece.data.columns import choose_columns
from nodepiece.data.id_table import is_dense
from nodepiece.data.input_file import InputFile
from nodepiece.errors import InputError

BATCH_ROWS = 1 << 20


def read_parquet(file: InputFile, options: ReadOptions) -> Reading:
    """Three columns of strings or integers; the decimal digits of integers become names."""
    with opened_table(file) as table:
        names = table.schema_arrow.names
    at = choose_columns(names, options.chosen, file.label)
    columns = (names[at[0]], names[at[1]], names[at[2]])
    with opened_table(file) as table:
        largest = largest_ids(table, columns)
    return Reading("Parquet", parquet_blocks(file, at, largest), columns, largest=largest)


def parquet_blocks(
    file: InputFile, positions: Positions, largest: tuple[int, int] | None
) -> Iterator[Block]:
    with opened_table(file) as table:
        names = table.schema_arrow.names
        chosen = [names[position] for position in positions]
        if largest is None:
            yield from converted_blocks(table, chosen, file.label)
        else:
            yield from integer_blocks(table, chosen, largest, file.label)


def largest_ids(table: pq.ParquetFile, chosen: tuple[str, str, str]) -> tuple[int, int] | None:
    """The largest node and relation of columns of dense integers; None: they are read as text."""
    schema, num_rows = table.schema_arrow, table.metadata.num_rows
    if not all(pa.types.is_integer(schema.field(name).type) for name in chosen) or not num_rows:
        return None
    (head, relation, tail) = (limits(table, name) for name in chosen)
    smallest, largest = min(head[0], tail[0]), max(head[1], tail[1])
    if is_dense(smallest, largest, num_rows) and is_dense(*relation, num_rows):
        return largest, relation[1]
    return None


def limits(table: pq.ParquetFile, name: str) -> tuple[int, int]:
    """The smallest and the largest integer of a column, as its file says or by reading it."""
    place = table.schema_arrow.names.index(name)
    groups = [table.metadata.row_group(i) for i in range(table.metadata.num_row_groups)]
    is_flat = len(table.schema_arrow.names) == table.metadata.num_columns
    known = [group.column(place).statistics for group in groups] if is_flat else []
    if known and all(found is not None and found.has_min_max for found in known):
        return min(found.min for found in known), max(found.max for found in known)
    found = [pc.min_max(batch.column(0)).as_py() for batch in table.iter_batches(columns=[name])]
    values = [value for one in found for value in one.values() if value is not None]
    return min(values, default=0), max(values, default=0)


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


def integer_blocks(
    table: pq.ParquetFile, chosen: list[str], largest: tuple[int, int], label: str
) -> Iterator[Block]:
    """Blocks of integers, none of them missing, below 0 or above the largest."""
    first_row = 1
    for batch in table.iter_batches(batch_size=BATCH_ROWS, columns=chosen):
        columns = [batch.column(name) for name in chosen]
        for role, name, column in zip(ROLES, chosen, columns, strict=True):
            if column.null_count:
                as_names(column, f"the {role} (column {name!r})", first_row, label)
            found = pc.min_max(column).as_py()
            most = largest[1] if role == "relation" else largest[0]
            if len(column) and not 0 <= found["min"] <= found["max"] <= most:
                raise InputError(
                    f"{label}: column {name!r} has {found['min']} and {found['max']}, which the "
                    "statistics of the file exclude; write it again"
                )
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
