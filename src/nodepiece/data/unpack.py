"""Unpacking the expected files of a downloaded archive, up to a given total size."""

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

from nodepiece.errors import InputError

Entry = TypeVar("Entry")
MAX_MEMBERS = 10_000  # of an archive; the largest known has some 30
MAX_HEADER = 1 << 24  # bytes that tarfile may read at once: extended headers are kept in memory
DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    ValueError,  # a header with impossible numbers
    RuntimeError,  # zipfile: encrypted, or a compression that it does not know
)


@dataclass(frozen=True)
class Member:
    """An entry of an archive of either kind."""

    path: PurePosixPath
    is_plain_file: bool
    num_bytes: int  # unpacked, as the archive says; it yields no more
    open: Callable[[], IO[bytes] | None]


def unpack(
    archive: Path, wanted: Mapping[str, tuple[str, ...]], into: Path, *, max_bytes: int
) -> None:
    """Write one file for each part of `wanted` (part -> accepted names) below `into`.

    A member is the wanted file if its path ends in the name, so a common top folder does not
    matter. Other members are skipped. An archive is refused if any path leads out of its folder,
    or if a wanted name is a link or a device; the extraction functions of tarfile and zipfile are
    not used. An archive that unpacks to more than `max_bytes` is refused before anything is
    written.
    """
    try:
        with _members(archive, max_bytes) as members:
            for member in members:
                _refuse_escape(archive, member.path)
            chosen = [_choose(archive, members, part, names) for part, names in wanted.items()]
            if sum(member.num_bytes for _, member in chosen) > max_bytes:
                raise _too_large(archive, max_bytes)
            for name, member in chosen:
                target = into / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as copy:
                    for block in _blocks(archive, member):
                        copy.write(block)
    except DAMAGE as error:
        raise InputError(
            f"{archive.name} cannot be unpacked ({error}); fetch the benchmark again"
        ) from error


@contextmanager
def _members(archive: Path, max_bytes: int) -> Iterator[list[Member]]:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as opened:
            yield [_zip_member(opened, entry) for entry in _counted(archive, opened.infolist())]
    else:
        with (
            BoundedGzip(archive, max_bytes) as content,
            tarfile.open(fileobj=content, mode="r:") as opened_tar,
        ):
            yield [
                Member(
                    PurePosixPath(entry.name),
                    entry.isreg() and not entry.issparse(),
                    entry.size,
                    partial(opened_tar.extractfile, entry),
                )
                for entry in _counted(archive, opened_tar)
            ]


class BoundedGzip(gzip.GzipFile):
    """A compressed file with limits on the total number of bytes and on the size of each read."""

    def __init__(self, archive: Path, max_bytes: int) -> None:
        super().__init__(archive, "rb")
        self.archive, self.max_bytes = archive, max_bytes

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= MAX_HEADER:
            raise _too_large(self.archive, self.max_bytes)
        self._refuse_beyond(self.tell() + size)
        return super().read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._refuse_beyond(offset)
        return super().seek(offset, whence)

    def _refuse_beyond(self, position: int) -> None:
        if position > self.max_bytes + tarfile.RECORDSIZE:  # tarfile reads whole records
            raise _too_large(self.archive, self.max_bytes)


def _blocks(archive: Path, member: Member) -> Iterator[bytes]:
    """The content of a member; offsets of a damaged archive may be negative."""
    try:
        source = member.open() if member.is_plain_file else None
        if source is None:
            raise InputError(
                f"{member.path} in {archive.name} is not a plain file; "
                "it was not unpacked: report it to the maintainers of nodepiece"
            )
        with source:
            while block := source.read(1 << 20):
                yield block
    except OSError as error:
        raise zipfile.BadZipFile(str(error)) from error


def _too_large(archive: Path, max_bytes: int) -> InputError:
    return InputError(
        f"{archive.name} unpacks to more than the {max_bytes:,} bytes that were expected; it was "
        "not unpacked: report it to the maintainers of nodepiece"
    )


def _counted(archive: Path, entries: Iterable[Entry]) -> Iterator[Entry]:
    for number, entry in enumerate(entries):
        if number == MAX_MEMBERS:
            raise InputError(
                f"{archive.name} holds more than {MAX_MEMBERS:,} files; it was not unpacked: "
                "report it to the maintainers of nodepiece"
            )
        yield entry


def _zip_member(opened: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Member:
    # The upper half of external_attr is the Unix mode, 0 where the archiver did not set one.
    kind = (entry.external_attr >> 16) & 0o170000
    is_plain_file = not entry.is_dir() and kind in (0, 0o100000)
    return Member(
        PurePosixPath(entry.filename), is_plain_file, entry.file_size, partial(opened.open, entry)
    )


def _refuse_escape(archive: Path, path: PurePosixPath) -> None:
    text = str(path)
    if path.is_absolute() or ".." in path.parts or "\\" in text or ":" in text:
        raise InputError(
            f"{archive.name} holds the path {text!r}, which leads out of its folder; "
            "it was not unpacked: report it to the maintainers of nodepiece"
        )


def _choose(
    archive: Path, members: list[Member], part: str, names: tuple[str, ...]
) -> tuple[str, Member]:
    """The member with the shortest path among those with the first of the names that is found."""
    for name in names:
        tail = PurePosixPath(name).parts
        fitting = [member for member in members if member.path.parts[-len(tail) :] == tail]
        fitting.sort(key=lambda member: len(member.path.parts))
        if len(fitting) > 1 and len(fitting[0].path.parts) == len(fitting[1].path.parts):
            both = f"{fitting[0].path} and {fitting[1].path}"
            raise InputError(f"{archive.name} holds {part} twice: {both}; it was not unpacked")
        if fitting:
            return name, fitting[0]
    raise InputError(
        f"{archive.name} holds none of {', '.join(names)}; its layout has changed: "
        "report it to the maintainers of nodepiece"
    )
