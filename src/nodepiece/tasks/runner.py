"""The runner of an experiment of any task: tokenize, train, evaluate, write the run folder."""

import logging
import platform
import shlex
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import nn

import nodepiece
from nodepiece.encoders.parameters import num_parameters
from nodepiece.errors import InputError
from nodepiece.evaluation.report import Report
from nodepiece.files import write_json
from nodepiece.settings import Experiment, settings_by_name, to_literal
from nodepiece.tasks.budget import (
    Budget,
    EvaluationTime,
    clock_of,
    plan_evaluation,
    recorded,
    within_time_left,
)
from nodepiece.tasks.peak import peaks
from nodepiece.tasks.registry import check_task
from nodepiece.tasks.run_folder import (
    CHECKPOINT,
    CONFIG,
    METRICS,
    MODEL,
    HistoryFile,
    damaged,
    hash_config,
    start_run,
    update_config,
    write_history,
)
from nodepiece.tasks.run_place import (
    check_place,
    finish_run,
    place_to_resume,
    place_to_start,
    unfinished_folder,
    writing_run,
)
from nodepiece.tasks.task import Model, Task
from nodepiece.tasks.tokens import load_for_training, make_tokens
from nodepiece.threads import start_kernel_threads, stop_spinning
from nodepiece.tokenizer.storage import load_tokens
from nodepiece.tokenizer.tokens import TokenTable
from nodepiece.training.checkpoint import (
    FORMAT_VERSION,
    Progress,
    load_tensors,
    load_weights,
    save_tensors,
)
from nodepiece.training.distribution import current_processes, limit_threads
from nodepiece.training.loop import Callback, Stopping, fit
from nodepiece.training.stages import Clock

log = logging.getLogger("nodepiece")


@dataclass(frozen=True)
class RunOptions:
    """How and where an experiment is run; the experiment itself is a separate record."""

    folder: Path
    device: torch.device
    resume: bool = False
    overwrite: bool = False  # replace an earlier run in `folder` when this one is finished
    command: str = ""  # the command that reproduces the result, for metrics.json
    callbacks: tuple[Callback, ...] = ()
    log: Callable[[str], None] = lambda sentence: None
    should_stop: Callable[[], bool] = lambda: False
    budget: Budget | None = None  # of minutes; None: as long as the settings say
    vocabulary: Path | None = None  # a folder with the tokens; None: they are computed


def run_experiment(task: Task[Model], options: RunOptions) -> dict[str, Any] | None:
    """Tokenize, train, evaluate and write the run folder; returns the contents of metrics.json.

    Returns None if it was stopped before the end: the same call with `resume` continues from the
    checkpoint. An earlier run is replaced when this one is finished (`run_place.py`). Of several
    processes, which must share the file system, rank 0 writes.
    """
    stop_spinning()
    start_kernel_threads()
    check_task(task)
    processes = current_processes()
    with writing_run(options.folder) if processes.is_first else nullcontext():
        start = perf_counter()
        place, is_resumed = prepare_folder(task, options)
        seconds = perf_counter() - start
        metrics = train_and_evaluate(
            task, place, options, is_resumed=is_resumed, tokenize_seconds=seconds
        )
        processes.wait()  # the others may still read in `place`
        if metrics is not None and processes.is_first:
            finish_run(place, options.folder)
    return metrics


