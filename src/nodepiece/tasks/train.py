"""Training of an experiment given by name, file or record."""

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import torch

from nodepiece.data.dataset import Dataset
from nodepiece.errors import InputError
from nodepiece.settings import Experiment, load_experiment, overridden, with_overrides
from nodepiece.tasks.automatic import DEFAULT_MINUTES
from nodepiece.tasks.budget import Budget, with_validation_for, without_validation
from nodepiece.tasks.fit_memory import refuse_too_large
from nodepiece.tasks.machine import free_memory, machine_of
from nodepiece.tasks.minutes import MIN_MINUTES, minutes_for
from nodepiece.tasks.open_automatic import chosen_before, is_automatic, open_automatic
from nodepiece.tasks.plan import input_from_sizes, is_link_task, sizes_of
from nodepiece.tasks.registry import task_record
from nodepiece.tasks.run_folder import CONFIG, read_metrics
from nodepiece.tasks.run_place import check_place
from nodepiece.tasks.run_start import start_or_resume
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tasks.task import Task
from nodepiece.tokenizer.storage import HEADER, read_header, settings_in
from nodepiece.training.distribution import Processes, process_group
from nodepiece.training.loop import Callback

MORE = "give minutes=N (--minutes N)"


def train_experiment(
    experiment: str | Path | Experiment | None,
    folder: Path,
    *,
    data: Path | Dataset | None = None,
    overrides: Sequence[str] = (),
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    callbacks: tuple[Callback, ...] = (),
    log: Callable[[str], None] = lambda sentence: None,
    should_stop: Callable[[], bool] = lambda: False,
    minutes: float | None = None,
    memory: int | None = None,
    started: float | None = None,
    vocabulary: Path | None = None,
) -> dict[str, Any] | None:
    """Run an experiment; returns its metrics, or None if it was stopped before the end.

    A graph in place of an experiment, by its path or the name of a benchmark, or no experiment and
    facts in `data`, gets settings that suit it (`tasks/automatic.py`), and ten minutes unless
    others are given. A finished run on it that is resumed without minutes or epochs stays as it is;
    any run that was stopped takes the minutes that it has left (`tasks/minutes.py`).

    Under torchrun all processes call this together; rank 0 writes files and logs.
    `overrides` change an experiment given by name or file, and not a record. `data` is the folder
    of benchmarks, or the dataset itself. `minutes` is the time for all of it, in place of epochs,
    counted from now, or from `started` by `perf_counter`. `memory` in bytes is a limit for the
    peak of the process (CUDA: of the device), by default most of what is free. `vocabulary` is a
    folder with the tokens of the graph, whose settings replace those of the experiment.
    """
    started = perf_counter() if started is None else started
    is_chosen = is_automatic(experiment, data)  # here
    has_epochs = "training.epochs" in overridden(overrides)
    if minutes is not None and has_epochs:
        raise InputError(
            "minutes and training.epochs both say how long to train; leave out one of them"
        )
    if is_chosen and vocabulary is not None:
        raise InputError(
            f"settings for {experiment or 'these facts'} are chosen with its anchors; give "
            "--vocabulary to an EXPERIMENT, such as fb15k-237-quick --set dataset=GRAPH"
        )
    chosen, settings = choose_device(device), None
    if is_chosen:
        source: Path = folder / CONFIG
        settings = chosen_before(folder) if resume else None
        if settings is not None:
            settings = with_overrides(settings, overrides)
    elif isinstance(experiment, Experiment):
        settings, source, overrides = experiment, folder / CONFIG, ()
    else:
        settings, source = load_experiment(cast(str, experiment), overrides), Path(str(experiment))
    if settings is not None and vocabulary is not None:
        stored = settings_in(read_header(vocabulary), vocabulary / HEADER)
        settings = replace(settings, tokenizer=stored)
    taken = minutes_for(
        folder,
        minutes,
        None if is_chosen else settings,
        is_chosen=is_chosen,
        has_epochs=has_epochs,
        resume=resume,
        overwrite=overwrite,
    )
    budget = None
    if taken.number is not None:
        whole = taken.over + taken.number
        budget = Budget(whole, started - 60 * taken.over, is_rest=taken.is_rest)
    with process_group(chosen) as processes:
        log = log if processes.is_first else _log_nothing
        if processes.is_first:  # it creates the folder, which the others must not see unfinished
            check_place(folder, resume=resume, overwrite=overwrite)
        if budget is not None and processes.count > 1:
            if not taken.is_rest:
                raise InputError("minutes are for one process; give training.epochs to several")
            budget = None  # the steps that are planned
        if taken.reason and budget is not None:
            log(taken.reason)
        task: Task[Any]
        if settings is None:
            task, enough = open_automatic(
                str(experiment or ""),
                machine_of(chosen, memory),
                taken.number or DEFAULT_MINUTES,
                data=data,
                overrides=overrides,
                log=log,
            )
            if budget is not None and enough < budget.minutes:
                elapsed = (perf_counter() - started) / 60
                needed = elapsed + max(enough, MIN_MINUTES)
                if needed < budget.minutes:
                    budget = Budget(needed, started, is_enough=True)
        else:
            is_timed = budget is not None or taken.is_rest
            timed = with_validation_for(settings) if is_timed else settings
            if not isinstance(data, Dataset):
                log(f"reading {settings.dataset}")
            task = task_record(settings).task.open(timed, data)
            if is_link_task(settings):
                limit = free_memory(chosen) if memory is None else memory
                sizes = replace(sizes_of(task), on_gpu=chosen.type == "cuda")
                sizes_alone = input_from_sizes(settings, sizes)
                refuse_too_large(sizes_alone, limit)
        if budget is not None and not task.num_evaluated("valid"):
            task = replace(cast(Any, task), experiment=without_validation(task.experiment))
        log(task.describe())
        if taken.is_finished:
            start_or_resume(task, folder, resume=True, overwrite=False)  # refuses another run
            log(f"{folder} is finished and stays as it is; {MORE} to train it further")
            return read_metrics(folder)
        command = command_line(
            source,
            folder,
            overrides=() if is_chosen else overrides,
            device=chosen.type,
            data=data if isinstance(data, Path) else None,
            vocabulary=vocabulary,
        )
        if isinstance(data, Dataset):
            command += f"  # in Python, on facts in memory ({data.name})"
        options = RunOptions(
            folder,
            chosen,
            resume=resume,
            overwrite=overwrite,
            command=command.replace("nodepiece", launcher(processes), 1),
            callbacks=callbacks if processes.is_first else (),
            log=log,
            should_stop=should_stop,
            budget=budget,
            vocabulary=vocabulary,
        )
        return run_experiment(task, options)


