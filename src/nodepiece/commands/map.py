"""nodepiece map: the nodes of a run in two dimensions, as a page or a picture."""

from pathlib import Path
from typing import Annotated

import typer

from nodepiece.commands.console import count, log, stage
from nodepiece.commands.evaluate import RunArgument
from nodepiece.commands.graphs import (
    ColumnsOption,
    DelimiterOption,
    FormatOption,
    HeaderOption,
    read_options,
)
from nodepiece.commands.new_facts import (
    FactsOption,
    OtherGraphOption,
    UnseenRelationsOption,
    read_facts,
)
from nodepiece.commands.progress import counted
from nodepiece.commands.train import DeviceOption


def map(
    run: RunArgument,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            show_default=False,
            help="The file to write: .html (a page to look around in), .png, .svg or .pdf.",
        ),
    ],
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="t-sne, or umap.")
    ] = "t-sne",
    group_by: Annotated[
        str,
        typer.Option(
            "--group-by",
            metavar="WHAT",
            help="Colours: relation, the commonest of a node, or anchor, a common one near it.",
        ),
    ] = "relation",
    tails_of: Annotated[
        str | None,
        typer.Option(
            "--tails-of",
            metavar="RELATION",
            help="Colours: the tail that a node has with this relation, such as its continent.",
        ),
    ] = None,
    grouped_only: Annotated[
        bool, typer.Option("--grouped-only", help="Leave out nodes that are in no group.")
    ] = False,
    max_nodes: Annotated[
        int,
        typer.Option("--max-nodes", min=1, metavar="N", help="Of more nodes, a random sample."),
    ] = 100_000,
    anchors: Annotated[
        int, typer.Option("--anchors", min=0, metavar="N", help="Mark so many common anchors.")
    ] = 100,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Of the layout.")] = 0,
    facts: FactsOption = None,
    graph: OtherGraphOption = None,
    unseen_relations: UnseenRelationsOption = "refuse",
    device: DeviceOption = None,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
) -> None:
    """Draw the nodes of a run as a map: near each other if their vectors are similar.

    The page has the name of a node under the mouse, a search, and groups to switch on and off; it
    needs nothing from a network. Needs the extra `figures`.
    """
    from nodepiece.inference.run import load
    from nodepiece.report.map import MapSettings, map_run
    from nodepiece.report.map_output import check_map_file, write_map
    from nodepiece.tasks.train import choose_device

    check_map_file(output)
    settings = MapSettings(method, group_by, tails_of, grouped_only, max_nodes, anchors, seed)
    options = read_options(delimiter, header, columns, format)
    opened = load(run, device=choose_device(device))
    if graph is not None:
        opened = opened.on_graph(read_facts(graph, options), unseen_relations=unseen_relations)
    if facts is not None:
        opened = opened.with_facts(read_facts(facts, options))
    with counted(f"placing nodes by {method}", "iterations") as advance:
        found = map_run(opened, settings, progress=advance)
    heading = {"relation": "Commonest relation", "anchor": "A common anchor near it"}[group_by]
    with stage(f"writing {output}"):
        title = f"Map of {run.resolve().name}"
        write_map(found, output, title=title, grouping=tails_of or heading)
    log(f"wrote {output}: {count(len(found.names), 'node')}, {found.method}")
