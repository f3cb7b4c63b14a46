"""nodepiece similar: the nodes with the most similar vectors."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from nodepiece.commands.bulk import TableFileOption, check_output_file, write_rows
from nodepiece.commands.console import JsonOption, count, err, out
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
from nodepiece.commands.progress import counted
from nodepiece.commands.train import DeviceOption
from nodepiece.errors import InputError
from nodepiece.graph.short_text import in_table


def similar(
    run: RunArgument,
    node: Annotated[
        str | None,
        typer.Option("--node", metavar="NAME", help="The node whose neighbours are shown."),
    ] = None,
    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", metavar="FILE", help="Several nodes: a file, one name a line."),
    ] = None,
    all_nodes: Annotated[bool, typer.Option("--all", help="All nodes of the graph.")] = False,
    top: Annotated[
        int, typer.Option("--top", min=1, metavar="N", help="How many neighbours of a node.")
    ] = 10,
    output: TableFileOption = None,
    exact: Annotated[
        bool | None,
        typer.Option(
            "--exact/--index",
            help="Compare all nodes, or use an index; by default an index for more than ten "
            "billion pairs.",
        ),
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
    """Show the nodes whose vectors are most similar to that of a node, or write those of many.

    The similarity is the cosine of two vectors. The neighbours are exact; for all nodes of a graph
    of more than 100,000 an index finds nearly all of them, in much less time. It is stored with the
    run, and stays in use after updates. A table has the columns node, neighbour, similarity and
    rank.
    """
    from nodepiece.inference.run import load
    from nodepiece.inference.similar import SIMILAR_SCHEMA
    from nodepiece.tasks.train import choose_device

    if [node is not None, nodes is not None, all_nodes].count(True) != 1:
        raise InputError("give one of --node NAME, --nodes FILE and --all")
    if output is None and node is None:
        raise InputError("the neighbours of many nodes are a table; give -o FILE.parquet, or -o -")
    if output is not None:
        check_output_file(output)
    names = [node] if node is not None else None if nodes is None else read_names(nodes)
    options = read_options(delimiter, header, columns, format)
    opened = load(run, device=choose_device(device))
    if graph is not None:
        opened = opened.on_graph(read_facts(graph, options), unseen_relations=unseen_relations)
    if facts is not None:
        opened = opened.with_facts(read_facts(facts, options))
    if output is not None:
        with counted("comparing", "nodes") as advance:
            tables = opened.similar_many(names, top, exact=exact, progress=advance)
            number = write_rows(output, SIMILAR_SCHEMA, tables)
        if output != "-":
            err.print(f"wrote {output}: {count(number, 'row')}", soft_wrap=True)
        return
    found = opened.similar(names, top=top, exact=exact).to_pylist()
    if as_json:
        near = [{"name": row["neighbour"], "similarity": row["similarity"]} for row in found]
        content = {"node": node, "neighbours": near}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("neighbour", overflow="fold")
    table.add_column("similarity", justify="right")
    for row in found:
        neighbour = in_table(row["neighbour"])
        table.add_row(str(row["rank"]), neighbour, f"{row['similarity']:.3f}")
    out.print(f"\n{node}", style="bold")
    out.print(table)
