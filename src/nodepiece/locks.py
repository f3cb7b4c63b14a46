"""One writer at a time for a file or folder, across processes and threads.

The lock is a file beside the target, `.NAME.lock`, held with flock: the system releases it when
the process ends for any reason. The file is empty; one that a killed process left is taken over by
the next writer, and removed when that is done. A folder that exists is locked itself as well: that
is seen through every path to it, and holds where no file can be made beside it.
"""

import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import random
from time import monotonic, sleep

from nodepiece.errors import InputError

# File systems that cannot lock, or not what is open for reading only (EBADF: folders on NFS).
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EBADF)
NO_FILES = (errno.EACCES, errno.EPERM, errno.EROFS)  # folders in which no file can be made
PROBE_SECONDS = 1.0  # a probe takes microseconds
_held: set[int] = set()  # descriptors of locks


@contextmanager
def sole_writer(target: Path) -> Iterator[None]:
    """Hold the lock of `target`; raises InputError if it is held already."""
    with ExitStack() as locks:
        try:
            locks.enter_context(_locked_file(lock_file(target), target))
        except OSError as error:
            if error.errno not in NO_FILES or not target.is_dir():
                raise
        if target.is_dir():
            locks.enter_context(_locked_folder(target))
        yield


def has_writer(target: Path) -> bool:
    """Whether the lock of `target` is held; writes nothing."""
    return is_locked(lock_file(target)) or (target.is_dir() and is_locked(target))


def is_locked(path: Path) -> bool:
    """Whether a process holds a lock on this file or folder."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, PermissionError):
        return False
    try:
        return not _flock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


@contextmanager
def kept(descriptor: int) -> Iterator[None]:
    """Close the descriptor of a lock in the end; a forked child closes its copy at once.

    Otherwise the child would keep the lock when this process has released it.
    """
    owner = os.getpid()
    _held.add(descriptor)
    try:
        yield
    finally:
        if os.getpid() == owner:
            _held.discard(descriptor)
            os.close(descriptor)


def _release_in_child() -> None:
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_release_in_child)


def try_lock(descriptor: int) -> bool:
    """Whether the file is locked now; False if another process holds its lock.

    `is_locked` of another process holds the lock for an instant; this waits until it is released.
    """
    end = monotonic() + PROBE_SECONDS
    while not _flock(descriptor, fcntl.LOCK_EX):
        if not _flock(descriptor, fcntl.LOCK_SH) or monotonic() > end:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        sleep(0.002 * random())
    return True


def _flock(descriptor: int, kind: int) -> bool:
    """Whether the file is locked now.

    Where the file system cannot lock, this is logged, and the file counts as locked: a user who
    runs one writer at a time can write there.
    """
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        logging.getLogger(__name__).warning(
            "this file system cannot lock files: run one writer at a time (%s)", error
        )
    return True


def lock_file(target: Path) -> Path:
    target = target.resolve()  # the same lock through every link
    return target.with_name(f".{target.name}.lock")


@contextmanager
def _locked_file(path: Path, target: Path) -> Iterator[None]:
    """Hold the lock of a file that is made for it, and removed in the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    owner, descriptor = os.getpid(), _acquire(path)
    if descriptor is None:
        raise _refusal(target)
    with kept(descriptor):
        try:
            yield
        finally:  # while held: a process that opened it meanwhile tries again
            if os.getpid() == owner:
                path.unlink(missing_ok=True)


def _acquire(path: Path) -> int | None:
    """A descriptor that holds the lock, or None if another one holds it.

    The holder removes the file before it releases the lock, so the lock is valid only if the
    locked file is still the one at `path`.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not try_lock(descriptor):
                os.close(descriptor)
                return None
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except FileNotFoundError:
            pass  # removed by the process that held it before
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder itself."""
    descriptor = os.open(folder, os.O_RDONLY)
    with kept(descriptor):
        if not try_lock(descriptor):
            raise _refusal(folder)
        yield


def _refusal(target: Path) -> InputError:
    return InputError(
        f"another process is writing {target}; wait until it is done, or choose another output"
    )
