"""nodepiece label: make a dataset for node classification from a graph and labels."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodepiece.commands.console import JsonOption, count, log, stage
from nodepiece.commands.graphs import (
    ColumnsOption,
    DataOption,
    DelimiterOption,
    FormatOption,
    GraphArgument,
    HeaderOption,
    read_options,
)
from nodepiece.commands.outputs import check_output

if TYPE_CHECKING:
    from nodepiece.data.label_split import LabelSplitReport

REPORT = "label_split.json"  # in the folder: settings, seed and counts


def label(
    graph: GraphArgument,
    labels: Annotated[
        Path,
        typer.Argument(
            metavar="LABELS",
            show_default=False,
            help="Classes of each node: JSON {node: \\[class, ...]}, or lines of node and class "
            "(tab-separated; with commas in a .csv); also .gz.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="DATASET",
            show_default=False,
            help="The folder to write; an earlier one of this command is replaced.",
        ),
    ],
    drop_relation: Annotated[
        list[str] | None,
        typer.Option(
            "--drop-relation",
            metavar="NAME",
            help="A relation that states classes, whose facts are left out; may be repeated.",
        ),
    ] = None,
    least_nodes: Annotated[
        int,
        typer.Option(
            "--least-nodes", metavar="N", help="Leave out classes with fewer nodes than this."
        ),
    ] = 50,
    valid_share: Annotated[
        float,
        typer.Option(
            "--valid-share", metavar="S", help="Share of the labelled nodes for validation."
        ),
    ] = 0.1,
    test_share: Annotated[
        float,
        typer.Option("--test-share", metavar="S", help="Share of the labelled nodes for the test."),
    ] = 0.1,
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
    """Make a dataset for node classification from GRAPH and LABELS, as the paper made its own.

    Leaves out facts that state classes, then nodes without other facts, then rare classes, and
    splits the labelled nodes. To train on it, set dataset = "DATASET" in a TOML file.
    """
    import numpy as np

    from nodepiece.data.label_file import read_label_file
    from nodepiece.data.label_split import LabelSplitSettings, split_labels
    from nodepiece.data.labelled_graph import write_labelled_folder
    from nodepiece.data.open import open_graph
    from nodepiece.files import atomic_folder

    settings = LabelSplitSettings(
        tuple(drop_relation or ()), least_nodes, valid_share=valid_share, test_share=test_share
    )
    check_output(output, marker=REPORT, kind="dataset of this command")
    options = read_options(delimiter, header, columns, format)
    with stage(f"reading {labels}") as remarks:
        given = read_label_file(labels)
        remarks.append(count(len(given), "labelled node"))
    with stage("reading " + ("standard input" if graph == "-" else graph)) as remarks:
        facts, sentences = open_graph(graph, options=options, data=data)
        remarks += [*sentences, f"{facts.num_nodes:,} nodes"]
    rng = np.random.default_rng(seed)
    labelled, report = split_labels(facts, given, settings, name=output.name, rng=rng)
    content = {"settings": asdict(settings), "seed": seed, **report.to_json()}
    with stage(f"saving {output}"), atomic_folder(output, marker=REPORT) as partial:
        write_labelled_folder(labelled, partial)
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (partial / REPORT).write_text(text + "\n", encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    for sentence in summary(report, least_nodes):
        log(sentence)
    log(
        f'to train on it, write a TOML file with extends = "wd50k-100-paper" and dataset = '
        f'"{output}"; nodepiece train takes that file'
    )


def summary(report: "LabelSplitReport", least_nodes: int) -> list[str]:
    parts = ", ".join(f"{number:,} for {part}" for part, number in report.num_labelled.items())
    return [
        f"left out {count(report.num_class_facts, 'fact')} that state classes, and "
        f"{count(report.num_disconnected, 'node')} without other facts",
        f"left out {count(report.num_outside, 'labelled node')} that the graph does not have",
        f"left out {count(report.num_rare_classes, 'class')} of fewer than "
        f"{count(least_nodes, 'node')} ({count(report.num_rare_labels, 'label')}), which leaves "
        f"{count(report.num_unlabelled, 'node')} without a class",
        f"kept {count(report.num_facts, 'fact')} between {count(report.num_nodes, 'node')}, "
        f"{count(report.num_classes, 'class')}; labelled nodes: {parts}",
    ]
