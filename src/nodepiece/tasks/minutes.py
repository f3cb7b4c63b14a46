"""The minutes of a training that is given none: those left to a stopped run, or ten for a graph."""

from dataclasses import dataclass
from pathlib import Path

from nodepiece.settings import Experiment
from nodepiece.tasks.automatic import DEFAULT_MINUTES
from nodepiece.tasks.budget import is_same_but_for_length, with_validation_for
from nodepiece.tasks.evaluation_time import minutes_in_words
from nodepiece.tasks.run_folder import CHECKPOINT, METRICS, read_config, read_metrics
from nodepiece.tasks.run_place import holds_work, is_pending, unfinished_folder
from nodepiece.training.checkpoint import Progress, read_progress

MIN_MINUTES = 0.05  # for a graph that needs less, and for a run that has less left


@dataclass(frozen=True)
class Minutes:
    """The minutes of a training, evaluation included."""

    number: float | None = None  # None: it has a number of epochs or steps, or is finished
    over: float = 0.0  # minutes that were over when the run was stopped
    is_rest: bool = False  # of those that the run was given before it was stopped
    reason: str = ""  # where the user gave none
    is_finished: bool = False  # the run on this graph is finished, and stays as it is


def minutes_for(
    folder: Path,
    given: float | None,
    experiment: Experiment | None,  # None: any; settings are those of the run, or chosen
    *,
    is_chosen: bool,  # settings are chosen for a graph
    has_epochs: bool,
    resume: bool,
    overwrite: bool,
) -> Minutes:
    """The given minutes; else those that a run to resume has left, or ten for a graph."""
    if given is not None or has_epochs:
        return Minutes(given)
    progress = timed_progress(folder, experiment) if resume and not overwrite else None
    if progress is not None and progress.minutes_left is not None:
        left = max(MIN_MINUTES, progress.minutes_left)
        reason = f"{minutes_in_words(left)}, the rest of those the run was given"
        over = max(0.0, (progress.minutes or left) - left)
        return Minutes(left, over, is_rest=True, reason=reason)
    if not is_chosen:
        return Minutes()
    if resume and not overwrite and is_finished(folder):
        return Minutes(is_finished=True)
    words = minutes_in_words(DEFAULT_MINUTES)
    return Minutes(DEFAULT_MINUTES, reason=f"{words}, as none were given")


def minutes_left(folder: Path) -> float | None:
    """The minutes left to a run that was stopped; None if it was given none, or is finished."""
    progress = timed_progress(folder, None)
    if progress is None or progress.minutes_left is None:
        return None
    return max(MIN_MINUTES, progress.minutes_left)


def timed_progress(folder: Path, experiment: Experiment | None) -> Progress | None:
    """The progress of a run that was stopped, and has these settings but for its length.

    None if there is no such run, or it is finished. Of two, the one that will replace the other is
    continued, as in `place_to_resume`.
    """
    pending = [unfinished_folder(folder)] if is_pending(folder) else []
    for place in (*pending, folder):
        if (place / CHECKPOINT).is_file() and is_run_of(experiment, place):
            progress = read_progress(place / CHECKPOINT)
            return None if is_evaluated(place, progress.num_steps) else progress
    return None


def is_run_of(experiment: Experiment | None, place: Path) -> bool:
    if experiment is None:
        return True
    found = read_config(place)
    return any(
        is_same_but_for_length(found, each)
        for each in (experiment, with_validation_for(experiment))
    )


def is_evaluated(place: Path, num_steps: int) -> bool:
    """Whether the metrics of a run are those after so many steps; before, it is stopped."""
    return (place / METRICS).is_file() and read_metrics(place)["steps"] == num_steps


def is_finished(folder: Path) -> bool:
    """Whether the run in a folder was trained and evaluated, and no other one will replace it."""
    return (folder / METRICS).is_file() and holds_work(folder) and not is_pending(folder)
