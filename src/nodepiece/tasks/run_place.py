"""Where a run is written until it is finished, and what it may replace.

A run is trained in its folder, RUN, if this replaces no finished work. Otherwise it is trained in
a hidden folder beside it, `.RUN.unfinished`, and replaces the earlier run in one step when it is
finished; until then the earlier run can be used, and it remains if training fails.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from operator import eq
from pathlib import Path
from shutil import rmtree

from nodepiece.errors import InputError
from nodepiece.files import (
    check_replaceable,
    put_in_place,
    refuse_fixed,
    remove_leftovers,
)
from nodepiece.locks import is_locked, sole_writer
from nodepiece.settings import Experiment
from nodepiece.tasks.budget import is_same_but_for_length
from nodepiece.tasks.run_folder import CHECKPOINT, CONFIG, LIVE_LOCK, MODEL, PENDING, read_config


@contextmanager
def writing_run(folder: Path) -> Iterator[None]:
    """Hold the lock of a run folder; refused while another process trains or updates the run."""
    with sole_writer(folder):
        # An update takes its own lock first and then checks for ours: one of both is refused.
        if is_locked(folder / LIVE_LOCK):
            raise InputError(f"an update of {folder} is under way; try again when it is done")
        remove_remains(folder)
        try:
            yield
        finally:
            remove_remains(folder)


def check_place(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse to replace a folder that is not a run, and a run unless `resume` or `overwrite`."""
    check_replaceable(folder, CONFIG)
    if (resume or overwrite) or not (holds_work(folder) or is_pending(folder)):
        return
    raise InputError(
        f"{folder} holds a run already; continue it (--resume), replace it (--overwrite), or "
        "choose another output"
    )


def place_to_resume(folder: Path, experiment: Experiment, *, overwrite: bool) -> Path | None:
    """The folder with the checkpoint of a run with these settings; None if there is none.

    A run that will replace another one comes first. Without `overwrite`, a run that cannot be
    continued is refused.
    """
    pending = [unfinished_folder(folder)] if is_pending(folder) else []
    places = [place for place in (*pending, folder) if (place / CHECKPOINT).exists()]
    is_match = eq if overwrite else is_same_but_for_length  # another length may be another run
    for place in places:
        if is_match(read_config(place), experiment):
            return place
    if places and not overwrite:
        raise InputError(
            f"{folder} holds a run with other settings; resume it with the settings it was started "
            "with, or replace it with --overwrite instead of --resume"
        )
    if holds_work(folder) and not overwrite:
        raise InputError(
            f"{folder} holds a run without a {CHECKPOINT} to continue from; replace it with "
            "--overwrite instead of --resume, or choose another output"
        )
    return None


def place_to_start(folder: Path) -> Path:
    if not holds_work(folder):
        return folder
    refuse_fixed(folder)  # before hours of training
    return unfinished_folder(folder)


def finish_run(place: Path, folder: Path) -> None:
    """Move a finished run to its folder, where it replaces an earlier one."""
    if place != folder:
        check_replaceable(folder, CONFIG)
        put_in_place(place, folder.resolve())
        remove_leftovers(folder.resolve())


def remove_remains(folder: Path) -> None:
    """Remove an unfinished folder that cannot be continued.

    A folder that will replace another one has a file PENDING; the earlier run, which is exchanged
    with it, has none. So after a kill at any time it is known which of the two is the new one.
    """
    if not is_pending(folder):
        rmtree(unfinished_folder(folder), ignore_errors=True)
    remove_leftovers(unfinished_folder(folder))
    (folder / PENDING).unlink(missing_ok=True)


def unfinished_folder(folder: Path) -> Path:
    place = folder.resolve()
    return place.with_name(f".{place.name}.unfinished")


def is_pending(folder: Path) -> bool:
    """Whether there is an unfinished run that will replace the one in `folder`."""
    beside = unfinished_folder(folder)
    return (beside / PENDING).is_file() and holds_work(beside)


def has_more_to_do(folder: Path, *, resume: bool, held: bool) -> bool:
    """Whether a run that was interrupted can be resumed.

    held: whether `folder` had a run before, which is another one unless `resume`.
    """
    return is_pending(folder) or (holds_work(folder) and (resume or not held))


def is_without_work(folder: Path) -> bool:
    """Whether a run was stopped before it saved anything to continue from."""
    return (folder / CONFIG).is_file() and not (holds_work(folder) or is_pending(folder))


def holds_work(folder: Path) -> bool:
    return (folder / CHECKPOINT).exists() or (folder / MODEL).exists()
