"""Options and readers for new facts, other graphs and lists of names."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodepiece.commands.console import stage
from nodepiece.errors import InputError

if TYPE_CHECKING:
    from nodepiece.data.blocks import ReadOptions
    from nodepiece.graph.knowledge_graph import KnowledgeGraph

FactsOption = Annotated[
    str | None,
    typer.Option(
        "--facts",
        metavar="FILE",
        help="Answer as if these facts were known too; they may name new nodes, and are not "
        "stored. Any format that GRAPH may have, or - for standard input.",
    ),
]
OtherGraphOption = Annotated[
    str | None,
    typer.Option(
        "--graph",
        metavar="GRAPH",
        help="Use another graph with the relations of training: a file, a folder with a "
        "train file, or - (runs of inductive link prediction).",
    ),
]
UnseenRelationsOption = Annotated[
    str,
    typer.Option(
        "--unseen-relations",
        metavar="HOW",
        help="Relations of GRAPH that training did not have: refuse them, or use the mean vector "
        "of all relations (mean).",
    ),
]


def read_facts(source: str, options: "ReadOptions") -> "KnowledgeGraph":
    """Read facts by name, and report on standard error what was read."""
    from nodepiece.data.read import read_graph_with_report

    with stage("reading " + ("standard input" if source == "-" else source)) as remarks:
        facts, report = read_graph_with_report(source, options=options)
        remarks += [line.removeprefix(f"{report.source}: ") for line in report.sentences()]
    return facts


def read_names(path: Path) -> list[str]:
    """Read a file with one name a line; empty lines are skipped."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}; give one with a node name a line") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text; give a file with a node name a line"
        ) from error
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}); give a file with a node name a line"
        ) from error
    names = [line for line in lines if line]
    if not names:
        raise InputError(f"{path} names no nodes; write one name a line")
    return names
