"""The list of tasks is complete, and what one of them computes does not change by accident."""

import inspect
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from tests.tasks.couples import couples, experiment

from nodepiece.errors import InputError
from nodepiece.inference.run import RUNS
from nodepiece.settings import Experiment
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.registry import TASKS
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tasks.task import SCORERS, Task
from nodepiece.tasks.tokens import tokenize_for
from nodepiece.tasks.train import train_experiment


@pytest.mark.parametrize("name", TASKS)
def test_the_record_of_a_task_names_it_a_run_and_groups_of_settings(name: str) -> None:
    record = TASKS[name]
    assert record.name == name
    assert record.run in RUNS
    groups = {each.partition(".")[0] for each in record.reads} - {SCORERS}
    assert groups <= {field.name for field in fields(Experiment)}


def test_a_task_that_is_not_in_the_registry_is_refused(tmp_path: Path) -> None:
    sentence = "task = 'guessing' is not known; it is one of link-prediction, relation-prediction"
    with pytest.raises(InputError, match=sentence):
        train_experiment(replace(experiment(), task="guessing"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", TASKS)
def test_every_task_does_what_the_runner_asks_for(name: str) -> None:
    asked = {key for key, value in vars(Task).items() if not key.startswith("_")}
    task = TASKS[name].task
    its_fields = {field.name for field in fields(task)}  # type: ignore[arg-type]
    assert all(hasattr(task, key) or key in its_fields for key in asked)
    for key in asked - {"experiment", "graph"}:
        wanted = list(inspect.signature(getattr(Task, key)).parameters)
        assert list(inspect.signature(getattr(task, key)).parameters) == wanted


def test_link_prediction_under_another_name_ranks_heads_and_tails_too() -> None:
    reports = []
    for name in ("link-prediction", "matchmaking"):
        task = LinkPrediction(experiment(task=name), couples())
        model = task.build_model(tokenize_for(task.experiment, task.graph))
        reports.append(task.validate(model))

    assert reports[0] == reports[1]


# Recorded when the runner served link prediction alone; with negatives, when a node that occurs
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
