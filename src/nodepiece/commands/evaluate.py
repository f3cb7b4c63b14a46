"""nodepiece evaluate: how well a run does on a split."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from nodepiece.commands.console import JsonOption, out, stage
from nodepiece.commands.tables import score_table
from nodepiece.commands.train import DeviceOption

if TYPE_CHECKING:
    from nodepiece.evaluation.report import Report
    from nodepiece.inference.run import Run

RunArgument = Annotated[
    Path,
    typer.Argument(metavar="RUN", show_default=False, help="A folder written by nodepiece train."),
]


def evaluate(
    run: RunArgument,
    split: Annotated[
        str, typer.Option("--split", metavar="SPLIT", help="Which facts: test, valid or train.")
    ] = "test",
    per_relation: Annotated[
        bool,
        typer.Option(
            "--per-relation", "--per-class", help="Also for each relation, or each class, apart."
        ),
    ] = False,
    baseline: Annotated[
        bool,
        typer.Option(
            "--baseline", help="Evaluate a simple baseline in place of the model, for comparison."
        ),
    ] = False,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Evaluate in another way: evaluation.candidates=all, evaluation.test_facts=500.",
        ),
    ] = None,
    as_json: JsonOption = False,
    device: DeviceOption = None,
) -> None:
    """Evaluate a run on a split, as its task asks for.

    Link prediction ranks the head and the tail of every fact among all others, known facts left
    out, relation prediction its relation; inductive link prediction ranks head and tail among nodes
    drawn at random, several times, and among all. Node classification has areas under curves,
    averaged over classes, and the share of nodes whose classes are all right.
    """
    from nodepiece.inference.run import load
    from nodepiece.tasks.train import choose_device

    opened = load(run, device=choose_device(device), overrides=overrides or ())
    with stage(f"judging {run} by its {split} split"):
        report = opened.evaluate_baseline(split) if baseline else opened.evaluate(split)
    if as_json:
        content = to_json(opened, report, split, with_details=per_relation)
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        out.print(report_table(report, with_details=per_relation))


def to_json(run: "Run", report: "Report", split: str, *, with_details: bool) -> dict[str, Any]:
    about = {
        "experiment": run.experiment.name,
        "task": run.experiment.task,
        "dataset": run.experiment.dataset,
        "split": split,
    }
    found = report if with_details else replace(report, details={})
    return about | found.to_json()


def report_table(report: "Report", *, with_details: bool) -> Table:
    """Everything, each part, and the details if wanted, the most frequent first."""
    named = [("all", report.scores), *report.parts.items()]
    if with_details:
        for group in report.details.values():
            named += sorted(group.items(), key=lambda item: -item[1].get("count", 0))
    return score_table(named, heading="scores of")
