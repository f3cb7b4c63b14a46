"""Hyperparameter search: short runs around some settings, the hopeless ones stopped early.

FOLDER/base.toml    the settings that it started from, which are also those of the first trial
FOLDER/best.toml    the best so far, for `nodepiece train`
FOLDER/study.log    all trials, as Optuna stores them; a search that goes on reads it

A trial trains for some minutes by the clock, as `nodepiece train --minutes` does. Its value is the
best validation, on the same facts for all trials. Optuna's tree-structured Parzen estimator
proposes settings, and a trial whose validation is below the median of the others is stopped.
"""

import tempfile
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import torch

from nodepiece.errors import InputError, Stopped
from nodepiece.files import atomic_file
from nodepiece.settings import Experiment, to_toml
from nodepiece.tasks.budget import chosen_number, ranking_time, seconds_of, with_facts
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.search_space import (
    Choices,
    Space,
    search_space,
    start_of,
    with_values,
)
from nodepiece.tasks.tokens import tokenize_for
from nodepiece.training.checkpoint import Progress
from nodepiece.training.loop import Callback, fit
from nodepiece.training.stages import Clock

BASE, BEST, STUDY = "base.toml", "best.toml", "study.log"
NUM_TRIALS = 12  # of full length, in the time of a search
MIN_LENGTH = 0.9  # of the time of a trial that must be left to begin one
TRIALS_BEFORE_PRUNING = 3
PARTS = 10  # of a trial: its validation is compared with those of others at the end of each
PARTS_BEFORE_PRUNING = 2
VALIDATION_SHARE = 0.02  # of the time of a trial, for one validation


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

    def __post_init__(self) -> None:
        for name in ("minutes", "trial_minutes"):
            if (value := getattr(self, name)) is not None and not 0 < value < float("inf"):
                raise InputError(f"{name} must be a number above 0, got {value}")

    @property
    def trial_seconds(self) -> float:
        return 60 * (self.trial_minutes or trial_minutes_of(self.minutes))


@dataclass(frozen=True)
class Tuned:
    """What a search found, over all trials of its folder."""

    experiment: Experiment  # the best settings
    score: float  # their validation
    first_score: float | None  # that of the settings it started from; None: they were not finished
    num_trials: int  # that were finished
    num_pruned: int  # that were stopped early
    path: Path  # of the settings, in TOML
    is_stopped: bool = False  # before the time was over


def trial_minutes_of(minutes: float) -> float:
    return minutes / NUM_TRIALS


def tune_task(task: LinkPrediction, options: TuneOptions, *, fixed: Collection[str] = ()) -> Tuned:
    """Search around the settings of a task for some minutes; continues the study in the folder.

    `fixed` names settings that are not changed.
    """
    optuna = import_optuna()
    started = perf_counter() if options.started is None else options.started
    deadline = started + 60 * options.minutes
    base, graph = task.experiment, task.graph
    if not task.num_evaluated("valid"):
        raise InputError(f"{task.dataset.name} has no facts to validate on; a search needs some")
    study = open_study(optuna, options)
    kept = study.user_attrs.get("fixed", sorted(fixed))  # as it was when the search began
    space = search_space(base, graph.num_nodes, graph.num_triples, kept)
    start = start_of(base, space)
    if "facts" not in study.user_attrs:
        study.set_user_attr("fixed", kept)
        study.set_user_attr("trial_minutes", options.trial_seconds / 60)
        study.set_user_attr("facts", describe_facts(task))
        study.enqueue_trial(start)
    elif study.user_attrs["facts"] != describe_facts(task):
        raise InputError(
            f"{options.folder} has a search on other facts ({study.user_attrs['facts']}); choose "
            "another folder"
        )
    options = with_trial_minutes(options, study.user_attrs["trial_minutes"])
    check_length(options)
    if "validation_facts" not in study.user_attrs:
        study.set_user_attr("validation_facts", num_validated(task, options))
    task = cast(LinkPrediction, with_facts(task, study.user_attrs["validation_facts"]))
    is_stopped = is_over = False
    while not (is_stopped or is_over):  # there is at least one trial
        is_stopped = not next_trial(optuna, study, task, space, options)
        write_best(study, base, options.folder)
        is_over = deadline - perf_counter() < MIN_LENGTH * options.trial_seconds
    if is_stopped and not finished(study):
        raise Stopped(
            "the search was stopped before a trial was finished; continue it with --resume -o "
            f"{options.folder}"
        )
    return result_of(study, base, start, options.folder, is_stopped=is_stopped)


