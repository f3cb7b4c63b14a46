"""The shallow baseline of a run: as many parameters, as many steps, a vector for every node."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.tasks.couples import couples, experiment

from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.errors import InputError
from nodepiece.settings import Experiment
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.registry import task_record
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tasks.shallow import ended_after, shallow_settings, train_shallow
from nodepiece.tasks.train import train_experiment
from nodepiece.tasks.unread_settings import refuse_unread
from nodepiece.training.settings import OneVsAllSettings

CPU = torch.device("cpu")
WITH_PATHS = replace(
    experiment(hide_targets=True, validate_every=1),
    graph=GraphLayerSettings(layers=1),
    walks=WalkSettings(steps=2, plain_steps=2),
)


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(WITH_PATHS, id="against all nodes, with layers and walks"),
        pytest.param(experiment(loss="self-adversarial"), id="negatives"),
        pytest.param(experiment(stages=(5, 9), validate_steps=3), id="stages"),
        pytest.param(experiment("relation-prediction"), id="relations"),
    ],
)
def test_it_has_no_more_parameters_and_as_many_steps(chosen: Experiment, tmp_path: Path) -> None:
    task = LinkPrediction(chosen, couples())
    metrics = run_experiment(task, RunOptions(tmp_path / "run", CPU))
    assert metrics is not None

    found = train_shallow(task, tmp_path / "run", "test", CPU)

    assert found.steps == metrics["steps"]
    assert found.parameters <= metrics["parameters"]
    one_more = (couples().num_nodes + 4) * 1  # nodes, and relations both ways
    assert found.parameters + one_more > metrics["parameters"]
    assert found.report.scores["count"] == metrics["count"]


def test_it_ends_after_the_steps_that_there_was_time_for() -> None:
    assert ended_after((), 7) == ()
    assert ended_after((5, 9), 9) == (5, 9)
    assert ended_after((5, 9), 7) == (5, 7)
    assert ended_after((5, 9), 4) == (3, 4)
    assert ended_after((5, 9, 20, 40), 15) == (5, 9, 14, 15)
    assert ended_after((5, 9), 1) == (1, 2)


def test_a_run_that_ended_within_its_first_epoch_has_one_too() -> None:
    chosen = experiment(stages=(3, 5))
    task = LinkPrediction(chosen, couples())

    settings = shallow_settings(task, 48 * 7, num_steps=4, num_epochs=0)

    assert settings.training.stages == (3, 4)


def test_targets_of_the_baseline_are_all_facts_as_it_has_no_paths() -> None:
    chosen = experiment(hide_targets=True)
    targets = OneVsAllSettings(target_degree=2, hide_pairs=True)
    task = LinkPrediction(replace(chosen, one_vs_all=targets), couples())
    settings = shallow_settings(task, 48 * 7, num_steps=4, num_epochs=1)
    assert settings.one_vs_all == OneVsAllSettings()
    refuse_unread(settings, task_record(settings))


def test_complex_vectors_have_an_even_length() -> None:
    chosen = experiment()
    task = LinkPrediction(
        replace(chosen, decoder=replace(chosen.decoder, kind="complex")), couples()
    )
    assert shallow_settings(task, 48 * 7, num_steps=6, num_epochs=1).encoder.dim == 6
    assert shallow_settings(task, 1, num_steps=6, num_epochs=1).encoder.dim == 2  # the least


def test_a_run_of_minutes_has_one_too(tmp_path: Path) -> None:
    metrics = train_experiment(None, tmp_path / "run", data=couples(), minutes=0.02, device="cpu")
    assert metrics is not None
    from nodepiece.inference.run import load

    task = load(tmp_path / "run", device="cpu").task
    assert isinstance(task, LinkPrediction)
    found = train_shallow(task, tmp_path / "run", "test", CPU)
    assert found.steps == max(2, metrics["steps"])


def test_a_run_that_is_not_finished_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not finished"):
        train_shallow(LinkPrediction(experiment(), couples()), tmp_path, "test", CPU)
