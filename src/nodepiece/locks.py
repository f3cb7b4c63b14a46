"""One writer at a time for a file or folder, across processes and threads.

The lock is a file beside the target, `.NAME.lock`, held with flock: the system releases it when
the process ends for any reason. The file is empty; one that a killed process left is taken over by
the next writer, and removed when that is done.
"""

import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodepiece.errors import InputError

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # file systems that cannot lock


@contextmanager
def sole_writer(target: Path) -> Iterator[None]:
    """Hold the lock of `target`; raises InputError if it is held already."""
    path = lock_file(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _acquire(path)
    if descriptor is None:
        raise InputError(
            f"another process is writing {target}; wait until it is done, or choose another output"
        )
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while held: a process that opened it meanwhile tries again
        os.close(descriptor)


def has_writer(target: Path) -> bool:
    """Whether the lock of `target` is held; writes nothing."""
    return is_locked(lock_file(target))


def is_locked(path: Path) -> bool:
    """Whether a process holds a lock on this file."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def try_lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Whether the file is locked now; False if another process holds its lock.

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
