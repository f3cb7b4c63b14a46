"""The files of results/ that `nodepiece train` wrote, and their numbers in words."""

import json
import shlex
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from nodepiece.settings import load_experiment

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
DEVICE = "NVIDIA H200"  # where a row was measured, unless a note says otherwise
CLASS_SCORES = ("roc_auc", "prc_auc", "hard_accuracy")
LINK_SCORES = ("mrr", "hits@10")


@dataclass(frozen=True)
class Measurement:
    """A run that was measured."""

    name: str  # of its file; that of its experiment, unless settings were changed
    found: dict[str, Any]  # metrics.json of the run, maybe with a remark

    @property
    def task(self) -> str:
        return str(self.found["task"])

    @property
    def link(self) -> str:
        """A link to its file, from a page in docs/."""
        return f"../results/{self.name}.json"


def read_measurements() -> list[Measurement]:
    """All measured runs, by name. The other files of results/ were written by benchmarks."""
    names = sorted(path.stem for path in RESULTS.glob("*.json"))
    return [each for name in names if (each := read_measurement(name)) is not None]


def read_measurement(name: str) -> Measurement | None:
    """The run of a name; None if there is no such file, or no run in it."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    return Measurement(name, found) if "task" in found else None


def scores(measurement: Measurement) -> str:
    """The scores that the paper reports for the task."""
    found = measurement.found
    keys = CLASS_SCORES if "roc_auc" in found else LINK_SCORES
    return " / ".join(format_score(found[key]) for key in keys)


def format_score(score: float) -> str:
    """A score with three digits, as in the paper, without the leading zero."""
    return f"{score:.3f}".removeprefix("0")


def notes(measurement: Measurement) -> list[str]:
    """Notes on a measurement: another device, other settings, its remark."""
    found = measurement.found
    device = [] if found["device"] == DEVICE else [f"on {describe_device(found)}"]
    remark = [found["remark"]] if "remark" in found else []
    changed = changed_settings(found)
    return device + ([", ".join(changed)] if changed else []) + remark


def describe_device(found: dict[str, Any]) -> str:
    device = str(found["device"])
    return device.removesuffix("s") if device.endswith(", 1 threads") else device


def training_seconds(found: dict[str, Any]) -> float:
    """Seconds of training with all validations, also those that choose the coefficient of walks."""
    spent = found["seconds"]
    return float(spent["train"] + spent.get("choose", 0.0))


def changed_settings(found: dict[str, Any]) -> list[str]:
    """The settings that the command of a run changed, and their values in the experiment."""
    changes = [
        word for before, word in pairwise(shlex.split(found["command"])) if before == "--set"
    ]
    return [_change(found["experiment"], *change.split("=", 1)) for change in changes]


def _change(experiment: str, key: str, value: str) -> str:
    usual: Any = asdict(load_experiment(experiment))
    for part in key.split("."):
        usual = usual[part]
    return f"`{key}` is {value} instead of {str(usual).lower()}"


def order(name: str) -> tuple[bool, bool, bool, str]:
    """A sort key: the paper's models and ablations, ours, shallow ones, relation prediction."""
    ranks_relations = "relations-paper" in name or "relations-best" in name
    is_shallow = name.endswith(("-rotate", "-rotate-small")) or "shallow" in name
    return ranks_relations, is_shallow, "best" in name, name
