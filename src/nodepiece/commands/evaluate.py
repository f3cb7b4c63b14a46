"""nodepiece evaluate: the scores of a run on a split."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from nodepiece.commands.console import JsonOption, count, err, log, out
from nodepiece.commands.progress import counted
from nodepiece.commands.tables import score_table, scores_in_words
from nodepiece.commands.train import DeviceOption
from nodepiece.errors import InputError

if TYPE_CHECKING:
    import torch

    from nodepiece.evaluation.report import Report, Scores
    from nodepiece.inference.run import Run
    from nodepiece.tasks.shallow import ShallowResult

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
            "--per-relation", "--per-class", help="Also scores of each relation, or each class."
        ),
    ] = False,
    baselines: Annotated[
        bool,
        typer.Option(
            "--baselines",
            help="Also baselines without training, and the model with and without shortcuts.",
        ),
    ] = False,
    shallow: Annotated[
        bool,
        typer.Option(
            "--shallow",
            help="Also train and evaluate a vector for every node, with as many parameters and "
            "steps as the run: takes about as long as its training.",
        ),
    ] = False,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a setting: evaluation.candidates=all, evaluation.test_facts=500.",
        ),
    ] = None,
    as_json: JsonOption = False,
    device: DeviceOption = None,
) -> None:
    """Evaluate a run on a split, with the metrics of its task.

    Link prediction ranks the head and the tail of every fact among all nodes, known answers left
    out (filtered); relation prediction ranks the relation. Inductive link prediction ranks head and
    tail among randomly drawn nodes, several times, and among all nodes. Node classification reports
    ROC-AUC and PRC-AUC, averaged over classes, and the share of nodes with all classes right.
    Popularity, a baseline that knows only how often a node is the tail of a relation, or how many
    facts a relation has, is ranked beside the model. --baselines also ranks personalized PageRank
    and half-links, whose answers follow from one other fact of the same two nodes or from a
    relation's frequent tails, and gives the scores of the model on the queries that half-links
    answer right, and on the others. Where relations are ranked, naive Bayes, which knows the
    relations of the two ends, takes the place of PageRank, and half-links begin with it; for
    classes, the baselines are frequent classes and those of neighbours.
    --shallow trains a vector for every node with the decoder, loss and number of steps of the run;
    the vectors are as long as its number of parameters allows.
    """
    from nodepiece.inference.run import load
    from nodepiece.tasks.train import choose_device

    chosen = choose_device(device)
    opened = load(run, device=chosen, overrides=overrides or ())
    err.print(f"evaluating {run} on its {split} split", soft_wrap=True)
    if part := part_of_facts(opened, split):
        err.print(part, soft_wrap=True)
    with counted("ranking", "queries") as advance:
        report, popularity = opened.evaluate(split, progress=advance), opened.popularity(split)
    compared: dict[str, Scores] = {}
    if baselines:
        with counted("comparing with baselines", "queries") as advance:
            compared = opened.compare_baselines(split, progress=advance)
    beside = evaluate_shallow(opened, split, chosen) if shallow else None
    if as_json:
        content = to_json(opened, report, split, with_details=per_relation)
        content |= {"popularity": popularity.scores} if popularity else {}
        content |= {"baselines": compared} if compared else {}
        content |= {"shallow": beside.to_json()} if beside else {}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    out.print(report_table(report, with_details=per_relation))
    if compared:
        out.print(score_table(list(compared.items()), heading="baselines and shortcuts"))
    elif popularity:
        log(f"popularity, without training: {scores_in_words(popularity.scores)}")
    if beside:
        log(
            f"a vector of {count(beside.dim, 'number')} for every node: "
            f"{scores_in_words(beside.report.scores)} ({beside.parameters:,} parameters, "
            f"{count(beside.steps, 'step')})"
        )


def part_of_facts(run: "Run", split: str) -> str:
    """That only the first facts of a split are ranked, as a run within minutes may have set."""
    from nodepiece.inference.opened_run import EVALUATED

    number = run.experiment.evaluation.test_facts
    if not number or split not in EVALUATED or number >= (every := run.task.num_evaluated(split)):
        return ""
    return (
        f"the first {number:,} of {every:,} facts are ranked, as evaluation.test_facts says; "
        "--set evaluation.test_facts=0 ranks all"
    )


def evaluate_shallow(run: "Run", split: str, device: "torch.device") -> "ShallowResult":
    """Train the shallow baseline of a run, with a bar, and evaluate it on the same facts."""
    from nodepiece.commands.epochs import EpochProgress
    from nodepiece.tasks.link_prediction import LinkPrediction
    from nodepiece.tasks.shallow import train_shallow

    if not isinstance(run.task, LinkPrediction):
        raise InputError(
            f"--shallow is for link prediction on one graph, and {run.folder} is a run of "
            f"{run.experiment.task}; leave it out"
        )
    with EpochProgress(run.experiment.training.epochs) as progress:
        return train_shallow(
            run.task, run.folder, split, device, callbacks=(progress,), log=progress.log
        )


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
    """A row for all, one for each part, and one for each detail if wanted, most frequent first."""
    named = [("all", report.scores), *report.parts.items()]
    if with_details:
        for group in report.details.values():
            named += sorted(group.items(), key=lambda item: -item[1].get("count", 0))
    return score_table(named, heading="scores of")
