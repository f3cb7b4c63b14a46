"""What GRAPH on the command line stands for, and the options for reading it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodepiece.errors import InputError

if TYPE_CHECKING:
    from nodepiece.data.blocks import Column, ReadOptions
    from nodepiece.graph.knowledge_graph import KnowledgeGraph

READING = "Reading the file (detected unless given)"  # a box of the help

GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        show_default=False,
        help="A file (TSV, CSV, Parquet, N-Triples, Turtle; also .gz), a folder with a train file, "
        "- for standard input, the name of a benchmark (see: nodepiece datasets), or countries, "
        "the graph that comes with nodepiece.",
    ),
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(
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
        metavar="H,R,T",
        help="Head, relation and tail by name or by position counted from 0, such as 0,2,1.",
        rich_help_panel=READING,
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        metavar="F",
        help="tsv, csv, parquet, nt or ttl.",
        rich_help_panel=READING,
    ),
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        show_default=False,
        help="The folder of benchmarks; $NODEPIECE_DATA and the user's cache are searched next.",
    ),
]


def read_options(
    delimiter: str | None, header: bool | None, columns: str | None, format: str | None
) -> "ReadOptions":
    from nodepiece.data.blocks import ReadOptions

    return ReadOptions(delimiter, header, parse_columns(columns) if columns else None, format)


def parse_columns(text: str) -> "tuple[Column, Column, Column]":
    """Such as "subject,predicate,object" or "0,2,1"."""
    parts = [int(part) if part.isdigit() else part for part in text.split(",")]
    if len(parts) != 3:
        raise InputError(
            f"--columns takes three names or positions, such as head,relation,tail; got {text!r}"
        )
    return parts[0], parts[1], parts[2]


def find_graph(
    graph: str, *, options: "ReadOptions", data: Path | None
) -> "tuple[KnowledgeGraph, list[str]]":
    """The graph, and what there is to say of its reading. A path that exists wins over a name."""
    from nodepiece.data.blocks import DETECT_EVERYTHING
    from nodepiece.data.embedded import load_countries
    from nodepiece.data.open import EMBEDDED, check_known
    from nodepiece.data.read import read_graph_with_report

    if graph == "-" or Path(graph).exists():
        read, report = read_graph_with_report(graph, options=options)
        first, *others = report.sentences()
        return read, [first.removeprefix(f"{report.source}: "), *others]
    check_known(graph)
    if options != DETECT_EVERYTHING:
        raise InputError(
            f"{graph} is a known dataset, and the options for reading a file do not go with it; "
            "leave out --delimiter, --header, --columns and --format"
        )
    if graph == EMBEDDED:
        countries = load_countries().train
        return countries, [f"{countries.num_triples:,} facts"]
    return load_training_graph(graph, data)


def load_training_graph(name: str, data: Path | None) -> "tuple[KnowledgeGraph, list[str]]":
    """What there is to learn from in a benchmark of any kind, without its held-out facts."""
    from nodepiece.data.benchmarks import CLASSES, INDUCTIVE, OGB, locate_benchmark
    from nodepiece.data.blocks import ReadOptions
    from nodepiece.data.read import read_graph_with_report

    location = locate_benchmark(name, data=data)
    task = location.benchmark.task
    if task == OGB:
        from nodepiece.data.ogb import read_ogb_training_graph

        graph = read_ogb_training_graph(location.files)
        return graph, [f"{location.folder}: {graph.num_triples:,} facts"]
    part = {INDUCTIVE: "training/train", CLASSES: "edges"}.get(task, "train")
    graph, report = read_graph_with_report(location.files[part], options=ReadOptions(header=False))
    return graph, report.sentences()
