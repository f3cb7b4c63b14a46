"""Queries and facts by the file: reading them, reporting bad lines, writing tables of results."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodepiece.commands.console import count, err
from nodepiece.commands.progress import Advance, counted
from nodepiece.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from nodepiece.data.blocks import ReadOptions
    from nodepiece.data.query_rows import QueryFile
    from nodepiece.inference.bulk import OnRefused
    from nodepiece.inference.queries import Refused

    TablesOf = Callable[[QueryFile, OnRefused, Advance], Iterator[pa.Table]]

STANDARD_OUTPUT = "-"
BULK = "Many at once"  # a box of the help
MAX_SHOWN = 20  # bad lines that are printed; the others are counted

OUTPUT_HELP = (
    "The file to write: .parquet, .csv, .tsv or .jsonl; or - for JSON lines on standard output."
)
OutputOption = Annotated[
    str,
    typer.Option("-o", "--output", metavar="FILE", help=OUTPUT_HELP, rich_help_panel=BULK),
]
TableFileOption = Annotated[  # of commands that print where no file is given
    str | None, typer.Option("-o", "--output", metavar="FILE", help=OUTPUT_HELP)
]
SkipUnknownOption = Annotated[
    bool,
    typer.Option(
        "--skip-unknown",
        help="Skip lines that name unknown nodes or relations, and count them.",
        rich_help_panel=BULK,
    ),
]


@dataclass
class BadLines:
    """What is reported about lines that were left out."""

    label: str
    skip_unknown: bool
    num_skipped: int = 0
    num_bad: int = 0

    def add(self, refused: "Refused") -> None:
        if self.skip_unknown and refused.is_unknown:
            self.num_skipped += 1
            return
        self.num_bad += 1
        if self.num_bad <= MAX_SHOWN:
            line = f"{self.label} line {refused.number:,}: {refused.reason}"
            err.print(line, style="red", soft_wrap=True)
        elif self.num_bad == MAX_SHOWN + 1:
            err.print("more lines like these are counted", style="red")

    def sentence(self) -> str:
        """What was left out, in words; empty if nothing was."""
        parts = []
        if self.num_skipped:
            parts.append(f"skipped {count(self.num_skipped, 'line')} with unknown names")
        if self.num_bad:
            parts.append(f"left out {count(self.num_bad, 'bad line')}")
        return ", ".join(parts)


def write_tables(
    source: str,
    output: str,
    options: "ReadOptions",
    *,
    schema: "pa.Schema",
    noun: str,
    skip_unknown: bool,
    tables_of: "TablesOf",
) -> None:
    """Read lines, compute tables of them, and write these as they come.

    Bad lines are reported, and do not keep the others from being written; but then the exit status
    is 2.
    """
    from nodepiece.data.query_rows import open_query_file

    check_output_file(output)
    read_errors: list[OSError] = []
    write_error: OSError | None = None
    num_rows = 0
    with open_query_file(source, options) as file:  # which reports errors of the system as its own
        bad, most = BadLines(file.label, skip_unknown), file.most_rows
        with counted(file.label, noun) as advance:
            tables = tables_of(file, bad.add, lambda done, _: advance(done, max(done, most)))
            try:
                num_rows = write_rows(output, schema, watched(tables, read_errors))
            except OSError as error:
                if error in read_errors:
                    raise
                write_error = error
    if write_error is not None:
        raise write_error
    if output != STANDARD_OUTPUT:
        err.print(f"wrote {output}: {count(num_rows, 'row')}", soft_wrap=True)
    if bad.num_bad:
        raise InputError(
            f"{bad.sentence()} of {bad.label}, and wrote the results of the others; fix these lines"
        )
    if bad.num_skipped:
        err.print(bad.sentence(), soft_wrap=True)


def watched(tables: "Iterator[pa.Table]", read_errors: list[OSError]) -> "Iterator[pa.Table]":
    """The tables; errors of the system while they are computed are added to a list."""
    try:
        yield from tables
    except OSError as error:
        read_errors.append(error)
        raise


def check_output_file(output: str) -> None:
    """Refuse a name whose ending is no format for tables, before the work begins."""
    from nodepiece.data.table_file import check_ending

    if output != STANDARD_OUTPUT:
        check_ending(Path(output))


def write_rows(output: str, schema: "pa.Schema", tables: "Iterable[pa.Table]") -> int:
    """Write tables as they come to a file, or as JSON lines; returns the number of rows."""
    from nodepiece.data.table_file import json_lines, write_table

    num_rows = 0

    def batches() -> "Iterator[pa.RecordBatch]":
        nonlocal num_rows
        for table in tables:
            num_rows += len(table)
            yield from table.to_batches()

    if output == STANDARD_OUTPUT:
        for batch in batches():
            try:
                sys.stdout.writelines(json_lines(batch))
                sys.stdout.flush()
            except BrokenPipeError:  # the reader has enough, as `head` has
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit from None
    else:
        write_table(schema, batches(), Path(output))
    return num_rows
