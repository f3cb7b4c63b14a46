"""The beginning of a run: a folder with its data and tokens, new or of a run to resume."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from nodepiece.errors import InputError
from nodepiece.graph.short_text import plural
from nodepiece.tasks.run_folder import CHECKPOINT, start_run
from nodepiece.tasks.run_place import (
    check_place,
    is_without_work,
    place_to_resume,
    place_to_start,
    unfinished_folder,
)
from nodepiece.tasks.task import Task
from nodepiece.tasks.tokens import make_tokens
from nodepiece.training.distribution import current_processes


def prepare_folder(
    task: Task[Any],
    folder: Path,
    *,
    resume: bool,
    overwrite: bool,
    vocabulary: Path | None,
    log: Callable[[str], None],
) -> tuple[Path, bool]:
    """The run folder to train in, with tokens, and whether a run is resumed there."""
    processes, place, is_resumed = current_processes(), folder, False
    if processes.is_first:
        if resume and is_without_work(folder):
            log(f"{folder} has no {CHECKPOINT} to continue from, so training begins again")
        place, is_resumed = start_or_resume(task, folder, resume=resume, overwrite=overwrite)
        if not is_resumed:
            log(f"tokenizing {plural(task.graph.num_nodes, 'node')}")
            make_tokens(task.experiment, task.graph, place, vocabulary)
    is_beside = processes.any(place != folder)
    place = unfinished_folder(folder) if is_beside else folder
    return place, processes.any(is_resumed)


def start_or_resume(
    task: Task[Any], folder: Path, *, resume: bool, overwrite: bool
) -> tuple[Path, bool]:
    """The run folder to train in, new or checked, and whether a run is resumed there.

    A run without a checkpoint is started again.
    """
    experiment = task.experiment
    check_place(folder, resume=resume, overwrite=overwrite)
    place = None
    if resume:
        place = place_to_resume(folder, experiment, overwrite=overwrite)
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
