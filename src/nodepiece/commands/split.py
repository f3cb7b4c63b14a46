"""nodepiece split: a random split of facts, or one with out-of-sample nodes."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodepiece.commands.console import JsonOption, count, log, stage
from nodepiece.commands.graphs import (
    ColumnsOption,
    DataOption,
    DelimiterOption,
    FormatOption,
    HeaderOption,
    read_options,
)
from nodepiece.commands.outputs import check_output
from nodepiece.errors import InputError

if TYPE_CHECKING:
    from nodepiece.data.dataset import Dataset
    from nodepiece.data.out_of_sample_split import SplitReport


def split(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            show_default=False,
            help="A folder with train, valid and test files, a file, or the name of a benchmark.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            show_default=False,
            help="The folder to write; an earlier one of this command is replaced.",
        ),
    ],
    valid: Annotated[
        float | None,
        typer.Option("--valid", metavar="S", help="Share of the facts for valid, at random."),
    ] = None,
    test: Annotated[
        float | None,
        typer.Option("--test", metavar="S", help="Share of the facts for test, at random."),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            "--share",
            metavar="S",
            help="Out-of-sample: share of the nodes for valid, and for test; 0.05 if not given.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="N", help="Random seed of the split.")
    ] = 0,
    as_json: JsonOption = False,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
    data: DataOption = None,
) -> None:
    """Split a dataset, all its facts merged, into facts to learn from and facts to evaluate on.

    With --valid and --test, facts are drawn at random, and every node and relation of theirs also
    occurs in training. Without them some nodes, of those with at least two facts, are taken out
    with all their facts: out-of-sample nodes; to train on that folder, set task = "out-of-sample".
    In both cases set dataset = "FOLDER" in a TOML file.
    """
    import numpy as np

    from nodepiece.data.open import open_dataset
    from nodepiece.data.out_of_sample import MARKER, write_out_of_sample
    from nodepiece.data.out_of_sample_split import split_out_of_sample
    from nodepiece.data.random_split import MARKER as RANDOM_SPLIT
    from nodepiece.data.random_split import check_shares

    is_random = valid is not None or test is not None
    if is_random and share is not None:
        raise InputError(
            "--share takes nodes out, --valid and --test take facts out; give one kind of them"
        )
    marker = RANDOM_SPLIT if is_random else MARKER
    check_output(output, marker=marker, kind="dataset of this command")
    shares = {"valid": valid or 0.0, "test": test or 0.0}
    if is_random:
        check_shares(shares)
    options = read_options(delimiter, header, columns, format)
    with stage(f"reading {dataset}") as remarks:
        merged = open_dataset(dataset, data=data, options=options)
        remarks.append(count(len(merged.all_triples()), "fact"))
        remarks += [merged.layout] if merged.layout else []
    if is_random:
        split_at_random(merged, shares, seed, output, as_json=as_json)
        return
    share = 0.05 if share is None else share
    parts, report = split_out_of_sample(merged, share, rng=np.random.default_rng(seed))
    content = {"dataset": merged.name, "share": share, "seed": seed, **report.to_json()}
    with stage(f"saving {output}"):
        write_out_of_sample(parts, output, content)
    if as_json:
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    for sentence in summary(report, output):
        log(sentence)


def split_at_random(
    merged: "Dataset", shares: dict[str, float], seed: int, output: Path, *, as_json: bool
) -> None:
    import numpy as np

    from nodepiece.data.random_split import split_facts, write_split

    dataset = split_facts(merged, shares, rng=np.random.default_rng(seed))
    numbers = {part: len(dataset.part(part)) for part in ("train", "valid", "test")}
    content = {"dataset": merged.name, "shares": shares, "seed": seed, "facts": numbers}
    with stage(f"saving {output}"):
        write_split(dataset, output, content)
    if as_json:
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    log(
        f"wrote {output}: {numbers['train']:,} facts to learn from, {numbers['valid']:,} for "
        f"valid, {numbers['test']:,} for test; every node and relation of theirs occurs in training"
    )
    for part, share in shares.items():
        asked = round(share * sum(numbers.values()))
        if numbers[part] < asked:
            log(
                f"{part} has {numbers[part]:,} of {asked:,} facts asked for: the others are the "
                "only ones of a node or a relation"
            )


def summary(report: "SplitReport", output: Path) -> list[str]:
    evaluated = " and ".join(
        f"{report.num_facts[part]:,} of {count(number, 'unseen node')} for {part}"
        for part, number in report.num_unseen.items()
    )
    return [
        f"wrote {output}: {report.num_train:,} facts between {report.num_nodes:,} nodes to learn "
        f"from, {evaluated}",
        f"left out {count(report.num_between, 'fact')} between unseen nodes, "
        f"{count(report.num_lost, 'fact')} that lead to nothing seen or are alone with their node, "
        f"and {count(report.num_single, 'node')} with fewer than two facts left",
    ]
