"""The Optuna study of a hyperparameter search, in a folder."""

import warnings
from pathlib import Path
from typing import Any

from nodepiece.errors import MissingExtra
from nodepiece.files import atomic_file
from nodepiece.settings import Experiment, to_toml
from nodepiece.tasks.search_space import with_values
from nodepiece.tasks.trial import TuneOptions

BASE, BEST, STUDY = "base.toml", "best.toml", "study.log"
TRIALS_BEFORE_PRUNING = 3
PARTS_BEFORE_PRUNING = 2


def import_optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise MissingExtra("the search needs Optuna", "tune") from error
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
