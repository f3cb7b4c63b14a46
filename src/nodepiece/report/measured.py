"""The files of results/ that `nodepiece train` wrote, and their numbers in words."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from nodepiece.errors import InputError
from nodepiece.settings import load_experiment

DEVICE = "NVIDIA H200"  # where a row was measured, unless the row says otherwise
TITLES = {  # of datasets, in the order of tables
    "fb15k-237": "FB15k-237",
    "wn18rr": "WN18RR",
    "codex-l": "CoDEx-L",
    "codex-m": "CoDEx-M",
    "codex-s": "CoDEx-S",
    "yago3-10": "YAGO3-10",
    "ogbl-wikikg2": "OGB WikiKG2",
    "inductive": "Inductive link prediction",
    "wd50k-nc": "Node classification on WD50K",
    "out-of-sample": "Out-of-sample link prediction",
    "countries": "The graph of countries",
}
CLASS_SCORES = ("roc_auc", "prc_auc", "hard_accuracy")
LINK_SCORES = ("mrr", "hits@10")
MEANS = (*LINK_SCORES, "hits@1", "hits@3", *CLASS_SCORES)  # averaged over seeds
PARTS = ("all nodes", "valid", "personalized_pagerank")  # of metrics.json, with the same scores


@dataclass(frozen=True)
class Measurement:
    """A run that was measured, or several that differ in nothing but their seeds."""

    name: str  # of its file or folder; that of its experiment, unless settings were changed
    found: dict[str, Any]  # metrics.json of the run, maybe with a remark; of several, with means
    link: str = ""  # to its file, from the page that is written
    others: tuple["Measurement", ...] = ()  # with other seeds
    of_seeds: dict[str, list[float]] = field(default_factory=dict)  # each score with every seed

    @property
    def task(self) -> str:
        return str(self.found["task"])

    @property
    def num_seeds(self) -> int:
        return 1 + len(self.others)

    @property
    def spread(self) -> dict[str, float]:
        """Standard deviations over seeds; none of a single run."""
        return {key: stdev(values) for key, values in self.of_seeds.items()}


def read_measurements(results: Path) -> list[Measurement]:
    """All measured runs, by name. The other files of results/ were written by benchmarks."""
    names = sorted(path.stem for path in results.glob("*.json"))
    return [each for name in names if (each := read_measurement(results, name)) is not None]


def read_measurement(results: Path, name: str) -> Measurement | None:
    """The run of a name; None if there is no such file, or no run in it."""
    path = results / f"{name}.json"
    if not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    return Measurement(name, found, f"../results/{name}.json") if "task" in found else None


def by_seed(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Runs that differ in nothing but their seeds as one, with means and standard deviations."""
    groups: dict[tuple[str, ...], list[Measurement]] = {}
    for each in measurements:
        found = each.found
        settings = tuple(c for c in changed_settings(found) if not c.startswith("`seed`"))
        known = (found["experiment"], found["dataset"], str(found.get("label_share")), *settings)
        groups.setdefault(known, []).append(each)
    return [each for group in groups.values() for each in of_several_seeds(group)]


def of_several_seeds(group: list[Measurement]) -> list[Measurement]:
    """One measurement of all seeds; runs with the same seed are not several seeds."""
    if len(group) == 1 or len({each.found["seed"] for each in group}) < len(group):
        return group
    first, *others = sorted(group, key=lambda each: int(each.found["seed"]))
    found = [each.found for each in (first, *others)]
    of_seeds = {key: [each[key] for each in found] for key in MEANS if key in first.found}
    return [Measurement(first.name, averaged(found), first.link, tuple(others), of_seeds)]


def averaged(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The first, with means in place of its scores and of those of its parts; the rest is its own.

    So seconds are those of the first run, and the "spread" between draws of a part is its own.
    """
    scores = {key: mean(each[key] for each in found) for key in MEANS if key in found[0]}
    parts = {
        part: averaged([each[part] for each in found])
        for part in PARTS
        if all(isinstance(each.get(part), dict) for each in found)
    }
    return {**found[0], **scores, **parts}


def scores(measurement: Measurement) -> str:
    """The scores that the paper reports for the task, with their spread over seeds."""
    return " / ".join(score(measurement, key) for key in score_keys(measurement.found))


def score_keys(found: dict[str, Any]) -> tuple[str, ...]:
    return CLASS_SCORES if "roc_auc" in found else LINK_SCORES


def score(measurement: Measurement, key: str) -> str:
    shown = format_score(measurement.found[key])
    over_seeds = measurement.spread.get(key)
    return shown if over_seeds is None else f"{shown} ± {format_score(over_seeds)}"


def format_score(score: float) -> str:
    """A score with three digits, as in the paper, without the leading zero."""
    return f"{score:.3f}".removeprefix("0")


def notes(measurement: Measurement) -> list[str]:
    """Notes on a measurement: settings that its command changed."""
    changed = changed_settings(measurement.found)
    if measurement.others:
        changed = [change for change in changed if not change.startswith("`seed`")]
    return [", ".join(changed)] if changed else []


def shared_device(measurement: Measurement) -> bool:
    """Whether others used the GPU at the same time, so that its seconds are too many."""
    return "shared the GPU" in measurement.found.get("remark", "")


# Remarks that do not concern scores: on seconds, on another command for the same settings, and on
# runs that were resumed, which gives the weights of a run without interruption.
HARMLESS = (
    "shared the GPU",
    "in use by others",
    "two cores",
    "trained alone",
    "compiled before",
    "which is the same",
    "which was the same",
    "resumed",
)


def has_remark(measurement: Measurement) -> bool:
    """Whether its file has a remark that matters for reading the scores."""
    remarks = measurement.found.get("remark", "").split("; ")
    return any(each and not any(words in each for words in HARMLESS) for each in remarks)


def describe_device(found: dict[str, Any]) -> str:
    device = str(found["device"])
    return device.removesuffix("s") if device.endswith(", 1 threads") else device


def training_seconds(found: dict[str, Any]) -> float:
    """Seconds of training with all validations, also those that choose the coefficient of walks."""
    spent = found["seconds"]
    return float(spent["train"] + spent.get("choose", 0.0))


def changed_settings(found: dict[str, Any]) -> list[str]:
    """The settings that the command of a run changed, and their values in the experiment."""
    words = shlex.split(found.get("command", ""))
    changes = [word for before, word in pairwise(words) if before == "--set"]
    return [_change(found["experiment"], *change.split("=", 1)) for change in changes]


def _change(experiment: str, key: str, value: str) -> str:
    try:
        usual: Any = asdict(load_experiment(experiment))
    except InputError:  # an experiment of the user's own
        return f"`{key}` is {value}"
    for part in key.split("."):
        usual = usual[part]
    return f"`{key}` is {value} instead of {str(usual).lower()}"


def order(name: str) -> tuple[bool, bool, bool, str]:
    """A sort key: the paper's models and ablations, ours, shallow ones, relation prediction."""
    ranks_relations = "relations-paper" in name or "relations-best" in name
    is_shallow = name.endswith(("-rotate", "-rotate-small")) or "shallow" in name
    return ranks_relations, is_shallow, "best" in name, name
