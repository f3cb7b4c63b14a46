"""Training by steps: rates from recorded stages, and a clock that decides the stages."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.tiny_models import EDGES, tiny_model

from nodepiece.errors import InputError
from nodepiece.training.checkpoint import Progress, read_progress
from nodepiece.training.links import link_trainer
from nodepiece.training.loop import Metrics, Stopping, fit
from nodepiece.training.settings import TrainingSettings
from nodepiece.training.stages import Clock, staged_rate
from nodepiece.training.trainer import Trainer


def trainer(seed: int = 0, **settings: Any) -> Trainer[Any]:
    """An epoch has 2 steps."""
    chosen: dict[str, Any] = {"loss": "self-adversarial", "batch_size": 4, "learning_rate": 0.01}
    training = TrainingSettings(**(chosen | settings), checkpoint_seconds=0)
    generator = torch.Generator().manual_seed(seed)
    return link_trainer(
        tiny_model(query_dropout=0.2, seed=seed), EDGES, training, generator=generator
    )


class Time:
    """A time that passes by a given number of seconds whenever a step is done."""

    def __init__(self, seconds_a_step: Callable[[int], float] = lambda step: 1.0) -> None:
        self.seconds, self.steps, self.seconds_a_step = 0.0, 0, seconds_a_step

    def __call__(self) -> float:
        return self.seconds

    def on_step(self, epoch: int, done: int, total: int) -> None:
        self.steps += 1
        self.seconds += self.seconds_a_step(self.steps)

    def on_epoch(self, record: dict[str, Any], progress: Progress) -> None:
        self.seconds += 0.5  # a validation


def run(
    made: Trainer[Any],
    folder: Path,
    *,
    time: Time | None = None,
    seconds: float = 0.0,
    resume: bool = False,
    stop_after: int = 0,
    is_rest: bool = False,
    validate: Callable[[], Metrics] = lambda: {"mrr": 0.5},
) -> tuple[Progress, Stopping]:
    clock = None
    if time is not None:
        end = time() + seconds
        clock = Clock(end, validation_seconds=0.5, end=end + 6, is_rest=is_rest, now=time)
    asked = iter(range(1, 10_000))
    return fit(
        made,
        checkpoint=folder / "checkpoint.safetensors",
        validate=validate,
        before_epoch=lambda epoch: None,
        callbacks=[time] if time is not None else [],
        should_stop=lambda: next(asked) == stop_after,
        resume=resume,
        clock=clock,
    )


def weights(made: Trainer[Any]) -> dict[str, torch.Tensor]:
    return made.model.state_dict()


def test_the_rate_is_constant_then_falls_to_zero_and_so_again() -> None:
    rates = [staged_rate(8.0, [2, 4, 5, 7], step) for step in range(8)]
    assert rates == [8, 8, 8, 4, 8, 8, 4, 8]


def test_a_clock_ends_training_in_time_with_a_falling_rate(tmp_path: Path) -> None:
    time = Time()
    progress, stopping = run(trainer(), tmp_path, time=time, seconds=100)
    begin, end = progress.stages
    assert time() == pytest.approx(100, abs=3)
    assert begin / end == pytest.approx(0.6, abs=0.05)
    assert progress.num_steps == end
    assert stopping.reason == f"all {end} steps done"
    assert progress.history[-1]["learning_rate"] < 0.001


def test_steps_that_become_slow_are_cut_off_at_the_deadline(tmp_path: Path) -> None:
    time = Time(lambda step: 1.0 if step < 70 else 3.0)
    progress, stopping = run(trainer(), tmp_path, time=time, seconds=100)
    assert time() == pytest.approx(103, abs=3)
    assert progress.num_steps < progress.stages[-1]
    assert "the time is up after" in stopping.reason
    assert progress.history[-1]["step"] == progress.num_steps  # the last weights were validated


def test_the_same_stages_give_the_same_digits_without_a_clock(tmp_path: Path) -> None:
    timed = trainer()
    progress, _ = run(timed, tmp_path / "timed", time=Time(), seconds=60)

    chosen: dict[str, Any] = {
        "stages": tuple(progress.stages),
        "validate_steps": progress.validate_steps,
    }
    again = trainer(**chosen)
    other, _ = run(again, tmp_path / "again")

    assert other.num_steps == progress.num_steps
    assert [each["loss"] for each in other.history] == [each["loss"] for each in progress.history]
    torch.testing.assert_close(weights(again), weights(timed), rtol=0, atol=0)


def test_patience_ends_a_timed_run_and_the_same_run_without_a_clock(tmp_path: Path) -> None:
    timed = trainer(validate_every=1, patience=2)
    progress, stopping = run(timed, tmp_path / "timed", time=Time(), seconds=1000)
    assert stopping.reason == "no improvement in 2 validations"
    assert progress.num_steps < 0.6 * 1000  # while the rate was still constant

    chosen: dict[str, Any] = {
        "stages": tuple(progress.stages),
        "validate_steps": progress.validate_steps,
    }
    again = trainer(validate_every=1, patience=2, **chosen)
    other, _ = run(again, tmp_path / "again")
    assert other.num_steps == progress.num_steps
    torch.testing.assert_close(weights(again), weights(timed), rtol=0, atol=0)

    _, stopping = run(timed, tmp_path / "timed", time=Time(), seconds=1000, resume=True)
    assert stopping.reason == "no improvement in 2 validations"


@pytest.mark.parametrize("stop_after", [1, 4, 7, 11, 15, 18])  # 18: the last step
def test_stages_that_were_interrupted_go_on_to_the_same_digits(
    stop_after: int, tmp_path: Path
) -> None:
    chosen: dict[str, Any] = {"stages": (10, 18), "validate_steps": 3}
    whole = trainer(**chosen)
    expected, _ = run(whole, tmp_path / "whole")

    _, stopping = run(trainer(**chosen), tmp_path, stop_after=stop_after)
    assert stopping.interrupted
    again = trainer(seed=3, **chosen)
    progress, _ = run(again, tmp_path, resume=True)

    assert progress.num_steps == expected.num_steps == 18
    torch.testing.assert_close(weights(again), weights(whole), rtol=0, atol=0)


def test_more_time_adds_another_stage_to_a_finished_run(tmp_path: Path) -> None:
    first, _ = run(trainer(), tmp_path, time=Time(), seconds=50)
    time = Time()
    more, _ = run(trainer(seed=2), tmp_path, time=time, seconds=80, resume=True)
    assert more.stages[:2] == first.stages
    assert len(more.stages) == 4
    assert more.num_steps == more.stages[-1]
    assert time() == pytest.approx(80, abs=3)


def test_an_interrupted_clock_is_set_again(tmp_path: Path) -> None:
    _, stopping = run(trainer(), tmp_path, time=Time(), seconds=100, stop_after=30)
    assert stopping.interrupted
    with pytest.raises(InputError, match="say how many more it may take"):
        run(trainer(seed=2), tmp_path, resume=True)
    progress, _ = run(trainer(seed=2), tmp_path, time=Time(), seconds=50, resume=True)
    assert progress.num_steps == progress.stages[-1] > 70


def test_a_stage_that_was_decided_is_finished_without_a_clock(tmp_path: Path) -> None:
    stopped, _ = run(trainer(), tmp_path, time=Time(), seconds=100, stop_after=70)
    progress, _ = run(trainer(seed=2), tmp_path, resume=True)
    assert stopped.num_steps == 70
    assert progress.num_steps == progress.stages[-1]


def test_a_checkpoint_has_the_minutes_that_are_left_evaluation_included(tmp_path: Path) -> None:
    run(trainer(), tmp_path, time=Time(), seconds=100, stop_after=30)
    progress = read_progress(tmp_path / "checkpoint.safetensors")
    assert progress.minutes_left == pytest.approx((100 + 6 - 30) / 60, abs=0.05)

    run(trainer(stages=(40, 50)), tmp_path / "steps", stop_after=30)
    assert read_progress(tmp_path / "steps" / "checkpoint.safetensors").minutes_left is None


@pytest.mark.parametrize("stop_after", [70, 90])
def test_in_the_rest_of_its_minutes_a_run_makes_the_steps_that_were_planned(
    tmp_path: Path, stop_after: int
) -> None:
    """Whether the rest, with the time to load the graph again, is too short or too long."""
    whole = trainer()
    expected, _ = run(whole, tmp_path / "whole", time=Time(), seconds=100)
    for seconds in (5, 500):
        folder, again = tmp_path / str(seconds), trainer(seed=2)
        stopped, _ = run(trainer(), folder, time=Time(), seconds=100, stop_after=stop_after)
        assert stopped.stages == expected.stages
        rest: dict[str, Any] = {"time": Time(), "seconds": seconds, "is_rest": True}
        progress, _ = run(again, folder, resume=True, **rest)
        assert (progress.num_steps, progress.stages) == (expected.num_steps, expected.stages)
        torch.testing.assert_close(weights(again), weights(whole), rtol=0, atol=0)


def test_a_run_whose_end_was_not_planned_trains_for_the_rest_of_its_minutes(
    tmp_path: Path,
) -> None:
    run(trainer(), tmp_path, time=Time(), seconds=100, stop_after=30)
    time = Time()
    progress, _ = run(trainer(seed=2), tmp_path, time=time, seconds=70, resume=True, is_rest=True)
    assert time() == pytest.approx(70, abs=3)
    assert progress.num_steps == progress.stages[-1] > 80


def test_without_validation_the_last_weights_are_kept(tmp_path: Path) -> None:
    made, time = trainer(), Time()
    clock = Clock(20.0, validation_seconds=0.0, now=time)
    progress, _ = fit(
        made,
        checkpoint=tmp_path / "checkpoint.safetensors",
        validate=dict,
        before_epoch=lambda epoch: None,
        callbacks=[time],
        should_stop=lambda: False,
        resume=False,
        clock=clock,
    )
    assert (progress.best_step, progress.validate_steps) == (None, 0)
    assert progress.num_steps == pytest.approx(20, abs=1)


@pytest.mark.parametrize("stages", [(5,), (5, 5), (0, 3), (6, 4), (3, 6, 5, 9), (1.5, 3)])
def test_stages_that_do_not_grow_in_pairs_are_refused(stages: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"pairs of growing numbers of steps, such as \[600"):
        TrainingSettings(stages=stages)
