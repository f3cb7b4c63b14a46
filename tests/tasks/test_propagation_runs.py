"""Runs of every task with propagation beside the vectors of pieces."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks import citizens
from tests.tasks.couples import couples, experiment
from tests.tasks.newcomers import settings, task

from nodepiece.decoders.propagation import PropagationSettings
from nodepiece.inference.facts import Query
from nodepiece.inference.run import load, load_links
from nodepiece.inference.update import update_run
from nodepiece.settings import Experiment
from nodepiece.tasks.inductive_link_prediction import InductiveLinkPrediction
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tasks.task import Task
from nodepiece.training.settings import OneVsAllSettings

PROPAGATION = PropagationSettings(
    2, dim=8, rank=2, separate_losses=True, coefficient=2.5, choose_coefficient=True
)
TARGETS = OneVsAllSettings(target_share=0.5, most_targets=4, query_balance=0.5, hide_pairs=True)
TRAINING: dict[str, Any] = {"loss": "filtered-cross-entropy", "epochs": 3, "validate_every": 1}


def with_propagation(chosen: Experiment, one_vs_all: OneVsAllSettings = TARGETS) -> Experiment:
    return replace(chosen, propagation=PROPAGATION, one_vs_all=one_vs_all)


def links() -> LinkPrediction:
    chosen = experiment(hide_targets=True, batch_size=8, **TRAINING)
    return LinkPrediction(with_propagation(chosen), couples())


def inductive() -> InductiveLinkPrediction:
    chosen = citizens.experiment(batch_size=4, **TRAINING)
    chosen = replace(chosen, walks=replace(chosen.walks, steps=0))
    return InductiveLinkPrediction(with_propagation(chosen), citizens.two_worlds())


def out_of_sample() -> Task[Any]:
    chosen = settings(training={"mask_share": 0.3, **TRAINING})
    return task(with_propagation(chosen, OneVsAllSettings(query_balance=0.5)))


TASKS: tuple[Callable[[], Task[Any]], ...] = (links, inductive, out_of_sample)


def run(opened: Task[Any], folder: Path, **options: Any) -> dict[str, Any] | None:
    return run_experiment(opened, RunOptions(folder, torch.device("cpu"), **options))


@pytest.mark.parametrize("make", TASKS)
def test_a_run_stopped_in_between_goes_on_to_the_same_result(
    make: Callable[[], Task[Any]], tmp_path: Path
) -> None:
    whole = run(make(), tmp_path / "whole")
    assert run(make(), tmp_path / "parts", should_stop=lambda: True) is None
    parts = run(make(), tmp_path / "parts", resume=True)
    assert whole is not None and parts is not None
    assert parts["mrr"] == whole["mrr"]
    assert parts["coefficients_tried"] == whole["coefficients_tried"]
    opened = load(tmp_path / "parts")
    assert opened.evaluate("test").scores["mrr"] == whole["mrr"]


def test_propagation_learns_who_is_married_to_whom(tmp_path: Path) -> None:
    chosen = links().experiment
    chosen = replace(
        chosen, training=replace(chosen.training, epochs=20, learning_rate=0.02, batch_size=16)
    )
    metrics = run(LinkPrediction(chosen, couples()), tmp_path / "run")
    assert metrics is not None
    tried = metrics["coefficients_tried"]["propagation"]
    assert tried["16"] > 0.9  # nearly propagation alone
    assert metrics["mrr"] > 0.9


def test_answers_follow_assumed_facts_and_updates(tmp_path: Path) -> None:
    run(links(), tmp_path / "run")
    new = [("stranger", "married to", "person 1")]
    trained, updated = (load_links(tmp_path / "run") for _ in range(2))
    assumed = trained.with_facts(new)
    update_run(updated, add=new)
    answers = [
        opened.predict(head="stranger", relation="lives in", top=3) for opened in (assumed, updated)
    ]
    assert [each.name for each in answers[0]] == [each.name for each in answers[1]]
    first, second = ([each.score for each in few] for few in answers)
    np.testing.assert_allclose(first, second, rtol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("make", TASKS)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_run_trained_on_a_gpu_scores_there_as_on_the_cpu(
    make: Callable[[], Task[Any]], precision: str, tmp_path: Path
) -> None:
    opened = make()
    chosen = opened.experiment
    chosen = replace(chosen, training=replace(chosen.training, precision=precision))
    opened = replace(opened, experiment=chosen)  # type: ignore[type-var]
    run_experiment(opened, RunOptions(tmp_path / "run", torch.device("cuda")))
    query = Query(1, 0, is_relation_query=False)
    there, here = (load(tmp_path / "run", device=device) for device in ("cuda", "cpu"))
    found, expected = (each.snapshot.scores(query) for each in (there, here))  # type: ignore[attr-defined]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
