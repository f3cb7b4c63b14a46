"""nodepiece embed: write node vectors, by name, to a Parquet file."""

from pathlib import Path
from typing import Annotated

import typer

from nodepiece.commands.console import count, log, readable_bytes, stage
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
    read_names,
)
from nodepiece.commands.train import DeviceOption
from nodepiece.errors import InputError


def embed(
    run: RunArgument,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            show_default=False,
            help="The Parquet file to write: node, vector.",
        ),
    ],
    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", metavar="FILE", help="Only these nodes: a file, one name a line."),
    ] = None,
    facts: FactsOption = None,
    graph: OtherGraphOption = None,
    unseen_relations: UnseenRelationsOption = "refuse",
    device: DeviceOption = None,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
) -> None:
    """Write the vectors of all nodes, or of some, to a Parquet file.

    With --facts, new nodes get vectors too, without training. With --graph, writes the vectors of
    all nodes of another graph.
    """
    from nodepiece.files import check_parquet
    from nodepiece.inference.run import load
    from nodepiece.inference.vector_file import write_vectors
    from nodepiece.tasks.train import choose_device

    if output.is_dir():
        raise InputError(f"{output} is a folder; name a file, such as {output}/vectors.parquet")
    check_parquet(output)
    names = None if nodes is None else read_names(nodes)
    options = read_options(delimiter, header, columns, format)
    opened = load(run, device=choose_device(device))
    if graph is not None:
        opened = opened.on_graph(read_facts(graph, options), unseen_relations=unseen_relations)
    if facts is not None:
        opened = opened.with_facts(read_facts(facts, options))
    with stage(f"writing {output}") as remarks:
        names = opened.node_names() if names is None else names
        write_vectors(names, opened.embed(names), output)
        remarks.append(count(len(names), "row"))
    log(f"wrote {output}: {count(len(names), 'node')}, {readable_bytes(output.stat().st_size)}")
