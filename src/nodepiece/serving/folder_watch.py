"""Waits until a file is renamed into a folder: notified by Linux, or by looking at it at times."""

import ctypes
import os
import select
from contextlib import suppress
from pathlib import Path

MOVED_TO, MOVE_SELF, DELETE_SELF = 0x80, 0x800, 0x400  # of <sys/inotify.h>
NONBLOCK = os.O_NONBLOCK | os.O_CLOEXEC
LOOK_SECONDS = 0.01  # between two looks at a folder without notifications


class FolderWatch:
    """The notifications of one folder, which need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._queue = -1  # the descriptor of inotify; -1: there are no notifications
        self._wake_reader, self._wake_writer = os.pipe()

    def wait(self, seconds: float) -> None:
        """Return when a file may have been renamed into the folder, or when `stop` is called.

        It may return earlier, and does after `seconds`.
        """
        if self._queue < 0:
            self._queue = watched(self._folder)
        limit = seconds if self._queue >= 0 else min(seconds, LOOK_SECONDS)
        poll = select.poll()  # not select, which takes no descriptors from 1,024 on
        for descriptor in (self._wake_reader, self._queue):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(1000 * limit)]
        if self._queue in ready and is_gone(os.read(self._queue, 1 << 16)):
            os.close(self._queue)
            self._queue = -1

    def stop(self) -> None:
        """Make `wait` return."""
        with suppress(OSError):
            os.write(self._wake_writer, b"x")

    def close(self) -> None:
        for descriptor in (self._queue, self._wake_reader, self._wake_writer):
            if descriptor >= 0:
                os.close(descriptor)


def watched(folder: Path) -> int:
    """A descriptor that is readable when a file was renamed into a folder; -1: there is none."""
    library = ctypes.CDLL(None, use_errno=True)
    start = getattr(library, "inotify_init1", None)
    if start is None or not folder.is_dir():
        return -1
    queue: int = start(NONBLOCK)
    if queue < 0:
        return -1
    mask = MOVED_TO | MOVE_SELF | DELETE_SELF
    if library.inotify_add_watch(queue, os.fsencode(folder), mask) < 0:
        os.close(queue)
        return -1
    return queue


def is_gone(events: bytes) -> bool:
    """Whether the folder itself was moved or removed."""
    place = 0
    while place + 16 <= len(events):
        mask = int.from_bytes(events[place + 4 : place + 8], "little")
        length = int.from_bytes(events[place + 12 : place + 16], "little")
        if mask & (MOVE_SELF | DELETE_SELF):
            return True
        place += 16 + length
    return False
