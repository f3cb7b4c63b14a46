"""Opening a hyperparameter search: its graph, the settings it starts from, its folder."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from nodepiece.data.dataset import Dataset
from nodepiece.data.open import DataSource
from nodepiece.errors import InputError
from nodepiece.files import atomic_file
from nodepiece.settings import Experiment, load_experiment, overridden, to_toml
from nodepiece.tasks.budget import with_validation_for
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.machine import machine_of
from nodepiece.tasks.minutes import MIN_MINUTES
from nodepiece.tasks.open_automatic import is_automatic, open_automatic
from nodepiece.tasks.registry import task_record
from nodepiece.tasks.study import BASE, import_optuna
from nodepiece.tasks.trial import TuneOptions
from nodepiece.tasks.tune import Tuned, check_length, tune_task


def tune_source(
    source: str | Path | Experiment | None,
    options: TuneOptions,
    *,
    data: DataSource = None,
    overrides: Sequence[str] = (),
    resume: bool = False,
) -> Tuned:
    """Search around the settings chosen for a graph, or those of an experiment.

    `source` is a graph or an experiment as in `train_experiment`. With `resume` the search in the
    folder goes on, from the settings that it began with.
    """
    import_optuna()  # before anything is read
    if options.started is None:
        options = replace(options, started=perf_counter())
    folder, base = options.folder, options.folder / BASE
    if base.is_file() and not resume:
        raise InputError(f"{folder} has a search; continue it with --resume, or choose another")
    if not base.is_file() and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists and has no search in it; choose another folder")
    if not base.is_file():
        check_length(options)  # of a search that goes on, when its trials are known
    if base.is_file():
        if overrides:
            raise InputError("a search keeps the settings it began with; leave --set out")
        task = open_task(load_experiment(base), data)
    elif is_automatic(source, data):
        task, enough = open_automatic(
            str(source or ""),
            machine_of(options.device, options.memory),
            options.trial_seconds / 60,
            data=data,
            overrides=overrides,
            log=options.log,
        )
        if options.trial_minutes is None and enough < options.trial_seconds / 60:
            longest = options.trial_seconds / 60
            options = replace(options, trial_minutes=min(longest, max(enough, MIN_MINUTES)))
    else:
        task = open_task(experiment_of(source, overrides, data), data)
    options.log(task.describe())
    folder.mkdir(parents=True, exist_ok=True)
    if not base.is_file():
        with atomic_file(base) as partial:
            partial.write_text(to_toml(task.experiment), encoding="utf-8")
    return tune_task(task, options, fixed=overridden(overrides))


def experiment_of(
    source: str | Path | Experiment | None, overrides: Sequence[str], data: DataSource
) -> Experiment:
    if isinstance(source, Experiment):
        return source
    if source is None or isinstance(data, Dataset):
        raise InputError("give a graph or an experiment to start from")
    return load_experiment(source, overrides)


def open_task(experiment: Experiment, data: DataSource) -> LinkPrediction:
    """The task of an experiment, with facts to validate on."""
    if task_record(experiment).task is not LinkPrediction:
        raise InputError(
            f"a search is for link prediction; {experiment.name} is {experiment.task}; choose "
            "its settings by hand"
        )
    return LinkPrediction.open(with_validation_for(experiment), data)
