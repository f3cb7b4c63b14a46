"""nodepiece update: change the stored graph of a run, without training."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodepiece.commands.console import JsonOption, count, log, stage
from nodepiece.commands.evaluate import RunArgument
from nodepiece.commands.graphs import (
    ColumnsOption,
    DelimiterOption,
    FormatOption,
    HeaderOption,
    read_options,
)
from nodepiece.commands.new_facts import read_facts, read_names
from nodepiece.commands.train import DeviceOption
from nodepiece.errors import InputError

if TYPE_CHECKING:
    from nodepiece.inference.update import Updated


def update(
    run: RunArgument,
    add: Annotated[
        str | None,
        typer.Option("--add", metavar="FILE", help="Facts to add; they may name new nodes."),
    ] = None,
    remove: Annotated[
        str | None, typer.Option("--remove", metavar="FILE", help="Facts to remove.")
    ] = None,
    remove_nodes: Annotated[
        Path | None,
        typer.Option(
            "--remove-nodes",
            metavar="FILE",
            help="Nodes to remove with all their facts: a file, one name a line.",
        ),
    ] = None,
    keep_vectors: Annotated[
        bool,
        typer.Option(
            "--keep-vectors",
            help="Compute all node vectors now and store them with the run, so that later queries "
            "need not. The first update of a run does so too.",
        ),
    ] = False,
    as_json: JsonOption = False,
    device: DeviceOption = None,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
) -> None:
    """Add facts and nodes to the stored graph of RUN, or remove them.

    Pieces and vectors of new nodes, and of nodes whose pieces change, are computed without
    training; other nodes keep theirs. Relations must be known from training. An update is atomic:
    it is committed completely or not at all, and processes that have the run open are not affected.
    """
    from nodepiece.inference.run import load
    from nodepiece.inference.update import keep_vectors as keep_vectors_of
    from nodepiece.inference.update import update_run
    from nodepiece.tasks.train import choose_device

    changes = add is not None or remove is not None or remove_nodes is not None
    if not (changes or keep_vectors):
        raise InputError("nothing to do; give --add, --remove, --remove-nodes or --keep-vectors")
    options = read_options(delimiter, header, columns, format)
    added = () if add is None else read_facts(add, options)
    removed = () if remove is None else read_facts(remove, options)
    gone = [] if remove_nodes is None else read_names(remove_nodes)
    opened = load(run, device=choose_device(device))
    done: dict[str, int] = {}
    if keep_vectors:
        with stage(f"vectors of {run}") as remarks:
            done["num_kept"] = keep_vectors_of(opened)
            remarks.append(f"{count(done['num_kept'], 'vector')} computed and kept")
    sentences: list[str] = []
    if changes:
        with stage(f"updating {run}") as remarks:
            updated = update_run(opened, add=added, remove=removed, remove_nodes=gone)
            remarks.append(f"{count(updated.num_vectors, 'vector')} computed")
        done |= asdict(updated)
        sentences = summary(updated, run)
    if as_json:
        typer.echo(json.dumps(done, indent=2))
        return
    for sentence in sentences:
        log(sentence)


def summary(updated: "Updated", run: Path) -> list[str]:
    sentences = [
        f"{run}: added {count(updated.num_added, 'fact')} and "
        f"{count(updated.num_new_nodes, 'node')}, removed {count(updated.num_removed, 'fact')} and "
        f"{count(updated.num_gone_nodes, 'node')}",
        f"{count(updated.num_tokens, 'node')} with new or different pieces",
    ]
    left_out = [
        f"{count(number, 'fact')} to {word}"
        for number, word in (
            (updated.num_known, "add that were there already"),
            (updated.num_absent, "remove that were not there"),
        )
        if number
    ]
    if left_out:
        sentences.append(f"left out {' and '.join(left_out)}")
    return sentences
