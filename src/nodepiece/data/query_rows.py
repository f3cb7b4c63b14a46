"""Queries, or facts to be scored, row by row: a bad row does not stop the others.

A query is a fact with one part left out: `?`, or nothing, in its place.
"""

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nodepiece.data.blocks import ReadOptions
from nodepiece.data.column_names import ROLES
from nodepiece.data.columns import choose_columns
from nodepiece.data.delimited import find_delimiter, readable, sample_lines
from nodepiece.data.formats import format_of
from nodepiece.data.header import has_header
from nodepiece.data.input_file import InputFile, open_source
from nodepiece.data.malformed import BLANKS, TextLayout, is_utf8, shown, split_rows, text_lines
from nodepiece.data.parquet import opened_table
from nodepiece.data.quoting import is_quoted
from nodepiece.errors import InputError

Part = str | None
Parts = tuple[Part, Part, Part]
NO_PARTS: Parts = (None, None, None)
CANDIDATES = {"tsv": "\t,; ", "csv": ",;\t "}  # of delimiters, the likeliest first


class NumberedParts(NamedTuple):
    """Head, relation and tail of a query or a fact, and its number: a line or a position."""

    number: int
    parts: Parts
    fault: str = ""  # what is wrong with the row, if it could not be read


@dataclass(frozen=True, eq=False)
class QueryFile:
    """A file of queries about to be read."""

    label: str
    rows: Iterator[NumberedParts]  # numbered as lines, or as rows of Parquet, from 1
    most_rows: int  # an upper bound of their number


@contextmanager
def open_query_file(source: str | Path, options: ReadOptions) -> Iterator[QueryFile]:
    """Yield the rows of a TSV, CSV, JSON lines or Parquet file, or of standard input (`-`)."""
    with open_source(source) as file:
        kind = options.format or format_of(file, source)
        if kind in CANDIDATES:
            yield QueryFile(file.label, text_rows(file, options, CANDIDATES[kind]), num_lines(file))
        elif kind == "jsonl":
            yield QueryFile(file.label, json_rows(file, options), num_lines(file))
        elif kind == "parquet":
            with opened_table(file) as table:
                names = table.schema_arrow.names
                number = table.metadata.num_rows
            at = choose_columns(names, options.chosen, file.label)
            rows = parquet_rows(file, [names[place] for place in at])
            yield QueryFile(file.label, rows, number)
        else:
            raise InputError(
                f"{file.label}: queries are read from TSV, CSV, JSON lines or Parquet, not from "
                f"{kind}; write head, relation and tail on each line, with ? for what is asked"
            )


def numbered(rows: Any) -> Iterator[NumberedParts]:
    """The rows of a list of triples, of an array, or of a table of head, relation and tail.

    Tables are those of Arrow, pandas and polars. Rows are numbered from 0.
    """
    if hasattr(rows, "__arrow_c_stream__"):
        rows = table_rows(pa.table(rows))
    elif hasattr(rows, "__array__"):
        rows = np.asarray(rows).tolist()
    if isinstance(rows, str):
        raise InputError(
            f"give a list of triples, such as [('Kenya', 'borders', '?')], not {rows!r}"
        )
    for number, row in enumerate(rows):
        yield checked(number, row)


def checked(number: int, row: Any) -> NumberedParts:
    if not isinstance(row, list | tuple) or len(row) != 3:
        return NumberedParts(number, NO_PARTS, f"expected head, relation and tail, got {row!r}")
    if wrong := [part for part in row if not isinstance(part, str | None)]:
        return NumberedParts(number, NO_PARTS, f"names are text, got {wrong[0]!r}")
    return NumberedParts(number, (row[0], row[1], row[2]))


def table_rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    if missing := [role for role in ROLES if role not in table.column_names]:
        raise InputError(
            f"the table has no column {missing[0]!r} but {', '.join(table.column_names)}; rename "
            "its columns to head, relation and tail"
        )
    for batch in table.select(ROLES).to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def num_lines(file: InputFile) -> int:
    with file.open() as stream:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(1 << 20), b"")) + 1


def text_rows(file: InputFile, options: ReadOptions, candidates: str) -> Iterator[NumberedParts]:
    layout = layout_of(file, options, candidates)
    with text_lines(file) as lines:
        rows = split_rows(lines, layout.delimiter, is_quoted=layout.is_quoted)
        try:
            for number, cells in rows:
                if number > layout.header_line:
                    yield row_of(number, cells, layout)
        except csv.Error as error:
            raise InputError(
                f"{file.label}: {error}; look for a quote that is not closed"
            ) from error


def layout_of(file: InputFile, options: ReadOptions, candidates: str) -> TextLayout:
    """Delimiter, header and columns; a first line that is neither is left to be reported."""
    lines = sample_lines(file)
    delimiter = find_delimiter(lines, options, candidates)
    quoted = delimiter != BLANKS and is_quoted(lines, delimiter, options, file.label)
    rows = readable(split_rows(lines, delimiter, is_quoted=quoted))
    number, cells = next(rows, (0, []))
    is_header = len(cells) >= 3 and has_header(cells, rows, options, f"{file.label} line {number}")
    if is_header or options.chosen is not None:
        at = choose_columns(cells, options.chosen, file.label, by_position=True)
        return TextLayout(delimiter, len(cells), at, number if is_header else 0, quoted)
    return TextLayout(delimiter, 3, (0, 1, 2), 0, quoted)


def row_of(number: int, cells: list[str], layout: TextLayout) -> NumberedParts:
    text = layout.delimiter.join(cells)
    if not is_utf8(text):
        return NumberedParts(number, NO_PARTS, f"not UTF-8: {shown(text)}")
    if len(cells) != layout.num_columns:
        return NumberedParts(
            number,
            NO_PARTS,
            f"expected {layout.num_columns} columns separated by {layout.words}, got {len(cells)}: "
            f"{shown(text)}",
        )
    head, relation, tail = (cells[place] for place in layout.positions)
    return NumberedParts(number, (head, relation, tail))


def json_rows(file: InputFile, options: ReadOptions) -> Iterator[NumberedParts]:
    """Objects, where a missing key or null is asked for, or arrays of three."""
    keys = options.chosen or ROLES
    with text_lines(file) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                fault = f"not JSON: {shown(line.strip())}"
                yield NumberedParts(number, NO_PARTS, fault)
                continue
            if isinstance(value, dict):
                value = [value.get(key) for key in keys]
            yield checked(number, value)


def parquet_rows(file: InputFile, columns: list[str]) -> Iterator[NumberedParts]:
    with opened_table(file) as table:
        first = 1
        for batch in table.iter_batches(batch_size=1 << 16, columns=columns):
            cells = [batch.column(name).to_pylist() for name in columns]
            for number, row in enumerate(zip(*cells, strict=True), start=first):
                yield checked(number, row)
            first += len(batch)
