"""The runs of `benchmarks.budget` in one file, in a table and in a figure."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.budget import OURS, names
from rich.console import Console
from rich.table import Table

from nodepiece.errors import InputError
from nodepiece.files import write_json
from nodepiece.report.budget_curves import plot_budget

Run = dict[str, Any]  # what `benchmarks.budget run` wrote


def collect(files: Iterable[Path], out: Path) -> None:
    """Write all runs to a file, the figure beside it, and print the comparison."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(files)]
    result = summary(runs)
    write_json(out, result)
    curves = {
        dataset: {name_of(run): points(run) for run in found["runs"] if run["curve"]}
        for dataset, found in result["datasets"].items()
    }
    plot_budget(
        curves,
        out.with_suffix(".svg"),
        first=OURS,
        title="The same minutes on two cores: MRR over time",
    )
    Console(width=140).print(as_table(result["datasets"]))


def summary(runs: list[Run]) -> dict[str, Any]:
    """For each dataset: the runs with the most minutes, ours beside the opponent, the search.

    The opponent is PyKEEN's run with the best validation. Of several runs of one contender with
    the most minutes, the one with the best validation is kept.
    """
    datasets: dict[str, Any] = {}
    for dataset in sorted({run["dataset"] for run in runs}, key=order):
        here = [run for run in runs if run["dataset"] == dataset]
        minutes = max(run["minutes"] for run in here)
        full = best_of_each([run for run in here if run["minutes"] == minutes])
        theirs = [run for run in full if run["contender"] != OURS]
        ours = next((run for run in full if run["contender"] == OURS), None)
        opponent = theirs[0] if theirs else None
        datasets[dataset] = {
            "minutes": minutes,
            "opponent": opponent and opponent["contender"],
            "times_mrr": ratio(ours, opponent, lambda run: run["test"]["mrr"]),
            "share_of_parameters": ratio(ours, opponent, lambda run: run["parameters"]),
            "runs": full,
            "search": [short(run) for run in here if run not in full],
        }
    return {
        "what": "filtered MRR and Hits@10 of nodepiece and PyKEEN after the same minutes",
        "command": "python -m benchmarks.budget collect FILES",
        "datasets": datasets,
    }


def order(dataset: str) -> tuple[int, str]:
    known = names()
    return (known.index(dataset) if dataset in known else len(known), dataset)


def best_of_each(runs: list[Run]) -> list[Run]:
    """The best run of each contender on validation, the best first, ours before all."""
    best: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: run["valid"]["mrr"]):
        best[run["contender"]] = run
    return sorted(best.values(), key=lambda run: (run["contender"] != OURS, -run["valid"]["mrr"]))


def ratio(ours: Run | None, theirs: Run | None, value: Any) -> float | None:
    """Ours by theirs; None if one of them is missing or has no test result."""
    if not (ours and theirs and ours["test"] and theirs["test"]):
        return None
    return round(value(ours) / value(theirs), 4)


def short(run: Run) -> Run:
    """A run of the search: its settings and its validation."""
    kept = ("contender", "minutes", "settings", "parameters", "steps", "epochs")
    return {key: run[key] for key in kept} | {"valid_mrr": run["valid"]["mrr"]}


def name_of(run: Run) -> str:
    return str(run["contender"])


def points(run: Run) -> list[tuple[float, float]]:
    return [(point["seconds"] / 60, point["mrr"]) for point in run["curve"]]


def as_table(datasets: dict[str, Any]) -> Table:
    table = Table(title="The same minutes on two cores")
    for column in ("dataset", "contender"):
        table.add_column(column, no_wrap=True)
    for column in ("minutes", "MRR", "Hits@10", "valid MRR", "parameters", "steps", "MiB"):
        table.add_column(column, justify="right")
    for dataset, found in datasets.items():
        for run in found["runs"]:
            test = run["test"] or {"mrr": float("nan"), "hits@10": float("nan")}
            table.add_row(
                dataset,
                run["contender"],
                f"{run['minutes']:g}",
                f"{test['mrr']:.3f}",
                f"{test['hits@10']:.3f}",
                f"{run['valid']['mrr']:.3f}",
                f"{run['parameters']:,}",
                f"{run['steps']:,}",
                f"{run['peak_memory_mib']:,}",
            )
        table.add_section()
    if not datasets:
        raise InputError("there are no runs to collect; give the files of some")
    return table