def _log_nothing(sentence: str) -> None:
    pass


def launcher(processes: Processes) -> str:
    """The command before "train": nodepiece, or torchrun with its options."""
    if processes.count == 1:
        return "nodepiece"
    here = int(os.environ.get("LOCAL_WORLD_SIZE", processes.count))
    machines = f"--nnodes {processes.count // here} " if here < processes.count else ""
    return f"torchrun {machines}--nproc-per-node {here} -m nodepiece"


def choose_device(device: torch.device | str | None) -> torch.device:
    """The given device; None: a GPU if there is one, else the CPU."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"unknown device {device!r}; it is cpu, cuda or cuda:N") from error
    if chosen.type not in ("cpu", "cuda"):
        raise InputError(f"unknown device {str(device)!r}; it is cpu, cuda or cuda:N")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise InputError("there is no CUDA device here; leave the device out to use the CPU")
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"there is no device {str(device)!r} here; the last one is "
            f"cuda:{torch.cuda.device_count() - 1}"
        )
    return chosen


def command_line(
    experiment: str | Path,
    folder: Path,
    *,
    overrides: Sequence[str],
    device: str | None,
    data: Path | None = None,
    resume: bool = False,
    minutes: float | None = None,
    memory: str | None = None,
    vocabulary: Path | None = None,
) -> str:
    """The command that trains this experiment in `folder`, or resumes it."""
    words = ["nodepiece", "train", str(experiment)]
    words += [word for override in overrides for word in ("--set", override)]
    words += ["--data", str(data)] if data is not None else []
    words += ["--vocabulary", str(vocabulary)] if vocabulary is not None else []
    words += ["--device", device] if device is not None else []
    words += ["--resume"] if resume else []
    words += ["--minutes", f"{minutes:.3g}"] if minutes is not None else []
    words += ["--memory", memory] if memory is not None else []
    return shlex.join([*words, "-o", str(folder)])