def check_length(options: TuneOptions) -> None:
    """Refuse a search that is shorter than one trial."""
    if options.trial_seconds > 60 * options.minutes:
        raise InputError(
            f"a trial takes {options.trial_seconds / 60:g} minutes, and the search "
            f"{options.minutes:g}; give at least as many --minutes"
        )


def with_trial_minutes(options: TuneOptions, minutes: float) -> TuneOptions:
    """The options with the time of a trial that the search began with."""
    if options.trial_minutes is not None and options.trial_minutes != minutes:
        raise InputError(
            f"the trials of this search take {minutes:g} minutes each, and others would not be "
            "comparable; leave --trial-minutes out"
        )
    return replace(options, trial_minutes=minutes)


def import_optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise InputError(
            "the search needs Optuna; install it with: pip install 'nodepiece[tune]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def open_study(optuna: Any, options: TuneOptions) -> Any:
    """The study in the folder, or a new one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the journal is an experimental part of some versions
        backend = optuna.storages.journal.JournalFileBackend(str(options.folder / STUDY))
        study = optuna.create_study(
            storage=optuna.storages.JournalStorage(backend),
            study_name="nodepiece",
            direction="maximize",
            load_if_exists=True,
        )
    study.sampler = optuna.samplers.TPESampler(
        seed=options.seed + len(study.trials), n_startup_trials=5
    )
    study.pruner = optuna.pruners.MedianPruner(
        n_startup_trials=TRIALS_BEFORE_PRUNING, n_warmup_steps=PARTS_BEFORE_PRUNING
    )
    return study


def describe_facts(task: LinkPrediction) -> str:
    dataset = task.dataset
    return (
        f"{dataset.num_nodes:,} nodes, {dataset.train.num_triples:,} facts for train, "
        f"{len(dataset.valid):,} for valid"
    )


def num_validated(task: LinkPrediction, options: TuneOptions) -> int:
    """How many facts all trials are validated with; 0: all."""
    model = task.build_model(tokenize_for(task.experiment, task.graph)).to(options.device)
    num_valid = task.num_evaluated("valid")
    fixed, each = ranking_time(task, model, num_valid)
    return chosen_number((VALIDATION_SHARE * options.trial_seconds - fixed) / each, num_valid)


def next_trial(
    optuna: Any, study: Any, task: LinkPrediction, space: Space, options: TuneOptions
) -> bool:
    """Run one trial and record it; returns False if it was asked to stop."""
    trial = study.ask()
    values = {name: suggest(trial, name, part) for name, part in space.items()}
    states = optuna.trial.TrialState
    started = perf_counter()
    try:
        experiment = with_values(task.experiment, values)
        score, end = run_trial(replace(task, experiment=experiment), trial, options)
    except InputError as error:  # these settings do not go together, or training diverged
        study.tell(trial, state=states.FAIL)
        options.log(f"trial {trial.number}: not possible ({error})")
        return True
    if end == "stopped":
        study.tell(trial, state=states.FAIL)
        study.enqueue_trial(values)  # the first one when the search goes on
        return False
    if end == "pruned":
        study.tell(trial, state=states.PRUNED)
    else:
        study.tell(trial, score)
    best = study.best_value if finished(study) else score
    said = ", ".join(f"{name.partition('.')[2]} {short(value)}" for name, value in values.items())
    options.log(
        f"trial {trial.number}, {end} after {perf_counter() - started:.0f} s: "
        f"{task.experiment.training.metric} {score:.4f} (best {best:.4f}); {said}"
    )
    return True


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


def finished(study: Any) -> list[Any]:
    """The trials that were trained to their end."""
    return [trial for trial in study.trials if trial.state.name == "COMPLETE"]


def write_best(study: Any, base: Experiment, folder: Path) -> None:
    """Write the best settings so far, if there are some."""
    if finished(study):
        with atomic_file(folder / BEST) as partial:
            partial.write_text(to_toml(best_of(study, base)), encoding="utf-8")


def best_of(study: Any, base: Experiment) -> Experiment:
    return with_values(base, study.best_trial.params)


def result_of(
    study: Any, base: Experiment, start: dict[str, Any], folder: Path, *, is_stopped: bool
) -> Tuned:
    done = finished(study)
    if not done:
        raise InputError("no trial was finished in this time; give more minutes, or fewer to each")
    first = next((trial.value for trial in done if trial.params == start), None)
    return Tuned(
        best_of(study, base),
        cast(float, study.best_value),
        first,
        len(done),
        sum(trial.state.name == "PRUNED" for trial in study.trials),
        folder / BEST,
        is_stopped,
    )
