"""Training by numbers of steps, given in the settings or chosen by a clock.

The learning rate is constant, then falls linearly to 0; each time that training goes on, this
happens again. The steps at which it begins to fall and at which it reaches 0 are the stages. A
clock decides them once, while the rate is still constant, and they are recorded: so the same seed
and the same stages give the same digits, whatever the time they took.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter

import torch

CONSTANT_SHARE = 0.6  # of the time, before the rate falls
VALIDATION_SHARE = 0.1  # of the time between two validations
MAX_OVERTIME = 0.01  # of the time, if steps take longer than before
MIN_STAGE = 0.2  # of the time that must be left to begin once more
STEPS_TO_TIME = 10  # that are timed before the first decision
STEPS_BETWEEN_LOOKS = 16  # on CUDA, where looking at the clock waits for the device
FIRST_STEPS = 16  # without validation, as it may not be decided yet how often there is one


def staged_rate(rate: float, stages: list[int], step: int) -> float:
    """The learning rate of a step, counted from 0, among all steps of training."""
    for begin, end in zip(stages[::2], stages[1::2], strict=True):
        if step < begin:
            return rate
        if step < end:
            return rate * (end - step) / (end - begin)
    return rate  # after the last stage that was decided


@dataclass
class Schedule:
    """How far training has been planned; a Clock plans on."""

    stages: list[int]
    validate_steps: int  # between two validations; 0: never

    def rate(self, rate: float, step: int) -> float:
        return staged_rate(rate, self.stages, step)

    def is_over(self, num_steps: int) -> bool:
        """Whether the last planned step is done."""
        return bool(self.stages) and num_steps >= self.stages[-1]

    def is_planned(self, num_steps: int) -> bool:
        """Whether the end of training is known after so many steps."""
        return bool(self.stages) and num_steps <= self.stages[-1]

    def is_validated(self, num_steps: int) -> bool:
        """Whether there is a validation after so many steps."""
        if not self.validate_steps:
            return False
        is_regular = num_steps > FIRST_STEPS and num_steps % self.validate_steps == 0
        return is_regular or num_steps in self.stages


class Clock:
    """Plans the steps of training so that they end at a deadline."""

    def __init__(
        self,
        deadline: float,  # by `now`: when the last step and its validation are to be done
        *,
        validation_seconds: float,  # of one validation; 0: there are none
        end: float | None = None,  # by `now`: when all is to be done, evaluation included
        minutes: float | None = None,  # from the start of the run to `end`
        ranked: Mapping[str, int] | None = None,  # how many facts, by these minutes
        is_rest: bool = False,  # the run was stopped, and goes on
        now: Callable[[], float] = perf_counter,
    ) -> None:
        self.deadline, self.validation_seconds, self.now = deadline, validation_seconds, now
        self.end, self.minutes, self.is_rest = end, minutes, is_rest
        self.ranked = dict(ranked or {})
        self.begin, self.first_step = now(), 0
        self.in_validation = 0.0  # seconds since the beginning of the stage
        self.last_validation = validation_seconds
        self.is_time_up = False

    def start(self, num_steps: int) -> None:
        """Begin a stage after so many steps."""
        self.begin, self.first_step, self.in_validation = self.now(), num_steps, 0.0

    @property
    def total(self) -> float:
        """Seconds of the stage."""
        return max(1e-9, self.deadline - self.begin)

    def minutes_left(self) -> float | None:
        """Minutes until the end, evaluation included, if that is known."""
        return None if self.end is None else (self.end - self.now()) / 60

    def after_step(self, num_steps: int, schedule: Schedule, device: torch.device) -> None:
        """Decide what can be decided now: when to validate, and when the stage ends."""
        if device.type == "cuda":
            if num_steps % STEPS_BETWEEN_LOOKS:
                return
            torch.cuda.synchronize(device)
        now, steps = self.now(), num_steps - self.first_step
        self.is_time_up = now > self.deadline + MAX_OVERTIME * self.total
        if schedule.stages and num_steps <= schedule.stages[-1]:
            return  # it is decided
        elapsed = now - self.begin
        if not schedule.validate_steps and self.validation_seconds and steps >= STEPS_TO_TIME:
            seconds = max(VALIDATION_SHARE * self.total, 10 * self.validation_seconds)
            schedule.validate_steps = max(1, round(seconds / self._step_seconds(now, steps)))
        if elapsed >= CONSTANT_SHARE * self.total:
            left = self.deadline - now - self.validation_seconds
            each = self._step_seconds(now, steps)
            if schedule.validate_steps:
                each += self.validation_seconds / schedule.validate_steps
            number = max(1, int(left / each))
            schedule.stages += [num_steps, num_steps + number]

    def _step_seconds(self, now: float, steps: int) -> float:
        return max(1e-9, now - self.begin - self.in_validation) / max(1, steps)

    def is_worth_going_on(self, full: float) -> bool:
        """Whether enough of the time is left, of `full` seconds, to begin another stage."""
        return self.deadline - self.now() > MIN_STAGE * full
