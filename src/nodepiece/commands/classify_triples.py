"""nodepiece classify-triples: how well a run separates true facts from false ones."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from nodepiece.commands.calibrate import NegativesOption, SeedOption, TrueFactsOption, facts_option
from nodepiece.commands.console import JsonOption, log, out
from nodepiece.commands.evaluate import RunArgument
from nodepiece.commands.graphs import (
    ColumnsOption,
    DataOption,
    DelimiterOption,
    FormatOption,
    HeaderOption,
    read_options,
)
from nodepiece.commands.new_facts import read_facts
from nodepiece.commands.progress import counted
from nodepiece.commands.train import DeviceOption

if TYPE_CHECKING:
    from nodepiece.evaluation.report import Report

COLUMNS = {
    "accuracy": "accuracy",
    "f1": "F1",
    "roc_auc": "ROC-AUC",
    "brier": "Brier",
    "calibration_error": "ECE",
}


def classify_triples(
    run: RunArgument,
    split: Annotated[
        str, typer.Option("--split", metavar="SPLIT", help="Which facts: test, valid or train.")
    ] = "test",
    facts: TrueFactsOption = None,
    negatives: NegativesOption = None,
    num_facts: Annotated[
        int,
        facts_option("By default all, which takes long with walks or propagation on a CPU."),
    ] = 0,
    seed: SeedOption = 0,
    per_relation: Annotated[
        bool, typer.Option("--per-relation", help="Also accuracy and F1 of each relation.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE", help="Save a reliability diagram: .png, .svg or .pdf."
        ),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = None,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
) -> None:
    """Classify facts as true or false, and report how often that is right.

    A fact is taken for true where its probability is above one half. Accuracy, F1, ROC-AUC, Brier
    score and expected calibration error (ECE); and accuracy and F1 with a threshold for each
    relation that is chosen on the validation facts, as published. Probabilities are those that
    nodepiece calibrate stored, else they are fitted to the validation facts first. CoDEx comes with
    verified false facts, which are found beside its other files.
    """
    from nodepiece.inference.classify_triples import classify_triples as classify
    from nodepiece.inference.run import load
    from nodepiece.tasks.train import choose_device

    if plot is not None:
        from nodepiece.report.reliability import plot_reliability
        from nodepiece.report.style import check_figure

        check_figure(plot)
    options = read_options(delimiter, header, columns, format)
    true = None if facts is None else read_facts(facts, options)
    false = None if negatives is None else read_facts(negatives, options)
    opened = load(run, device=choose_device(device))
    with counted(f"classifying facts with {run}", "queries") as advance:
        found = classify(
            opened,
            split=split,
            facts=true,
            negatives=false,
            data=data,
            num_facts=num_facts,
            seed=seed,
            progress=advance,
        )
    if plot is not None:
        plot_reliability(found.reliability, plot, name=opened.experiment.name)
    if as_json:
        about = {
            "experiment": opened.experiment.name,
            "task": "triple-classification",
            "dataset": opened.experiment.dataset,
            "split": split if facts is None else None,
        }
        content = found.to_json()
        if not per_relation:
            content.pop("relations")
        typer.echo(json.dumps(about | content, indent=2, ensure_ascii=False))
        return
    out.print(classification_table(found.report, with_details=per_relation))
    log(f"negatives {found.negatives}")
    kind = "stored with the run" if found.is_stored else "fitted to the validation facts"
    log(f"probabilities {kind} ({found.calibration.of_nodes.kind})")
    if plot is not None:
        log(f"wrote {plot}")


def classification_table(report: "Report", *, with_details: bool) -> Table:
    """A row for all facts, one for each part, and one for each relation if wanted."""
    named = [("probability above 0.5", report.scores), *report.parts.items()]
    if with_details:
        relations = report.details["relations"]
        named += sorted(relations.items(), key=lambda item: -item[1]["count"])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("true where", overflow="fold", min_width=22)
    for name in (*COLUMNS.values(), "facts"):
        table.add_column(name, justify="right")
    for name, scores in named:
        cells = [f"{scores[key]:.3f}" if key in scores else "" for key in COLUMNS]
        table.add_row(name, *cells, f"{scores['count']:,}" if "count" in scores else "")
    return table
