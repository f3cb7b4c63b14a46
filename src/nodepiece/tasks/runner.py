"""The runner of an experiment of any task: tokenize, train, evaluate, write the run folder."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from nodepiece.encoders.parameters import num_parameters
from nodepiece.files import write_json
from nodepiece.tasks.budget import Budget, clock_of, describe_delay, recorded
from nodepiece.tasks.evaluation_time import (
    EvaluationTime,
    describe_budget,
    describe_result_facts,
    plan_evaluation,
    within_time_left,
)
from nodepiece.tasks.logged_progress import logged_progress
from nodepiece.tasks.peak import peaks
from nodepiece.tasks.registry import check_task
from nodepiece.tasks.run_folder import (
    CHECKPOINT,
    METRICS,
    MODEL,
    HistoryFile,
    hash_config,
    update_config,
    write_history,
)
from nodepiece.tasks.run_metrics import (
    describe_device,
    describe_model,
    describe_result,
    versions,
    with_changes,
)
from nodepiece.tasks.run_place import finish_run, writing_run
from nodepiece.tasks.run_start import prepare_folder
from nodepiece.tasks.run_weights import save_model
from nodepiece.tasks.task import Model, Task
from nodepiece.tasks.tokens import load_for_training
from nodepiece.threads import start_kernel_threads, stop_spinning
from nodepiece.tokenizer.tokens import TokenTable
from nodepiece.training.checkpoint import Progress, read_progress
from nodepiece.training.distribution import current_processes, limit_threads
from nodepiece.training.loop import Callback, Stopping, fit
from nodepiece.training.stages import Clock

LITTLE_TIME = 0.3  # of the minutes: if less is left for training, this is said


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
        place, is_resumed = prepare_folder(
            task,
            options.folder,
            resume=options.resume,
            overwrite=options.overwrite,
            vocabulary=options.vocabulary,
            log=options.log,
        )
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
        budget = options.budget
        goes_on = budget.is_rest and is_resumed
        ranked = read_progress(folder / CHECKPOINT).ranked if goes_on else None
        task, time = plan_evaluation(task, model, budget, ranked)
        clock = clock_of(
            budget, task.experiment, validation=time.validation, evaluation=time.evaluation
        )
        options.log(describe_budget(task, budget))
        is_whole = not (budget.is_enough or budget.is_rest)
        if is_whole and clock.total < LITTLE_TIME * budget.seconds:
            options.log(describe_delay(options.budget))
    progress, stopping = train_model(
        task, model, table, folder, options, is_resumed=is_resumed, clock=clock
    )
    if is_first:
        write_history(folder, progress.history)
    is_saved = is_first and not (folder / METRICS).is_file()  # else the run there is finished
    if is_saved:  # also if it is stopped while it chooses or evaluates
        save_model(model, folder, unfinished=progress)
    if stopping.interrupted:
        return None
    is_by_steps = clock is not None or bool(progress.stages)
    end = "" if is_by_steps else f" after epoch {progress.epoch}"
    options.log(f"training ended{end}: {stopping.reason}")
    start = perf_counter()
    chosen = task.after_training(model, log=options.log)
    choose_seconds = {"choose": perf_counter() - start} if chosen else {}
    if options.budget is not None and clock is not None:
        planned, task = task, within_time_left(task, time, clock.last_validation, options.budget)
        if task is not planned:
            options.log(f"ranking takes longer than planned: {describe_result_facts(task)}")
    experiment = recorded(task.experiment, progress)
    if is_saved:
        (folder / MODEL).unlink()  # its settings are replaced
    if is_first:
        update_config(folder, experiment)  # if killed before the next line: --resume
        save_model(model, folder)
    start = perf_counter()
    report = partial(logged_progress, noun="queries", log=options.log)
    test = task.evaluate(model, "test", progress=report("evaluating on test"))
    seconds = {
        "tokenize": tokenize_seconds,
        "train": progress.seconds,
        **choose_seconds,
        "evaluate": perf_counter() - start,
    }
    metrics = {
        **describe_result(
            task, test, task.evaluate(model, "valid", progress=report("evaluating on valid"))
        ),
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