def train_and_evaluate(
    task: Task[Model],
    folder: Path,
    options: RunOptions,
    *,
    is_resumed: bool,
    tokenize_seconds: float,
) -> dict[str, Any] | None:
    """Train and evaluate in a run folder with tokens; returns the metrics, None if stopped."""
    is_first = current_processes().is_first
    start = perf_counter()
    table = load_for_training(folder, task.graph)
    tokenize_seconds += perf_counter() - start
    limit_threads()
    model = task.build_model(table).to(options.device)
    options.log(f"{num_parameters(model):,} parameters")
    clock, time = None, EvaluationTime(0.0, 0.0)
    if options.budget is not None:
        task, time = plan_evaluation(task, model, options.budget)
        clock = clock_of(options.budget, time)
        options.log(describe_budget(task, options.budget))
    progress, stopping = train_model(
        task, model, table, folder, options, is_resumed=is_resumed, clock=clock
    )
    if is_first:
        write_history(folder, progress.history)
    if stopping.interrupted:
        if is_first and not (folder / METRICS).is_file():  # else the run in the folder is finished
            save_model(model, folder, unfinished=describe_weights(progress))
        return None
    options.log(f"training ended after epoch {progress.epoch}: {stopping.reason}")
    start = perf_counter()
    chosen = task.after_training(model, log=options.log)
    choose_seconds = {"choose": perf_counter() - start} if chosen else {}
    if options.budget is not None and clock is not None:
        left = options.budget.deadline - perf_counter()
        task = within_time_left(task, time, clock.last_validation, left)
    experiment = recorded(task.experiment, progress)
    if is_first:
        update_config(folder, experiment)  # if killed before the next line: --resume
        save_model(model, folder)
    start = perf_counter()
    test = task.evaluate(model, "test")
    seconds = {
        "tokenize": tokenize_seconds,
        "train": progress.seconds,
        **choose_seconds,
        "evaluate": perf_counter() - start,
    }
    metrics = {
        **describe_result(task, test, task.evaluate(model, "valid")),
        **describe_model(model, table),
        "epochs": progress.epoch,
        "steps": progress.num_steps,
        "best_epoch": progress.best_epoch,
        "best_step": progress.best_step,
        "minutes": options.budget.minutes if options.budget is not None else None,
        **chosen,
        "seconds": {stage: round(duration, 3) for stage, duration in seconds.items()},
        "peak_memory": peaks(options.device),
        "device": describe_device(options.device),
        "processes": current_processes().count,
        "seed": task.experiment.seed,
        "config_sha256": hash_config(folder),
        "versions": versions(),
        "command": with_changes(options.command, experiment, options.budget),
    }
    if is_first:
        write_json(folder / METRICS, metrics)
    return metrics


def prepare_folder(task: Task[Model], options: RunOptions) -> tuple[Path, bool]:
    """The run folder to train in, with tokens, and whether a run is resumed there."""
    processes, place, is_resumed = current_processes(), options.folder, False
    if processes.is_first:
        place, is_resumed = start_or_resume(task, options)
        if not is_resumed:
            make_tokens(task.experiment, task.graph, place, options.vocabulary)
    is_beside = processes.any(place != options.folder)
    place = unfinished_folder(options.folder) if is_beside else options.folder
    return place, processes.any(is_resumed)


def start_or_resume(task: Task[Model], options: RunOptions) -> tuple[Path, bool]:
    """The run folder to train in, new or checked, and whether a run is resumed there.

    A run without a checkpoint is started again.
    """
    folder, experiment = options.folder, task.experiment
    check_place(folder, resume=options.resume, overwrite=options.overwrite)
    place = None
    if options.resume:
        place = place_to_resume(folder, experiment, overwrite=options.overwrite)
    if place is None:
        place = place_to_start(folder)
        start_run(place, experiment, task.write, is_pending=place != folder)
        return place, False
    if not task.has_data_of(type(task).read(experiment, place)):
        raise InputError(
            f"{folder} has a run on other facts than {experiment.dataset} has now; replace it with "
            "--overwrite instead of --resume"
        )
    return place, True


def train_model(
    task: Task[Model],
    model: Model,
    table: TokenTable,
    folder: Path,
    options: RunOptions,
    *,
    is_resumed: bool,
    clock: Clock | None = None,
) -> tuple[Progress, Stopping]:
    """Train from the first epoch, or the one after the checkpoint, to the last."""
    generator = torch.Generator(options.device).manual_seed(task.experiment.seed)
    is_first = current_processes().is_first
    return fit(
        task.make_trainer(model, generator=generator),
        checkpoint=folder / CHECKPOINT,
        validate=lambda: task.validate(model),
        before_epoch=lambda epoch: task.before_epoch(model, table, epoch, generator=generator),
        callbacks=[HistoryFile(folder)] * is_first + list(options.callbacks),
        should_stop=options.should_stop,
        resume=is_resumed,
        clock=clock,
    )


