"""A thread that refreshes a run when another process has updated its folder."""

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from time import time_ns

from nodepiece.inference.graph_updates import UPDATES_FOLDER
from nodepiece.serving.folder_watch import FolderWatch

log = logging.getLogger("nodepiece")

SECONDS = 0.2  # after which the time of the last change is looked at without a notification
TICK = 100_000_000  # nanoseconds, more than a file system's clock needs to advance


class Follower:
    """Calls a function soon after every change of a run's updates."""

    def __init__(self, refresh: Callable[[], None], run: Path) -> None:
        self._refresh, self._folder = refresh, run / UPDATES_FOLDER
        self._last: int | None = None
        self._end = Event()
        self._watch = FolderWatch(self._folder)
        self._thread = Thread(target=self._work, name="nodepiece-follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        self._watch.stop()
        self._thread.join()
        self._watch.close()

    def _work(self) -> None:
        while not self._end.is_set():
            self._watch.wait(SECONDS)
            changed = changed_at(self._folder)
            if self._end.is_set() or changed is None or changed == self._last:
                continue
            try:
                self._refresh()
            except Exception as error:  # the thread goes on
                log.warning("the updates of %s were not read: %s", self._folder.parent, error)
                self._end.wait(1.0)
                continue
            if time_ns() - changed > TICK:  # else another change may have the same time
                self._last = changed  # from before the refresh: a later change is seen next time


def changed_at(folder: Path) -> int | None:
    """When an entry of the folder was last made or removed; None: there is no such folder."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return None
