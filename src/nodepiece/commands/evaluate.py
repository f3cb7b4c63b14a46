"""nodepiece evaluate: how high a run ranks the true answers of a split."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from nodepiece.commands.console import JsonOption, out, stage
from nodepiece.commands.tables import add_scores, score_table
from nodepiece.commands.train import DeviceOption

if TYPE_CHECKING:
    from nodepiece.evaluation.metrics import RankingReport
    from nodepiece.inference.run import Run

RunArgument = Annotated[
    Path,
    typer.Argument(metavar="RUN", show_default=False, help="A folder written by nodepiece train."),
]


def evaluate(
    run: RunArgument,
    split: Annotated[
        str, typer.Option(metavar="SPLIT", help="Which facts: test, valid or train.")
    ] = "test",
    per_relation: Annotated[
        bool, typer.Option("--per-relation", help="Also for each relation apart.")
    ] = False,
    as_json: JsonOption = False,
    device: DeviceOption = None,
) -> None:
    """Rank the true answers of a split among all others, known facts left out.

    Link prediction ranks the head and the tail of every fact, relation prediction its relation.
    """
    from nodepiece.inference.run import load
    from nodepiece.tasks.train import choose_device

    opened = load(run, device=choose_device(device))
    with stage(f"ranking the {split} facts of {run}") as remarks:
        report = opened.evaluate(split)
        remarks.append(f"{report.both.count:,} ranks")
    if as_json:
        content = to_json(opened, report, split, per_relation=per_relation)
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        out.print(report_table(opened, report, per_relation=per_relation))


def to_json(
    run: "Run", report: "RankingReport", split: str, *, per_relation: bool
) -> dict[str, Any]:
    about = {
        "experiment": run.experiment.name,
        "task": run.experiment.task,
        "dataset": run.experiment.dataset,
        "split": split,
    }
    scores = report.to_json(run.dataset.names.relation)
    if not per_relation:
        del scores["relations"]
    return about | scores


def report_table(run: "Run", report: "RankingReport", *, per_relation: bool) -> Table:
    """All ranks, each side, and each relation if wanted, the most frequent first."""
    rows = [("all ranks", report.both), *report.sides.items()]
    table = score_table(rows, heading="ranks of")
    if per_relation:
        table.add_section()
        by_count = sorted(report.relations.items(), key=lambda item: -item[1].count)
        for relation, metrics in by_count:
            add_scores(table, run.dataset.names.relation(relation), metrics)
    return table
