"""Training from the first epoch to the last: validation, best weights, checkpoints, history."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.training.checkpoint import Progress, load_checkpoint, save_checkpoint
from nodepiece.training.stages import Clock, Schedule
from nodepiece.training.trainer import Trainer, learning_rate

Metrics = dict[str, float]


@runtime_checkable
class TrainerCallback(Protocol):
    """A callback that looks at the trainer while it trains: at the loss so far, for example."""

    def on_start(self, trainer: Trainer[Any]) -> None: ...


class Callback(Protocol):
    """Called while a model is trained: a progress bar, TensorBoard, a history file."""

    def on_step(self, epoch: int, done: int, total: int) -> None: ...

    def on_epoch(self, record: dict[str, Any], progress: Progress) -> None: ...


@dataclass(frozen=True)
class Stopping:
    """Why training ended."""

    reason: str
    interrupted: bool = False


def fit(
    trainer: Trainer[Any],
    *,
    checkpoint: Path,
    validate: Callable[[], Metrics],
    before_epoch: Callable[[int], None],
    callbacks: list[Callback],
    should_stop: Callable[[], bool],
    resume: bool,
    clock: Clock | None = None,
) -> tuple[Progress, Stopping]:
    """Train to the end; the model then has the best weights, or the last without validation.

    `before_epoch` may change the tokens. `should_stop` is called after every step, or after every
    epoch where several processes train; if it returns True, a checkpoint is written at once and
    training ends, to be resumed later with the same result. With a `clock`, or stages in the
    settings, training goes by steps instead of epochs (`training/stages.py`).
    """
    settings, fitting = trainer.settings, Fitting(trainer, checkpoint, callbacks)
    if clock is not None:
        fitting.run_clock = clock
    progress = fitting.start(resume=resume)
    if clock is not None or settings.stages or progress.stages or progress.is_timed:
        return fit_stages(fitting, validate, before_epoch, should_stop, clock)
    if progress.epoch > settings.epochs:
        raise InputError(
            f"the run has {progress.epoch} epochs already; set training.epochs to more than that"
        )
    while progress.epoch < settings.epochs and not _is_patience_over(trainer, progress):
        fitting.clock = perf_counter()
        epoch = progress.epoch
        trainer.start_epoch(epoch)
        before_epoch(epoch)
        is_alone = trainer.processes.count == 1
        loss = trainer.run_steps(
            epoch,
            partial(fitting.after_step, epoch),
            should_stop=should_stop if is_alone else _never,
        )
        if loss is None:
            return fitting.interrupt()
        record = {"epoch": epoch + 1, "loss": loss, "learning_rate": learning_rate(settings, epoch)}
        progress.epoch += 1
        is_last = progress.epoch == settings.epochs
        if settings.validate_every and (is_last or progress.epoch % settings.validate_every == 0):
            record |= validation_record(validate())
            fitting.keep_best(record)
        fitting.report(record)
        if trainer.processes.any(should_stop()):
            return fitting.interrupt()
        if fitting.is_save_due and not is_last:
            fitting.save()
    fitting.prefer_last()
    fitting.save()
    fitting.use_best()
    if _is_patience_over(trainer, progress):
        return progress, _no_improvement(progress)
    return progress, Stopping("all epochs done")


def fit_stages(
    fitting: "Fitting",
    validate: Callable[[], Metrics],
    before_epoch: Callable[[int], None],
    should_stop: Callable[[], bool],
    clock: Clock | None,
) -> tuple[Progress, Stopping]:
    """Train by steps: to the end of the stages, or until a clock says that the time is up."""
    trainer, progress = fitting.trainer, fitting.progress
    settings, full = trainer.settings, 0.0
    schedule = Schedule(
        progress.stages or list(settings.stages), progress.validate_steps or settings.validate_steps
    )
    progress.is_timed = progress.is_timed or clock is not None
    if clock is None and not schedule.stages:
        raise InputError(
            "this run was given some minutes and stopped before they were over; say how many more "
            "it may take (--minutes N), in one process"
        )
    if clock is not None and clock.is_rest and schedule.is_planned(progress.num_steps):
        clock = None  # these steps, as without the stop
    if clock is not None:
        clock.start(progress.num_steps)
        full = clock.total

    def is_over() -> bool:
        if _is_patience_over(trainer, progress):
            return True
        if clock is None or clock.is_time_up or not schedule.is_over(progress.num_steps):
            return schedule.is_over(progress.num_steps) or (clock is not None and clock.is_time_up)
        if clock.first_step < schedule.stages[-1]:  # that stage is over
            if not clock.is_worth_going_on(full):
                return True
            clock.start(progress.num_steps)  # there is time for the rate to fall once more
        return False

    def after_step(epoch: int, done: int, total: int) -> None:
        fitting.after_step(epoch, done, total)
        if clock is not None:
            clock.after_step(progress.num_steps, schedule, trainer.device)
        progress.stages, progress.validate_steps = schedule.stages, schedule.validate_steps
        is_ended = clock is not None and clock.is_time_up and bool(schedule.validate_steps)
        if schedule.is_validated(progress.num_steps) or is_ended:
            validate_now(epoch)

    def validate_now(epoch: int) -> None:
        start = perf_counter()
        record = {
            "epoch": epoch + 1,
            "step": progress.num_steps,
            "loss": trainer.mean_loss,
            "learning_rate": schedule.rate(settings.learning_rate, progress.num_steps - 1),
        }
        record |= validation_record(validate())
        fitting.keep_best(record)
        fitting.report(record)
        trainer.model.train()
        if clock is not None:
            clock.last_validation = perf_counter() - start
            clock.in_validation += clock.last_validation

    asked = False

    def stop() -> bool:
        nonlocal asked
        asked = should_stop()
        return asked or is_over()

    while not is_over() and not asked:
        epoch = progress.epoch
        fitting.clock = perf_counter()
        trainer.start_epoch(epoch)
        before_epoch(epoch)
        loss = trainer.run_steps(
            epoch,
            partial(after_step, epoch),
            should_stop=stop,
            rate=lambda: schedule.rate(settings.learning_rate, progress.num_steps),
        )
        fitting.count_seconds()
        if loss is not None:
            progress.epoch += 1
            asked = asked or should_stop()
    if asked:  # also after the last step: choices and evaluation after training may take minutes
        return fitting.interrupt()
    is_patience_over = _is_patience_over(trainer, progress)
    if is_patience_over and not schedule.stages:  # the rate had not begun to fall
        schedule.stages += [progress.num_steps, progress.num_steps + 1]
        progress.stages = schedule.stages
    fitting.prefer_last()
    fitting.save()
    fitting.use_best()
    if is_patience_over:
        return progress, _no_improvement(progress)
    if schedule.is_over(progress.num_steps):
        return progress, Stopping(f"all {progress.num_steps:,} steps done")
    planned = f" of {schedule.stages[-1]:,}" if schedule.stages else ""
    return progress, Stopping(f"the time is up after {progress.num_steps:,}{planned} steps")


def _never() -> bool:
    return False


class Fitting:
    """Training that is under way: its progress, its best weights, when it was saved last."""

    def __init__(self, trainer: Trainer[Any], checkpoint: Path, callbacks: list[Callback]) -> None:
        self.trainer, self.checkpoint, self.callbacks = trainer, checkpoint, callbacks
        self.progress = Progress()
        self.run_clock: Clock | None = None  # of a run that was given minutes
        self.best: dict[str, Tensor] | None = None
        self.clock = self.last_saved = perf_counter()

    def start(self, *, resume: bool) -> Progress:
        """Go on from the checkpoint, if wanted and there; returns the progress so far."""
        if resume and self.checkpoint.exists():
            self.progress, self.best = load_checkpoint(self.checkpoint, self.trainer)
        for callback in self.callbacks:
            if isinstance(callback, TrainerCallback):
                callback.on_start(self.trainer)
        return self.progress

    def count_seconds(self) -> None:
        """Add the time since the last call to that of training."""
        now = perf_counter()
        self.progress.seconds += now - self.clock
        self.clock = now

    @property
    def is_save_due(self) -> bool:
        return perf_counter() - self.last_saved > self.trainer.settings.checkpoint_seconds

    def save(self) -> None:
        self.count_seconds()
        self.progress.minutes_left = None
        if (clock := self.run_clock) is not None:
            self.progress.minutes, self.progress.minutes_left = clock.minutes, clock.minutes_left()
            self.progress.ranked = clock.ranked
        save_checkpoint(self.checkpoint, self.trainer, self.progress, self.best)
        self.last_saved = perf_counter()

    def use_best(self) -> None:
        """Put the best weights so far, if there was a validation, into the model."""
        if self.best is not None:
            self.trainer.model.load_state_dict(self.best)

    def interrupt(self) -> tuple[Progress, Stopping]:
        """Save the state, to go on from it later; the model gets the best weights so far."""
        self.save()
        self.use_best()
        return self.progress, Stopping("interrupted", interrupted=True)

    def after_step(self, epoch: int, done: int, total: int) -> None:
        """Count a step, call the callbacks, and save now and then in a long epoch."""
        self.progress.num_steps += 1
        for callback in self.callbacks:
            callback.on_step(epoch, done, total)
        is_wanted = self.trainer.settings.checkpoint_seconds > 0  # 0: after every epoch
        if is_wanted and done < total and self.trainer.processes.count == 1 and self.is_save_due:
            self.save()

    def report(self, record: dict[str, Any]) -> None:
        """Append a record to the history, with the seconds of training so far."""
        self.count_seconds()
        record["seconds"] = round(self.progress.seconds, 3)
        self.progress.history.append(record)
        for callback in self.callbacks:
            callback.on_epoch(record, self.progress)

    def keep_best(self, record: dict[str, Any]) -> None:
        """Keep the present weights if their validation is the best so far."""
        progress, metric = self.progress, self.trainer.settings.metric
        name = f"valid_{metric}"
        if name not in record:
            prefix = "valid_"
            known = ", ".join(key.removeprefix(prefix) for key in record if key.startswith(prefix))
            raise InputError(f"training.metric = {metric!r} is not one of {known}")
        if progress.best_metric is not None and record[name] <= progress.best_metric:
            progress.since_best += 1
            return
        progress.since_best = 0
        self._keep(record[name])

    def prefer_last(self) -> None:
        """Keep the last weights, if the best ones are better by no more than noise."""
        progress, settings = self.progress, self.trainer.settings
        last = progress.history[-1] if progress.history else {}
        value, best = last.get(f"valid_{settings.metric}"), progress.best_metric
        is_last = last.get("step", progress.num_steps) == progress.num_steps
        if not (settings.validation_noise and is_last) or value is None or best is None:
            return
        if best - settings.validation_noise <= value < best:
            self._keep(value)

    def _keep(self, metric: float) -> None:
        """Keep the present weights, whose validation is `metric`, as the best ones."""
        progress = self.progress
        progress.best_metric, progress.best_epoch = metric, progress.epoch
        progress.best_step = progress.num_steps
        state = self.trainer.model.state_dict().items()
        self.best = {key: value.detach().clone() for key, value in state}


def _is_patience_over(trainer: Trainer[Any], progress: Progress) -> bool:
    patience = trainer.settings.patience
    return patience > 0 and progress.since_best >= patience


def _no_improvement(progress: Progress) -> Stopping:
    return Stopping(f"no improvement in {progress.since_best} validations")


def validation_record(metrics: Metrics) -> Metrics:
    """Validation metrics with the prefix "valid_", as the history has them."""
    return {
        name if name.startswith("train_") else f"valid_{name}": value
        for name, value in metrics.items()
    }
