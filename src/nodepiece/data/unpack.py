"""Taking the expected files out of a downloaded archive, and nothing else."""

import gzip
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from nodepiece.errors import InputError

ARCHIVE_SUFFIXES = (".tar.gz", ".zip")
DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    RuntimeError,  # zipfile: encrypted, or a compression that it does not know
)


@dataclass(frozen=True)
class Member:
    """An entry of an archive of either kind."""

    path: PurePosixPath
    is_plain_file: bool
    open: Callable[[], IO[bytes] | None]


def unpack(archive: Path, wanted: Mapping[str, tuple[str, ...]], into: Path) -> None:
    """Write one file for each part of `wanted` (part -> accepted names) below `into`.

    A member is the wanted file if its path ends in the name, so a folder around everything does
    not matter. Other members are left alone. An archive with any path that leads out of its
    folder is refused as a whole, as is a link or a device under a wanted name: nothing is written
    by tarfile's or zipfile's own extraction.
    """
    try:
        with _members(archive) as members:
            for member in members:
                _refuse_escape(archive, member.path)
            for part, names in wanted.items():
                name, member = _choose(archive, members, part, names)
                target = into / name
                target.parent.mkdir(parents=True, exist_ok=True)
                source = member.open() if member.is_plain_file else None
                if source is None:
                    raise InputError(
                        f"{member.path} in {archive.name} is not a plain file; "
                        "it was not unpacked: tell the maintainers of nodepiece"
                    )
                with source, target.open("xb") as copy:
                    shutil.copyfileobj(source, copy, 1 << 20)
    except DAMAGE as error:
        raise InputError(
            f"{archive.name} cannot be unpacked ({error}); fetch the benchmark again"
        ) from error


@contextmanager
def _members(archive: Path) -> Iterator[list[Member]]:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as opened:
            yield [_zip_member(opened, entry) for entry in opened.infolist()]
    else:
        with tarfile.open(archive, "r:gz") as opened_tar:
            yield [
                Member(
                    PurePosixPath(entry.name),
                    entry.isreg(),
                    partial(opened_tar.extractfile, entry),
                )
                for entry in opened_tar.getmembers()
            ]


def _zip_member(opened: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Member:
    # The upper half of external_attr is the Unix mode, 0 where the archiver did not set one.
    kind = (entry.external_attr >> 16) & 0o170000
    is_plain_file = not entry.is_dir() and kind in (0, 0o100000)
    return Member(PurePosixPath(entry.filename), is_plain_file, partial(opened.open, entry))


def _refuse_escape(archive: Path, path: PurePosixPath) -> None:
    text = str(path)
    if path.is_absolute() or ".." in path.parts or "\\" in text or ":" in text:
        raise InputError(
            f"{archive.name} holds the path {text!r}, which leads out of its folder; "
            "it was not unpacked: tell the maintainers of nodepiece"
        )


def _choose(
    archive: Path, members: list[Member], part: str, names: tuple[str, ...]
) -> tuple[str, Member]:
    """The least deep member that has one of the names; the first name that is there counts."""
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
        "tell the maintainers of nodepiece"
    )
