"""nodepiece explain: why a run scores a fact as it does."""

import json
from pathlib import Path
from typing import Annotated

import typer

from nodepiece.commands.console import JsonOption, err
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
from nodepiece.commands.train import DeviceOption
from nodepiece.errors import InputError


def explain(
    run: RunArgument,
    head: Annotated[
        str, typer.Option("--head", metavar="NAME", help="The node that the fact starts from.")
    ],
    relation: Annotated[
        str,
        typer.Option("--relation", metavar="NAME", help='The relation, or "inverse of" one.'),
    ],
    tail: Annotated[
        str, typer.Option("--tail", metavar="NAME", help="The node that the fact leads to.")
    ],
    paths: Annotated[
        int, typer.Option("--paths", min=0, metavar="N", help="How many paths at most.")
    ] = 5,
    necessary: Annotated[
        int,
        typer.Option("--necessary", min=0, metavar="N", help="How many necessary facts at most."),
    ] = 4,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="FILE", help="Also draw the paths, as an SVG file."),
    ] = None,
    as_json: JsonOption = False,
    graph: OtherGraphOption = None,
    unseen_relations: UnseenRelationsOption = "refuse",
    facts: FactsOption = None,
    device: DeviceOption = None,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
) -> None:
    """Explain the score and the rank of a fact, known or not.

    Prints the best paths from head to tail and what they add to the score; the pieces that both
    nodes have, and those that carry the score; the necessary facts, without which the answer would
    fall, found by leaving facts out and computing tokens and vectors again, without training; and
    facts of the graph with the same relation between similar nodes. The run does not change.
    After nodepiece calibrate, also the probability by both queries, for the tail and for the head,
    and that by each of them, as nodepiece predict has it.
    """
    from nodepiece.files import atomic_file
    from nodepiece.inference.run import load
    from nodepiece.tasks.train import choose_device

    if svg is not None and svg.suffix.lower() != ".svg":
        raise InputError(f"{svg} should end in .svg")
    options = read_options(delimiter, header, columns, format)
    opened = load(run, device=choose_device(device))
    if graph is not None:
        opened = opened.on_graph(read_facts(graph, options), unseen_relations=unseen_relations)
    if facts is not None:
        opened = opened.with_facts(read_facts(facts, options))
    found = opened.explain(head=head, relation=relation, tail=tail, paths=paths, facts=necessary)
    if svg is not None:
        with atomic_file(svg) as partial:
            partial.write_text(found.to_svg(), encoding="utf-8")
        err.print(f"wrote {svg}", soft_wrap=True)
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
    else:
        typer.echo(str(found))
