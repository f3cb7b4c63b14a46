"""The argument GRAPH of several commands, and the options for reading it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nodepiece.data.blocks import ReadOptions

READING = "Reading the file (detected unless given)"  # a box of the help

GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        show_default=False,
        help="A file (TSV, CSV, JSON lines, Parquet, N-Triples, N-Quads, Turtle, TriG, RDF/XML; "
        "also .gz), a folder with a train file, - for standard input, the name of a benchmark (see "
        "nodepiece datasets), or countries, the graph that comes with nodepiece.",
    ),
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="C",
        help="What separates columns: a character, or tab, comma, semicolon, blanks.",
        rich_help_panel=READING,
    ),
]
HeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line names the columns.",
        rich_help_panel=READING,
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="H,R,T",
        help="Head, relation and tail by name or by position counted from 0, such as src,type,dst "
        "or 0,2,1.",
        rich_help_panel=READING,
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="F",
        help="tsv, csv, jsonl, parquet, nt, ttl, nq, trig, rdf (RDF/XML) or npy (ids).",
        rich_help_panel=READING,
    ),
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        show_default=False,
        help="The folder of benchmarks; $NODEPIECE_DATA and the user's cache are searched next.",
    ),
]


def read_options(
    delimiter: str | None, header: bool | None, columns: str | None, format: str | None
) -> "ReadOptions":
    from nodepiece.data.blocks import ReadOptions

    return ReadOptions(delimiter, header, columns, format)


def reading_overrides(options: "ReadOptions") -> list[str]:
    """The options as settings of an experiment, such as 'reading.columns=["src","rel","dst"]'."""
    return [
        f"reading.{name}={json.dumps(value, separators=(',', ':'), ensure_ascii=False)}"
        for name, value in options.given().items()
    ]
