"""The minutes of a training that is given none."""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import torch
from tests.tasks.couples import couples, experiment

from nodepiece.errors import InputError
from nodepiece.settings import Experiment
from nodepiece.tasks.budget import Budget, with_validation_for
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.minutes import MIN_MINUTES, Minutes, minutes_for, minutes_left
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.training.checkpoint import read_progress

TIMED = with_validation_for(experiment(loss="self-adversarial"))


def run(folder: Path, minutes: float | None, **options: Any) -> dict[str, Any] | None:
    budget = None if minutes is None else Budget(minutes, perf_counter())
    chosen = TIMED if budget is not None else experiment(epochs=3)
    task = LinkPrediction(chosen, couples())
    return run_experiment(task, RunOptions(folder, torch.device("cpu"), budget=budget, **options))


def stop_after(number: int) -> Callable[[], bool]:
    asked = iter(range(1, 10_000))
    return lambda: next(asked) >= number


def minutes_of(
    folder: Path,
    given: float | None = None,
    experiment: Experiment | None = None,
    **changed: bool,
) -> Minutes:
    chosen = {"is_chosen": True, "has_epochs": False, "resume": True, "overwrite": False}
    return minutes_for(folder, given, experiment, **(chosen | changed))


def test_a_stopped_run_takes_the_minutes_that_it_has_left(tmp_path: Path) -> None:
    assert run(tmp_path, 5.0, should_stop=stop_after(3)) is None

    for is_chosen in (True, False):
        taken = minutes_of(tmp_path, is_chosen=is_chosen)
        assert taken.is_rest
        assert taken.number is not None and 4 < taken.number < 5
        assert taken.over + taken.number == pytest.approx(5)
        assert taken.reason.endswith(" minutes, the rest of those the run was given")
    assert minutes_of(tmp_path, 7.0) == Minutes(7.0)
    assert minutes_of(tmp_path, has_epochs=True) == Minutes()
    assert minutes_of(tmp_path, overwrite=True).number == 10
    assert minutes_of(tmp_path, resume=False).number == 10


def test_a_run_without_a_checkpoint_is_given_ten_minutes_if_it_is_on_a_graph(
    tmp_path: Path,
) -> None:
    assert minutes_of(tmp_path) == Minutes(10.0, reason="10 minutes, as none were given")
    assert minutes_of(tmp_path, is_chosen=False) == Minutes()


def test_a_run_of_epochs_has_no_minutes_left(tmp_path: Path) -> None:
    assert run(tmp_path, None, should_stop=stop_after(1)) is None
    assert minutes_left(tmp_path) is None


def test_a_finished_run_has_none_left_until_more_are_given_and_it_is_stopped(
    tmp_path: Path,
) -> None:
    assert run(tmp_path, 0.02) is not None
    assert minutes_left(tmp_path) is None
    assert minutes_of(tmp_path) == Minutes(is_finished=True)

    assert run(tmp_path, 5.0, resume=True, should_stop=stop_after(3)) is None
    left = minutes_left(tmp_path)
    assert left is not None and 4 < left < 5


def test_a_run_that_will_replace_another_has_minutes_of_its_own(tmp_path: Path) -> None:
    assert run(tmp_path / "run", 0.02) is not None
    options = {"overwrite": True, "should_stop": stop_after(3)}
    assert run(tmp_path / "run", 5.0, **options) is None
    left = minutes_left(tmp_path / "run")
    assert left is not None and 4 < left < 5


def test_a_run_of_other_settings_has_no_minutes_for_this_one(tmp_path: Path) -> None:
    assert run(tmp_path / "run", None) is not None  # of epochs
    options = {"overwrite": True, "should_stop": stop_after(3)}
    assert run(tmp_path / "run", 5.0, **options) is None  # will replace it

    assert minutes_of(tmp_path / "run", experiment=TIMED).is_rest
    for given in (TIMED, experiment(loss="self-adversarial")):  # with and without validation
        assert minutes_of(tmp_path / "run", experiment=given, is_chosen=False).is_rest
    other = experiment(epochs=3)
    assert minutes_of(tmp_path / "run", experiment=other, is_chosen=False) == Minutes()


def test_a_stopped_run_remembers_its_minutes_and_how_many_facts_it_ranks(tmp_path: Path) -> None:
    assert run(tmp_path, 5.0, should_stop=stop_after(3)) is None
    found = read_progress(tmp_path / "checkpoint.safetensors")
    assert (found.minutes, found.ranked) == (5.0, {"validation_facts": 0, "test_facts": 0})  # all


def test_a_run_that_goes_on_says_how_many_minutes_it_took_in_all(tmp_path: Path) -> None:
    assert run(tmp_path, 0.2, should_stop=stop_after(3)) is None
    taken = minutes_of(tmp_path)
    assert taken.number is not None
    rest = Budget(taken.over + taken.number, perf_counter() - 60 * taken.over, is_rest=True)
    task = LinkPrediction(TIMED, couples())
    options = RunOptions(tmp_path, torch.device("cpu"), resume=True, budget=rest)
    metrics = run_experiment(task, options)
    assert metrics is not None and metrics["minutes"] == pytest.approx(0.2)


def test_a_run_that_was_stopped_when_its_time_was_over_gets_the_least(tmp_path: Path) -> None:
    assert run(tmp_path, 0.0001, should_stop=stop_after(1)) is None
    assert minutes_left(tmp_path) == MIN_MINUTES


def test_damaged_metrics_are_named(tmp_path: Path) -> None:
    assert run(tmp_path, 0.02) is not None
    (tmp_path / "metrics.json").write_text("{")
    with pytest.raises(InputError, match=r"metrics\.json is damaged"):
        minutes_of(tmp_path)
