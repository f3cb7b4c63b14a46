"""One job at a time in a folder of steps, on any file system of Spark."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from nodepiece.errors import InputError
from nodepiece.locks import sole_writer

LOCAL = "file://"
REFRESH_SECONDS = 60.0
STALE_SECONDS = 600.0  # without a refresh: the job that made it has ended


@contextmanager
def sole_job(spark: Any, folder: str) -> Iterator[None]:
    """Hold the lock of a folder of steps; raises InputError if another job has it.

    A local lock ends with its process. Elsewhere (HDFS, an object store) it is a file beside the
    folder, written again every minute; one that is ten minutes old is taken over.
    """
    if folder.startswith(LOCAL):
        lock = local_lock(Path(folder.removeprefix(LOCAL)))
    else:
        lock = stored_lock(spark, f"{folder}.lock")
    with lock:
        yield


@contextmanager
def local_lock(folder: Path) -> Iterator[None]:
    lock = sole_writer(folder)
    try:
        lock.__enter__()
    except InputError as error:
        raise InputError(
            f"another job uses {folder}; wait until it has ended, or choose another --work folder"
        ) from error
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


@contextmanager
def stored_lock(spark: Any, path: str) -> Iterator[None]:
    """A lock as a file of Spark."""
    place = spark._jvm.org.apache.hadoop.fs.Path(path)
    files = place.getFileSystem(spark._jsc.hadoopConfiguration())
    if files.exists(place) and age(spark, path) >= STALE_SECONDS:
        files.delete(place, False)
    if not files.createNewFile(place):  # in one step, where the file system has that
        raise InputError(
            f"another job uses {path.removesuffix('.lock')}, or was ended in the last "
            f"{STALE_SECONDS / 60:.0f} minutes (there is {path}); wait, or choose another --work "
            "folder"
        )
    is_done = Event()
    refresher = Thread(target=refresh, args=(files, place, is_done), daemon=True)
    refresher.start()
    try:
        yield
    finally:
        is_done.set()
        refresher.join()
        files.delete(place, False)


def refresh(files: Any, place: Any, is_done: Event) -> None:
    """Write the file again every minute, so that its time is new."""
    while not is_done.wait(REFRESH_SECONDS):
        try:
            files.create(place, True).close()
        except Exception as error:  # py4j has many; the next minute may be better
            logging.getLogger(__name__).warning("%s cannot be refreshed (%s)", place, error)


def age(spark: Any, path: str) -> float:
    """Seconds since a file was written, by the clock of its file system."""
    make = spark._jvm.org.apache.hadoop.fs.Path
    files = make(path).getFileSystem(spark._jsc.hadoopConfiguration())
    probe = make(f"{path}.now")
    files.create(probe, True).close()
    now = files.getFileStatus(probe).getModificationTime()
    files.delete(probe, False)
    return float(now - files.getFileStatus(make(path)).getModificationTime()) / 1000
