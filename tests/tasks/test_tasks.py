"""The list of tasks is complete, and what one of them computes does not change by accident."""

import inspect
import json
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from tests.tasks.couples import couples, experiment

from nodepiece import settings
from nodepiece.inference.run import RUNS
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.registry import TASKS
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tasks.task import Task


def test_every_task_of_the_settings_can_be_run_and_asked() -> None:
    assert set(settings.TASKS) == set(TASKS) == set(RUNS)


@pytest.mark.parametrize("name", TASKS)
def test_every_task_does_what_the_runner_asks_for(name: str) -> None:
    asked = {key for key, value in vars(Task).items() if not key.startswith("_")}
    its_fields = {field.name for field in fields(TASKS[name])}  # type: ignore[arg-type]
    assert all(hasattr(TASKS[name], key) or key in its_fields for key in asked)
    for key in asked - {"experiment", "graph"}:
        wanted = list(inspect.signature(getattr(Task, key)).parameters)
        assert list(inspect.signature(getattr(TASKS[name], key)).parameters) == wanted


# Written down when the runner served link prediction alone; with negatives, when a node that occurs
# several times in a batch came to be encoded, and to lose numbers to dropout, once.
LOSSES = {
    "cross-entropy": [3.541584, 3.321548, 2.991012, 2.763616, 2.736393, 2.619271],
    "self-adversarial": [3.806730, 1.764328, 1.171494, 0.967500, 0.911709, 0.901862],
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_seed_gives_the_numbers_that_it_always_gave(loss: str, tmp_path: Path) -> None:
    task = LinkPrediction(experiment(loss=loss, shuffle_anchors=True), couples())
    run_experiment(task, RunOptions(tmp_path / "run", torch.device("cpu")))
    lines = (tmp_path / "run" / "history.jsonl").read_text().splitlines()
    found = [json.loads(line)["loss"] for line in lines]
    assert found == pytest.approx(LOSSES[loss], rel=1e-4)  # kernels round as they like
