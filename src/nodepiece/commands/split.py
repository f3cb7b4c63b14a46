"""nodepiece split: an out-of-sample split of any dataset, by the paper's recipe."""

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

if TYPE_CHECKING:
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
    share: Annotated[
        float,
        typer.Option("--share", metavar="S", help="Share of the nodes for valid, and for test."),
    ] = 0.05,
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
    """Make a dataset with out-of-sample nodes: some nodes are taken out with all their facts.

    All facts are merged; the nodes are drawn from those with at least two facts. To train on the
    folder, set task = "out-of-sample" and dataset = "FOLDER" in a TOML file.
    """
    import numpy as np

    from nodepiece.data.open import open_dataset
    from nodepiece.data.out_of_sample import MARKER, write_out_of_sample
    from nodepiece.data.out_of_sample_split import split_out_of_sample

    check_output(output, marker=MARKER, kind="dataset of this command")
    options = read_options(delimiter, header, columns, format)
    with stage(f"reading {dataset}") as remarks:
        merged = open_dataset(dataset, data=data, options=options)
        remarks.append(count(len(merged.all_triples()), "fact"))
        remarks += [merged.layout] if merged.layout else []
    parts, report = split_out_of_sample(merged, share, rng=np.random.default_rng(seed))
    content = {"dataset": merged.name, "share": share, "seed": seed, **report.to_json()}
    with stage(f"saving {output}"):
        write_out_of_sample(parts, output, content)
    if as_json:
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    for sentence in summary(report, output):
        log(sentence)


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
