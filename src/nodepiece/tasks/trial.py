"""One trial of a hyperparameter search: a short training, stopped early if it is hopeless."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from nodepiece.errors import InputError
from nodepiece.tasks.evaluation_time import seconds_of
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.search_space import Choices
from nodepiece.tasks.tokens import tokenize_for
from nodepiece.training.checkpoint import Progress
from nodepiece.training.loop import Callback, fit
from nodepiece.training.stages import Clock

NUM_TRIALS = 12  # of full length, in the time of a search
PARTS = 10  # of a trial: its validation is compared with those of others at the end of each


@dataclass(frozen=True)
class TuneOptions:
    """How a search is run."""

    folder: Path
    device: torch.device
    minutes: float
    trial_minutes: float | None = None  # None: so that NUM_TRIALS fit
    seed: int = 0
    callbacks: tuple[Callback, ...] = ()
    log: Callable[[str], None] = lambda sentence: None
    should_stop: Callable[[], bool] = lambda: False
    started: float | None = None  # by `perf_counter`; None: now
    memory: int | None = None  # bytes that every trial may use; None: most of what is free

    def __post_init__(self) -> None:
        for name in ("minutes", "trial_minutes"):
            if (value := getattr(self, name)) is not None and not 0 < value < float("inf"):
                raise InputError(f"{name} must be a number above 0, got {value}")

    @property
    def trial_seconds(self) -> float:
        return 60 * (self.trial_minutes or trial_minutes_of(self.minutes))


def trial_minutes_of(minutes: float) -> float:
    return minutes / NUM_TRIALS


def suggest(trial: Any, name: str, part: Any) -> Any:
    if isinstance(part, Choices):
        return trial.suggest_categorical(name, part.values)
    return trial.suggest_float(name, part.low, part.high, log=True)


def short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def run_trial(task: LinkPrediction, trial: Any, options: TuneOptions) -> tuple[float, str]:
    """The best validation of a trial, and how it ended: "finished", "pruned" or "stopped"."""
    deadline = perf_counter() + options.trial_seconds
    table = tokenize_for(task.experiment, task.graph)
    task.check()
    model = task.build_model(table).to(options.device)
    generator = torch.Generator(options.device).manual_seed(task.experiment.seed)
    watch = Watch(trial, deadline - options.trial_seconds, options)
    clock = Clock(deadline, validation_seconds=seconds_of(task, model))
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        progress, stopping = fit(
            task.make_trainer(model, generator=generator),
            checkpoint=Path(scratch) / "checkpoint",
            validate=lambda: task.validate(model),
            before_epoch=lambda epoch: task.before_epoch(model, table, epoch, generator=generator),
            callbacks=[watch, *options.callbacks],
            should_stop=watch.should_stop,
            resume=False,
            clock=clock,
        )
    score = progress.best_metric
    if score is None:  # a trial of a few steps has no validation
        score = task.validate(model)[task.experiment.training.metric]
    if not stopping.interrupted:
        return score, "finished"
    return score, "pruned" if watch.is_pruned else "stopped"


class Watch:
    """A callback that reports validations to Optuna, and stops a trial that is not worth it."""

    def __init__(self, trial: Any, start: float, options: TuneOptions) -> None:
        self.trial, self.start, self.options = trial, start, options
        self.num_parts, self.is_pruned = 0, False

    def should_stop(self) -> bool:
        return self.is_pruned or self.options.should_stop()

    def on_step(self, epoch: int, done: int, total: int) -> None:
        pass

    def on_epoch(self, record: dict[str, Any], progress: Progress) -> None:
        """Report the best validation so far for every part of the time that is over."""
        share = (perf_counter() - self.start) / self.options.trial_seconds
        if progress.best_metric is None:
            return
        for part in range(self.num_parts + 1, min(PARTS, int(PARTS * share)) + 1):
            self.trial.report(progress.best_metric, part)
            self.num_parts = part
        is_early = self.num_parts < PARTS - 1  # else it is as good as finished
        self.is_pruned = is_early and self.num_parts > 0 and self.trial.should_prune()
