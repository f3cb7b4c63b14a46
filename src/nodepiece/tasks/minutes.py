"""The minutes of a training that is given none: those left to a stopped run, or ten for a graph."""

from dataclasses import dataclass
from pathlib import Path

from nodepiece.tasks.automatic import DEFAULT_MINUTES
from nodepiece.tasks.evaluation_time import minutes_in_words
from nodepiece.tasks.run_folder import CHECKPOINT, METRICS, read_metrics
from nodepiece.tasks.run_place import holds_work, is_pending, unfinished_folder
from nodepiece.training.checkpoint import read_progress

MIN_MINUTES = 0.05  # for a graph that needs less, and for a run that has less left


@dataclass(frozen=True)
class Minutes:
    """The minutes of a training, evaluation included."""

    number: float | None = None  # None: it has a number of epochs or steps, or is finished
    is_rest: bool = False  # of those that the run was given before it was stopped
    reason: str = ""  # where the user gave none
    is_finished: bool = False  # the run on this graph is finished, and stays as it is


def minutes_for(
    folder: Path,
    given: float | None,
    *,
    is_chosen: bool,  # settings are chosen for a graph
    has_epochs: bool,
    resume: bool,
    overwrite: bool,
) -> Minutes:
    """The given minutes; else those that a run to resume has left, or ten for a graph."""
    if given is not None or has_epochs:
        return Minutes(given)
    left = minutes_left(folder) if resume and not overwrite else None
    if left is not None:
        words = minutes_in_words(left)
        return Minutes(left, is_rest=True, reason=f"{words}, the rest of those the run was given")
    if not is_chosen:
        return Minutes()
    if resume and not overwrite and is_finished(folder):
        return Minutes(is_finished=True)
    words = minutes_in_words(DEFAULT_MINUTES)
    return Minutes(DEFAULT_MINUTES, reason=f"{words}, as none were given")


def minutes_left(folder: Path) -> float | None:
    """The minutes left to a run that was stopped; None if it was given none, or is finished."""
    place = unfinished_folder(folder) if is_pending(folder) else folder
    if not (place / CHECKPOINT).is_file():
        return None
    progress = read_progress(place / CHECKPOINT)
    if progress.minutes_left is None or is_evaluated(place, progress.num_steps):
        return None
    return max(MIN_MINUTES, progress.minutes_left)


def is_evaluated(place: Path, num_steps: int) -> bool:
    """Whether the metrics of a run are those after so many steps; before, it is stopped."""
    return (place / METRICS).is_file() and read_metrics(place)["steps"] == num_steps


def is_finished(folder: Path) -> bool:
    """Whether the run in a folder was trained and evaluated, and no other one will replace it."""
    return (folder / METRICS).is_file() and holds_work(folder) and not is_pending(folder)
