"""A budget of minutes for a whole run: tokens, training, validation and evaluation.

What follows from it is recorded as settings: how many facts are ranked, and the stages of training
(`training/stages.py`). So a run with these settings gives the same result without a clock.
"""

import math
from dataclasses import dataclass, replace
from time import perf_counter

from nodepiece.errors import InputError
from nodepiece.settings import Experiment
from nodepiece.training.checkpoint import Progress
from nodepiece.training.stages import Clock

RESERVE = 0.01  # of the time, to load libraries and to write files


@dataclass(frozen=True)
class Budget:
    """So many minutes from a start on."""

    minutes: float
    start: float  # by `perf_counter`
    is_enough: bool = False  # fewer than were given, as the graph needs no more
    is_rest: bool = False  # the run was stopped; `start` is earlier by the minutes that are over

    def __post_init__(self) -> None:
        if not (self.minutes > 0 and math.isfinite(self.minutes)):
            raise InputError(f"the minutes must be a number above 0, got {self.minutes}")

    @property
    def seconds(self) -> float:
        return 60 * self.minutes

    @property
    def deadline(self) -> float:
        return self.start + self.seconds

    @property
    def minutes_left(self) -> float:
        return (self.deadline - perf_counter()) / 60


def with_validation_for(experiment: Experiment) -> Experiment:
    """The experiment with validation, as the best weights so far are asked for."""
    training = experiment.training
    return replace(
        experiment, training=replace(training, validate_every=training.validate_every or 1)
    )


def without_validation(experiment: Experiment) -> Experiment:
    """The experiment without validation while it trains."""
    training = replace(experiment.training, validate_every=0, patience=0)
    return replace(experiment, training=training)


def clock_of(
    budget: Budget, experiment: Experiment, *, validation: float, evaluation: float
) -> Clock:
    """A clock whose deadline leaves time for the evaluation, and to write files."""
    return Clock(
        budget.deadline - 1.1 * evaluation - RESERVE * budget.seconds,
        validation_seconds=validation,
        end=budget.deadline,
        minutes=budget.minutes,
        ranked={
            "validation_facts": experiment.evaluation.validation_facts,
            "test_facts": experiment.evaluation.test_facts,
        },
        is_rest=budget.is_rest,
    )


def describe_delay(budget: Budget) -> str:
    """That little time is left for training, and what to do about it."""
    elapsed = perf_counter() - budget.start
    return (
        f"{elapsed:.0f} of {budget.seconds:.0f} s were over before training began; give more "
        "--minutes, or later --resume --minutes N"
    )


def recorded(experiment: Experiment, progress: Progress) -> Experiment:
    """The experiment with the stages that it was trained by, if it was."""
    if not progress.stages:
        return experiment
    training = replace(
        experiment.training, stages=tuple(progress.stages), validate_steps=progress.validate_steps
    )
    return replace(experiment, training=training)


def is_same_but_for_length(one: Experiment, other: Experiment) -> bool:
    """Whether two experiments differ only in how long they train and how many facts they rank."""
    is_timed = bool(one.training.stages or other.training.stages)
    return of_any_length(one, is_timed=is_timed) == of_any_length(other, is_timed=is_timed)


def of_any_length(experiment: Experiment, *, is_timed: bool) -> Experiment:
    training = replace(
        experiment.training, epochs=1, stages=(), validate_steps=0, validation_noise=0.0
    )
    if is_timed:
        training = replace(training, validate_every=0, patience=0)
    evaluation = replace(experiment.evaluation, validation_facts=0, test_facts=0)
    return replace(experiment, training=training, evaluation=evaluation)
