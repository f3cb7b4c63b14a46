"""Atomic writes: a reader never sees half a file or half a folder."""

import ctypes
import errno
import functools
import hashlib
import json
import os
import secrets
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from nodepiece.errors import InputError
from nodepiece.locks import sole_writer

Result = TypeVar("Result")


@contextmanager
def atomic_file(target: Path, *, cleans: bool = True) -> Iterator[Path]:
    """Yield a temporary path to write to; renamed to `target` on success, removed on failure.

    cleans: remove what killed processes left of the same file; its time grows with the folder.
    """
    target = target.resolve()  # a link stays, and its target is written
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = temporary_sibling(target)
    partial.touch()
    mode = partial.stat().st_mode  # a library may write a file that only its owner can read
    try:
        yield partial
        partial.chmod(mode)
        sync(partial)
        partial.replace(target)
        sync(target.parent)
    finally:
        partial.unlink(missing_ok=True)
    if cleans:
        remove_leftovers(target)


def write_bytes(target: Path, content: bytes, *, cleans: bool = True) -> None:
    """`atomic_file` for bytes in memory and a folder that exists, with few calls of the system."""
    partial = temporary_sibling(target)
    try:
        with open(partial, "xb", buffering=0) as file:  # noqa: PTH123 (a third of the time)
            rest = memoryview(content)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        partial.replace(target)
        sync(target.parent)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    if cleans:
        remove_leftovers(target)


def write_json(path: Path, content: dict[str, Any]) -> None:
    with atomic_file(path) as partial:
        partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


@contextmanager
def atomic_folder(target: Path, *, marker: str) -> Iterator[Path]:
    """Yield a temporary folder to fill; renamed to `target` on success, removed on failure.

    An earlier `target` is replaced only if it holds the file `marker` (it was written by nodepiece)
    or is empty. A second writer at the same time is refused.
    """
    check_replaceable(target, marker)
    refuse_fixed(target)
    place = target.resolve()  # a link stays, and its target is written
    with sole_writer(target), staged_folder(place) as partial:
        yield partial
    remove_leftovers(place)


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """Yield a folder to fill, which then replaces `target`; the caller holds the lock."""
    partial = temporary_sibling(target)
    partial.mkdir()
    try:
        yield partial
        for path in (partial, *partial.rglob("*")):
            sync(path)
        put_in_place(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def put_in_place(new: Path, target: Path) -> None:
    """Rename the synced folder `new` to `target`; an earlier folder there is removed.

    On Linux both are exchanged in one step, so that a reader always finds one or the other. Where
    the file system cannot do that, `target` is missing for an instant.
    """
    if not target.exists():
        new.rename(target)
    elif exchange(new, target):
        sync(target.parent)
        shutil.rmtree(new, ignore_errors=True)
    else:
        replace_in_two_steps(target, new)
    sync(target.parent)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two folders of one file system atomically; False where that is not supported."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    if rename(here, os.fsencode(one), here, os.fsencode(other), swap) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EXDEV):
        return False
    raise OSError(code, os.strerror(code), str(other))


def replace_in_two_steps(target: Path, new: Path) -> None:
    """Replace `target` by `new`; if that fails, restore `target`."""
    old = temporary_sibling(target)
    target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        if not target.exists():
            old.rename(target)
        raise
    shutil.rmtree(old)


def read_whole(folder: Path, read: Callable[[], Result]) -> Result:
    """The result of `read`, repeated if `folder` was replaced by another one meanwhile."""
    while True:
        before = _identity(folder)
        try:
            result = read()
        except Exception:
            if _identity(folder) == before:
                raise
            continue
        if _identity(folder) == before:
            return result


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def check_replaceable(target: Path, marker: str) -> None:
    if target.exists() and not is_replaceable(target, marker):
        raise InputError(
            f"{target} exists and is not a folder written by this command (it has no {marker}); "
            "choose another output, or remove it yourself"
        )


def refuse_fixed(target: Path) -> None:
    """Refuse a folder that cannot be renamed, and so not be replaced in one step."""
    place = target.resolve()
    if target.exists() and (place.is_mount() or str(place) in mount_points()):
        raise InputError(
            f"{target} is a mount point, which cannot be replaced; choose a folder inside it, such "
            f"as {target / 'output'}"
        )
    if target.exists() and not os.access(place.parent, os.W_OK):
        raise InputError(
            f"{target} cannot be replaced, since {place.parent} cannot be written to; choose a "
            "folder elsewhere"
        )


def mount_points() -> set[str]:
    """Where something is mounted, parts of the same file system included (Linux only)."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return set()
    return {line.split()[4] for line in lines}


def is_replaceable(target: Path, marker: str) -> bool:
    return target.is_dir() and ((target / marker).is_file() or not any(target.iterdir()))


def temporary_sibling(target: Path) -> Path:
    """An unused name in the folder of `target`, so that a rename stays in one file system.

    It contains the process that writes: .NAME.partial-WHERE-PID-RANDOM.
    """
    return target.with_name(f"{partial_prefix(target)}{os.getpid()}-{secrets.token_hex(4)}")


def remove_leftovers(target: Path) -> None:
    """Remove temporary files that killed processes left next to `target`.

    Called after `target` is written: a process killed between two renames leaves the earlier
    `target` under such a name. Files of living processes, or of other machines, are kept.
    """
    prefix = partial_prefix(target)
    for name in os.listdir(target.parent):  # noqa: PTH208 (much faster where there are many)
        if not name.startswith(prefix):
            continue
        path, pid = target.parent / name, name.removeprefix(prefix).partition("-")[0]
        if pid.isdigit() and not is_alive(int(pid)):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def partial_prefix(target: Path) -> str:
    """The start of a temporary name, with a hash of machine and container."""
    return f".{target.name}.partial-{_where()}-"


@functools.cache
def _where() -> str:
    """A hash of machine and container: process ids are only valid within these."""
    where = socket.gethostname()
    namespace = Path("/proc/self/ns/pid")
    if namespace.exists():
        where += str(namespace.stat().st_ino)
    return hashlib.sha256(where.encode()).hexdigest()[:8]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # sends no signal, and fails if there is no such process
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def sync(path: Path) -> None:
    """Force a file or a folder's entries to disk.

    The file is synced before a rename, so that the rename is never stored first; the parent folder
    after it, so that the rename is stored before anything later.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
