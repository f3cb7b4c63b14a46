"""nodepiece figures: how anchors are spread in a graph, for every way to choose them."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodepiece.commands.console import log, stage
from nodepiece.commands.graphs import (
    ColumnsOption,
    DataOption,
    DelimiterOption,
    FormatOption,
    GraphArgument,
    HeaderOption,
    read_options,
)
from nodepiece.commands.progress import counted
from nodepiece.errors import InputError

if TYPE_CHECKING:
    from nodepiece.report.anchor_study import StudySettings

NUMBERS = "anchors.json"
DEFAULT_ANCHORS, DEFAULT_PER_NODE = "25,50,100,500,1000", "5,10,20,30,50"


def figures(
    graph: GraphArgument,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FOLDER", help="The folder to write to."),
    ] = Path("figures"),
    anchors: Annotated[
        int, typer.Option("--anchors", min=1, metavar="N", help="|A| to compare strategies with.")
    ] = 1000,
    anchors_per_node: Annotated[
        int,
        typer.Option("--anchors-per-node", min=1, metavar="K", help="k to compare them with."),
    ] = 20,
    grid_anchors: Annotated[
        str, typer.Option("--grid-anchors", metavar="N,N,...", help="|A| of the grid.")
    ] = DEFAULT_ANCHORS,
    grid_per_node: Annotated[
        str, typer.Option("--grid-per-node", metavar="K,K,...", help="k of the grid.")
    ] = DEFAULT_PER_NODE,
    file_format: Annotated[
        str, typer.Option("--file-format", metavar="F", help="svg, png or pdf.")
    ] = "svg",
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Of all choices.")] = 0,
    data: DataOption = None,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
) -> None:
    """Draw how far nodes are from their anchors, and how many hashes differ, before training.

    Three figures, as in the paper's appendix: distances by the strategy that selects anchors, and
    by the number of anchors, with the k nearest and with k random ones; and mean distances and
    different hashes over a grid of |A| and k. The numbers are in anchors.json.
    """
    from nodepiece.data.open import open_graph
    from nodepiece.files import write_json
    from nodepiece.report.anchor_figures import draw_grid, draw_numbers, draw_strategies
    from nodepiece.report.anchor_study import StudySettings, study_anchors
    from nodepiece.report.style import check_figure, save_figure

    check_figure(output / f"grid.{file_format}")
    settings = StudySettings(
        num_anchors=anchors,
        anchors_per_node=anchors_per_node,
        anchor_numbers=parse_numbers(grid_anchors, "--grid-anchors"),
        per_node=parse_numbers(grid_per_node, "--grid-per-node"),
        seed=seed,
    )
    options = read_options(delimiter, header, columns, format)
    with stage("reading " + ("standard input" if graph == "-" else graph)) as remarks:
        facts, sentences = open_graph(graph, options=options, data=data)
        remarks += sentences
    name = "standard input" if graph == "-" else Path(graph).name
    with counted("tokenizing", "tokenizations") as advance:
        study = study_anchors(facts, settings, name=name, progress=advance)
    drawings = {"strategies": draw_strategies, "numbers": draw_numbers, "grid": draw_grid}
    output.mkdir(parents=True, exist_ok=True)
    for name, draw in drawings.items():
        save_figure(draw(study), output / f"{name}.{file_format}")
    write_json(output / NUMBERS, {"command": command(graph, settings), **study.to_json()})
    written = ", ".join(f"{name}.{file_format}" for name in drawings)
    log(f"wrote {output}: {written}, {NUMBERS}")


def command(graph: str, settings: "StudySettings") -> str:
    """The command that gives the same numbers."""
    words = ["nodepiece", "figures", graph, "--anchors", str(settings.num_anchors)]
    words += ["--anchors-per-node", str(settings.anchors_per_node)]
    words += ["--grid-anchors", ",".join(map(str, settings.anchor_numbers))]
    words += ["--grid-per-node", ",".join(map(str, settings.per_node))]
    return shlex.join([*words, "--seed", str(settings.seed)])


def parse_numbers(text: str, option: str) -> tuple[int, ...]:
    """Numbers such as "25,50,100", ascending, each once."""
    try:
        found = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise InputError(f"{option} takes numbers such as 25,50,100; got {text!r}") from None
    if found[0] < 1:
        raise InputError(f"{option} takes numbers of 1 or more; got {text!r}")
    return tuple(found)
