"""Hyperparameter search: short runs around some settings, the hopeless ones stopped early.

FOLDER/base.toml    the settings that it started from, which are also those of the first trial
FOLDER/best.toml    the best so far, for `nodepiece train`
FOLDER/study.log    all trials, as Optuna stores them; a search that goes on reads it

A trial trains for some minutes by the clock, as `nodepiece train --minutes` does. Its value is the
best validation, on the same facts for all trials. Optuna's tree-structured Parzen estimator
proposes settings, and a trial whose validation is below the median of the others is stopped.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from nodepiece.errors import InputError, Stopped
from nodepiece.settings import Experiment
from nodepiece.tasks.evaluation_time import chosen_number, ranking_time, with_facts
from nodepiece.tasks.fit_memory import memory_of, refuse_too_large
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.machine import machine_of
from nodepiece.tasks.plan import input_from_sizes, sizes_of
from nodepiece.tasks.search_space import Space, search_space, start_of, with_values, within
from nodepiece.tasks.study import BEST, best_of, finished, import_optuna, open_study, write_best
from nodepiece.tasks.tokens import tokenize_for
from nodepiece.tasks.trial import TuneOptions, run_trial, short, suggest

MIN_LENGTH = 0.9  # of the time of a trial that must be left to begin one
MAX_REFUSED = 100  # trials in a row that are not possible, before the search ends
VALIDATION_SHARE = 0.02  # of the time of a trial, for one validation


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


def tune_task(task: LinkPrediction, options: TuneOptions, *, fixed: Collection[str] = ()) -> Tuned:
    """Search around the settings of a task for some minutes; continues the study in the folder.

    `fixed` names settings that are not changed.
    """
    optuna = import_optuna()
    started = perf_counter() if options.started is None else options.started
    deadline = started + 60 * options.minutes
    base, graph, sizes = task.experiment, task.graph, sizes_of(task)
    memory = options.memory or machine_of(options.device).memory
    options = replace(options, memory=memory)
    if not task.num_evaluated("valid"):
        raise InputError(f"{task.dataset.name} has no facts to validate on; a search needs some")
    refuse_too_large(input_from_sizes(base, sizes), memory)
    study = open_study(optuna, options)
    kept = study.user_attrs.get("fixed", sorted(fixed))  # as it was when the search began
    planned = study.user_attrs.get("memory", memory)
    space = within(
        search_space(base, graph.num_nodes, graph.num_triples, kept),
        base,
        lambda experiment: memory_of(experiment, sizes).peak <= planned,
    )
    start = start_of(base, space)
    if "facts" not in study.user_attrs:
        study.set_user_attr("fixed", kept)
        study.set_user_attr("memory", memory)
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
        is_over = is_over or num_refused(study) >= MAX_REFUSED
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
    limit = VALIDATION_SHARE * options.trial_seconds
    fixed, each = ranking_time(task, model, num_valid, limit=limit)
    return chosen_number((limit - fixed) / each, num_valid)


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
        refuse_too_large(input_from_sizes(experiment, sizes_of(task)), cast(int, options.memory))
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


def num_refused(study: Any) -> int:
    """The number of trials in a row, up to the last one, that were not possible."""
    states = [trial.state.name for trial in reversed(study.trials)]
    return next((number for number, state in enumerate(states) if state != "FAIL"), len(states))


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
