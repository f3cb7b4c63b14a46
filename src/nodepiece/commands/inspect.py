"""nodepiece inspect: statistics of a vocabulary, or the pieces of one node."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodepiece.commands.console import JsonOption, count, err, out
from nodepiece.commands.export import VocabularyArgument
from nodepiece.commands.tables import rows, show_statistics
from nodepiece.errors import InputError

if TYPE_CHECKING:
    from nodepiece.tokenizer.statistics import TokenStatistics
    from nodepiece.tokenizer.tokens import TokenTable
    from nodepiece.tokenizer.vocabulary import Vocabulary

MAX_SHOWN = 10  # nodes that look alike


def inspect(
    vocabulary: VocabularyArgument,
    as_json: JsonOption = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Also draw the distances: .png, .svg or .pdf."),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(
            "--node",
            metavar="NAME",
            help="Show the pieces of this node, and nodes that share them.",
        ),
    ] = None,
    dim: Annotated[
        int, typer.Option("--dim", min=1, help="Dimension of a vector, to compare memory.")
    ] = 200,
) -> None:
    """Show sizes, distances, how many nodes have the same pieces, and the memory saved."""
    from nodepiece.tokenizer.statistics import describe_tokens
    from nodepiece.tokenizer.storage import load_tokens

    table = load_tokens(vocabulary)
    if node is not None:
        inspect_node(table, node, as_json=as_json)
    if node is not None and plot is None:
        return
    statistics = describe_tokens(table)
    if node is None:
        inspect_all(table, statistics, str(vocabulary), dim=dim, as_json=as_json)
    if plot is not None:
        from nodepiece.report.distances import plot_distances

        plot_distances(statistics, plot, name=vocabulary.resolve().name)
        err.print(f"wrote {plot}", soft_wrap=True)


def inspect_all(
    table: "TokenTable", statistics: "TokenStatistics", title: str, *, dim: int, as_json: bool
) -> None:
    from nodepiece.tokenizer.statistics import compare_memory

    memory = compare_memory(table, dim)
    if not as_json:
        show_statistics(table.vocabulary, statistics, memory, title=title)
        return
    content = {
        "vocabulary": title,
        "num_pieces": len(table.vocabulary),
        "settings": asdict(table.vocabulary.settings),
        "statistics": statistics.to_json(),
        "memory": memory.to_json(),
    }
    typer.echo(json.dumps(content, indent=2))


def inspect_node(table: "TokenTable", name: str, *, as_json: bool) -> None:
    described = describe_node(table, find_node(table.vocabulary, name))
    if as_json:
        typer.echo(json.dumps(described, indent=2, ensure_ascii=False))
    else:
        show_node(described)


def find_node(vocabulary: "Vocabulary", name: str) -> int:
    if vocabulary.names is not None:
        return vocabulary.names.node_id(name)
    if name.isdigit() and int(name) < vocabulary.num_nodes:
        return int(name)
    raise InputError(
        f"unknown node {name!r}; this vocabulary has no names, so give an id from 0 to "
        f"{vocabulary.num_nodes - 1}"
    )


def describe_node(table: "TokenTable", node: int) -> dict[str, Any]:
    """The pieces of a node, without [PAD], and the nodes that have the same or many of them."""
    import numpy as np

    from nodepiece.tokenizer.similarity import nodes_sharing, shared_pieces

    vocabulary = table.vocabulary
    name = vocabulary.node_name
    anchors = [token for token in table.anchors[node].tolist() if token < vocabulary.num_anchors]
    relations = [token for token in table.relations[node].tolist() if token < vocabulary.padding]
    shared = shared_pieces(table, node)
    shared[node] = 0
    alike = [other for other in np.argsort(-shared, kind="stable")[:MAX_SHOWN] if shared[other]]
    return {
        "node": name(node),
        "anchors": [vocabulary.token_name(token) for token in anchors],
        "distances": table.distances[node][: len(anchors)].tolist(),
        "relations": [vocabulary.token_name(token) for token in relations],
        "same_pieces": [name(other) for other in nodes_sharing(table, node)],
        "most_pieces_shared": {name(int(other)): int(shared[other]) for other in alike},
    }


def show_node(described: dict[str, Any]) -> None:
    out.print(f"\n{described['node']}", style="bold")
    same, alike = described["same_pieces"], described["most_pieces_shared"]
    others = ", ".join(same[:MAX_SHOWN]) or "no other node"
    if len(same) > MAX_SHOWN:
        others += f" and {len(same) - MAX_SHOWN:,} more"
    num_pieces = len(described["anchors"]) + len(described["relations"])
    out.print(
        rows(
            [
                *anchors_by_distance(described["anchors"], described["distances"]),
                ("relations", ", ".join(described["relations"]) or "none"),
                (f"all {num_pieces} pieces shared by", others),
                (
                    "most pieces shared by",
                    ", ".join(f"{name} ({shared})" for name, shared in alike.items())
                    or "no other node",
                ),
            ]
        )
    )
    out.print()


def anchors_by_distance(anchors: list[str], distances: list[int]) -> list[tuple[str, str]]:
    """A row for each distance, or a single row where distances are not kept."""
    if not anchors:
        return [("anchors", "none: no anchor can be reached")]
    names: dict[int, list[str]] = {}
    for anchor, distance in zip(anchors, distances, strict=True):
        names.setdefault(distance, []).append(anchor)
    return [
        (f"anchors at {count(hops, 'hop')}" if hops >= 0 else "anchors", ", ".join(names[hops]))
        for hops in names
    ]