def describe_budget(task: Task[Model], budget: Budget) -> str:
    """What is ranked within a budget, in one sentence."""
    evaluation = task.experiment.evaluation
    num_valid, num_test = task.num_evaluated("valid"), task.num_evaluated("test")
    if not num_valid:
        return f"{budget.minutes:g} minutes, without validation"
    valid = min(num_valid, evaluation.validation_facts or num_valid)
    test = min(num_test, evaluation.test_facts or num_test)
    return (
        f"{budget.minutes:g} minutes; validation with {valid:,} of {num_valid:,}, "
        f"the result with {test:,} of {num_test:,}"
    )


def with_changes(command: str, experiment: Experiment, budget: Budget | None) -> str:
    """The command with what followed from a budget as settings, so that it needs no clock."""
    if budget is None:
        return command
    values = settings_by_name(experiment)
    names = (
        *("training.stages", "training.validate_steps", "training.validation_noise"),
        *("evaluation.validation_facts", "evaluation.test_facts"),
    )
    words = [word for name in names for word in ("--set", f"{name}={to_literal(values[name])}")]
    before, output, after = command.rpartition(" -o ")
    return f"{before} {shlex.join(words)}{output}{after}"


def describe_weights(progress: Progress) -> str:
    """Which weights an unfinished run has, in words."""
    if progress.best_step is not None:
        return f"the best on validation so far, of step {progress.best_step:,}"
    return f"those of step {progress.num_steps:,}, without validation"


def save_model(model: nn.Module, folder: Path, *, unfinished: str = "") -> None:
    """Write the weights; `unfinished` says which ones they are, of a run that is not finished."""
    header = {"format_version": str(FORMAT_VERSION), "config_sha256": hash_config(folder)}
    header |= {"unfinished": unfinished} if unfinished else {}
    save_tensors(model.state_dict(), folder / MODEL, header)


def load_trained(task: Task[Model], folder: Path) -> tuple[Model, TokenTable]:
    """The trained model of a run folder, and the tokens that it was built on, mapped."""
    stop_spinning()
    if not (folder / MODEL).is_file():
        raise InputError(
            f"{folder} has no trained model yet; finish it with: "
            f"nodepiece train {folder / CONFIG} --resume -o {folder}"
        )
    try:
        table = load_tokens(folder / "vocabulary", graph=task.graph)
        table.check()
    except InputError as error:
        raise damaged(folder / "vocabulary", error) from error
    model = task.build_model(table)
    try:
        weights, header = load_tensors(folder / MODEL)
    except InputError as error:
        raise damaged(folder / MODEL, error) from error
    if header.get("config_sha256", hash_config(folder)) != hash_config(folder):
        raise InputError(
            f"{folder / CONFIG} is not the one that {MODEL} was trained with; restore that one, or "
            "train this run again"
        )
    try:
        load_weights(model, weights, folder / MODEL)
    except InputError as error:
        raise damaged(folder / MODEL, error) from error
    if unfinished := header.get("unfinished"):
        log.warning(
            "training of %s was stopped before the end; its weights are %s. Finish it with: "
            "nodepiece train %s --resume -o %s",
            *(folder, unfinished, folder / CONFIG, folder),
        )
    model.eval()
    return model, table


def describe_result(
    task: Task[Model], test: Report | None, valid: Report | None
) -> dict[str, object]:
    """The first entries of metrics.json: task, dataset and scores."""
    experiment, popularity = task.experiment, task.popularity("test")
    return {
        "experiment": experiment.name,
        "task": experiment.task,
        "dataset": experiment.dataset,
        "split": "test" if test else None,
        **(test.to_json() if test else {}),
        "valid": valid.scores if valid else None,
        "popularity": popularity.scores if popularity else None,  # on the test facts
        **task.remarks(),
    }


def describe_model(model: nn.Module, table: TokenTable) -> dict[str, object]:
    vocabulary = table.vocabulary
    return {
        "parameters": num_parameters(model),
        "vocabulary": {
            "nodes": table.num_nodes,
            "anchors": vocabulary.num_anchors,
            "relations": vocabulary.num_relations,
        },
    }


def describe_device(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    number = torch.get_num_threads()
    return f"CPU, {number} thread{'s' if number > 1 else ''}"


def versions() -> dict[str, str]:
    return {
        "nodepiece": nodepiece.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
