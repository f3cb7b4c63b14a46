"""Downloading a benchmark from its public release."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from nodepiece.data.benchmarks import Benchmark, benchmark_named
from nodepiece.data.download import Downloaded, RetryPolicy, disk_errors, download
from nodepiece.data.releases import Source, git_blob_of, load_sources, sha256_of
from nodepiece.data.unpack import unpack
from nodepiece.errors import InputError
from nodepiece.files import atomic_folder, is_replaceable

RECEIPT = "fetched.json"  # in every fetched folder: the source of its files, and checksums
DOWNLOADS = ".downloads"  # in the data folder: files of benchmarks that are not complete yet


@dataclass(frozen=True)
class FetchProgress:
    name: str
    file: str
    file_number: int  # from 1
    num_files: int
    num_bytes: int  # of this file so far
    total_bytes: int | None  # of this file; None: the server did not say
    remark: str = ""  # such as "connection reset; trying again in 2 s"


@dataclass(frozen=True)
class FetchReport:
    name: str
    folder: Path
    num_bytes: int  # downloaded; 0 if everything was there
    unchecked: tuple[str, ...]  # addresses without a published checksum
    was_there: bool  # True: nothing was downloaded

    @property
    def caution(self) -> str | None:
        """A warning if some files could not be checked; None otherwise."""
        if not self.unchecked:
            return None
        return (
            f"no checksum is published for {', '.join(self.unchecked)}: the download of "
            f"{self.name} could not be checked"
        )


def fetch_benchmark(
    name: str,
    *,
    into: Path,
    progress: Callable[[FetchProgress], None],
    unchecked: bool = False,
    sources: Mapping[str, tuple[Source, ...]] | None = None,
    retry: RetryPolicy | None = None,
) -> FetchReport:
    """Download a benchmark to `into`/NAME, a folder that appears when it is complete and checked.

    Files are downloaded to `into`/.downloads and stay there if the command is interrupted; the
    next call continues. A folder that was fetched before and is unchanged is kept. A release
    without a published checksum is refused unless `unchecked`.
    """
    benchmark = benchmark_named(name)
    rows = (load_sources() if sources is None else sources)[name]
    folder = into / name
    receipt = read_receipt(folder)
    if receipt is not None and is_intact(folder, receipt):
        return FetchReport(name, folder, 0, receipt.unchecked, was_there=True)
    if folder.exists() and not is_replaceable(folder, RECEIPT):
        raise InputError(
            f"{folder} exists and was not fetched by this command; "
            "move it away, or fetch into another data folder"
        )
    if not unchecked:
        _refuse_unchecked(name, rows)
    downloads = into / DOWNLOADS / name
    arrived = {}
    for number, source in enumerate(rows, start=1):
        start = FetchProgress(name, source.file_name, number, len(rows), 0, source.num_bytes)
        report = partial(_report, progress, start)
        arrived[source] = _download_once(source, downloads, report, retry or RetryPolicy())
    not_checked = tuple(source.url for source, file in arrived.items() if not file.is_checked)
    with disk_errors(folder):
        _place(benchmark, arrived, folder, not_checked)
        _remove_downloads(downloads, into)
    num_bytes = sum(file.num_bytes for file in arrived.values())
    return FetchReport(name, folder, num_bytes, not_checked, was_there=False)


def _refuse_unchecked(name: str, rows: tuple[Source, ...]) -> None:
    missing = [source.url for source in rows if source.git_blob is None]
    if missing:
        raise InputError(
            f"no checksum is published for {', '.join(missing)}, so the download of {name} cannot "
            f"be checked; fetch it anyway with: nodepiece datasets fetch {name} --unchecked"
        )


def _report(
    progress: Callable[[FetchProgress], None],
    start: FetchProgress,
    num_bytes: int,
    announced: int | None,
    remark: str,
) -> None:
    total = announced if start.total_bytes is None else start.total_bytes
    progress(replace(start, num_bytes=num_bytes, total_bytes=total, remark=remark))


def _download_once(
    source: Source,
    downloads: Path,
    report: Callable[[int, int | None, str], None],
    retry: RetryPolicy,
) -> Downloaded:
    """Download a file, unless an interrupted call has downloaded it completely."""
    target = downloads / source.file_name
    if target.is_file():
        num_bytes = target.stat().st_size
        with target.open("rb") as file:
            if source.git_blob in (None, git_blob_of(file, num_bytes)):
                return Downloaded(target, num_bytes, source.git_blob is not None)
        target.unlink()
    return download(source, target, report=report, retry=retry)


def _place(
    benchmark: Benchmark,
    arrived: Mapping[Source, Downloaded],
    folder: Path,
    unchecked: tuple[str, ...],
) -> None:
    """Move the complete benchmark, with a receipt, to its folder in one rename."""
    with atomic_folder(folder, marker=RECEIPT) as staging:
        for source, file in arrived.items():
            if source.stored_as is None:
                _unpack_or_remove(file.path, benchmark, staging, source.max_unpacked)
            else:
                target = staging / source.stored_as
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.path, target)
        files = sorted(path for path in staging.rglob("*") if path.is_file())
        receipt = {
            "from": [source.url for source in arrived],
            "unchecked": unchecked,
            "sha256": {path.relative_to(staging).as_posix(): sha256_of(path) for path in files},
        }
        (staging / RECEIPT).write_text(json.dumps(receipt, indent=2) + "\n", encoding="utf-8")


def _unpack_or_remove(archive: Path, benchmark: Benchmark, into: Path, max_bytes: int) -> None:
    """Unpack an archive; an unusable one is removed, so that the next call downloads it again."""
    try:
        unpack(archive, benchmark.layouts[0].files, into, max_bytes=max_bytes)
    except InputError:
        archive.unlink()
        raise


def _remove_downloads(downloads: Path, into: Path) -> None:
    shutil.rmtree(downloads)
    for parent in downloads.relative_to(into).parents[:-1]:  # nearest first, without `into`
        if not any((into / parent).iterdir()):
            (into / parent).rmdir()


@dataclass(frozen=True)
class Receipt:
    """The contents of RECEIPT."""

    sha256: Mapping[str, str]  # file, relative to the folder -> its checksum when it was fetched
    unchecked: tuple[str, ...]  # addresses of downloads without a published checksum


def read_receipt(folder: Path) -> Receipt | None:
    """The receipt of a folder; None if it was not fetched, or its receipt is damaged."""
    try:
        content = json.loads((folder / RECEIPT).read_text(encoding="utf-8"))
        return Receipt(dict(content["sha256"]), tuple(content["unchecked"]))
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return None


def is_intact(folder: Path, receipt: Receipt) -> bool:
    """Whether every file is as it was fetched."""
    return all(
        (folder / file).is_file() and sha256_of(folder / file) == checksum
        for file, checksum in receipt.sha256.items()
    )
