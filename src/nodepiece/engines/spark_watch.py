"""Ends a job whose workers are gone: Spark itself would wait for new ones forever, in silence."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from nodepiece.errors import InputError

PATIENCE_SECONDS = 180.0  # a cluster replaces lost workers in less
POLL_SECONDS = 2.0


@contextmanager
def watched_workers(spark: Any, again: str = "") -> Iterator[None]:
    """Raise InputError if all workers are lost in the block and none comes back.

    A job that has had no worker yet is left waiting, as in the queue of a busy cluster.
    """
    if spark.sparkContext.master.startswith("local"):
        yield
        return
    watch = Watch(spark.sparkContext._jsc.sc())
    try:
        yield
    except Exception as error:
        if watch.has_ended_jobs.is_set():
            raise InputError(
                f"Spark has lost all its workers, and none came back in {PATIENCE_SECONDS:.0f} "
                f"seconds; start them{again}"
            ) from error
        raise
    finally:
        watch.stop()


class Watch:
    """A thread that counts workers, and cancels jobs that have none."""

    def __init__(self, context: Any) -> None:
        self.context = context  # of Spark, in Java
        self.has_ended_jobs, self._is_done = Event(), Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_done.set()
        self._thread.join()

    def _run(self) -> None:
        lost_since, had_workers = None, False
        while not self._is_done.wait(POLL_SECONDS):
            try:
                has_workers = self.context.getExecutorMemoryStatus().size() > 1  # the driver is one
                has_jobs = len(self.context.statusTracker().getActiveJobIds()) > 0
            except Exception:  # the session has ended, and the block will notice
                return
            had_workers = had_workers or has_workers
            if has_workers or not has_jobs or not had_workers:
                lost_since = None
            elif lost_since is None:
                lost_since = time.monotonic()
            elif time.monotonic() - lost_since >= PATIENCE_SECONDS:
                self.has_ended_jobs.set()
                self.context.cancelAllJobs()
                lost_since = None
