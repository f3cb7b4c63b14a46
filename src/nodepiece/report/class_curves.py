"""The training curves of node classification: results/wd50k-curves.json, and how it is made."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodepiece.errors import InputError
from nodepiece.report.measured import CLASS_SCORES, Measurement, read_measurement

CURVES = "wd50k-curves.json"
SHARES = (5, 10, 100)  # percent of the training labels
MODELS = {
    "paper": "NodePiece + CompGCN",
    "paper-relations-only": "the same, relations only",
    "compgcn": "CompGCN, a vector for every node",
}
SCORES = [f"{part}_{score}" for part in ("train", "valid") for score in CLASS_SCORES]
DIGITS = 4
ABOUT = (
    "Scores at each validation, from history.jsonl of the runs: of the validation nodes (valid_) "
    "and of training nodes, no more than there are for validation (train_), without dropout. "
    "Written by python -m scripts.curves runs; drawn by python -m scripts.write_results."
)


@dataclass(frozen=True)
class Curve:
    """The scores of a run by epoch."""

    best_epoch: int  # chosen by ROC-AUC on the validation nodes
    epochs: list[int]  # those with a validation
    scores: dict[str, list[float]]  # train_roc_auc, valid_roc_auc, ...: (len(epochs),) each

    def at(self, epoch: int, score: str) -> float:
        return self.scores[score][self.epochs.index(epoch)]


def run_name(share: int, model: str) -> str:
    return f"wd50k-{share}-{model}"


def read_curves(path: Path) -> dict[tuple[int, str], Curve]:
    """By share and model."""
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    return {
        (share, model): _curve(runs[run_name(share, model)]) for share in SHARES for model in MODELS
    }


def _curve(run: dict[str, Any]) -> Curve:
    return Curve(run["best_epoch"], run["epoch"], {score: run[score] for score in SCORES})


def collect(runs: Path, results: Path) -> str:
    """The file, from runs/NAME/history.jsonl of each run: a line for each list of numbers."""
    names = [run_name(share, model) for share in SHARES for model in MODELS]
    entries = []
    for name in names:
        found = read_measurement(results, name)
        if found is None:
            raise InputError(f"there is no results/{name}.json, which has the command of the run")
        entries.append(f"  {json.dumps(name)}: {{\n{_lines(history(runs, found), found)}\n  }}")
    parts = ["{", f' "about": {json.dumps(ABOUT)},', ' "runs": {', ",\n".join(entries), " }", "}"]
    return "\n".join(parts) + "\n"


def history(runs: Path, measurement: Measurement) -> list[dict[str, float]]:
    """The epochs with a validation, of the run that was measured and of no other."""
    path = runs / measurement.name / "history.jsonl"
    if not path.is_file():
        raise InputError(f"there is no {path}; run: {measurement.found['command']}")
    epochs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    validated = [each for each in epochs if SCORES[-1] in each]
    chosen = [each for each in validated if each["epoch"] == measurement.found["best_epoch"]]
    valid = measurement.found["valid"]
    if not chosen or any(chosen[0][f"valid_{score}"] != valid[score] for score in CLASS_SCORES):
        raise InputError(
            f"{path} is of another run than results/{measurement.name}.json; copy metrics.json of "
            "the run there first"
        )
    return validated


def _lines(validated: list[dict[str, float]], measurement: Measurement) -> str:
    found = measurement.found
    fields: dict[str, Any] = {key: found[key] for key in ("command", "device", "best_epoch")}
    fields["epoch"] = [each["epoch"] for each in validated]
    for score in SCORES:
        fields[score] = [round(each[score], DIGITS) for each in validated]
    return ",\n".join(f"   {json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items())
