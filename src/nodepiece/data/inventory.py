"""The local benchmarks: where they are, their sizes, and whether their files are unchanged."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nodepiece.data.benchmarks import (
    BENCHMARKS,
    OUT_OF_SAMPLE,
    Benchmark,
    Location,
    benchmark_named,
    locations,
    search_places,
)
from nodepiece.data.fetch import read_receipt
from nodepiece.data.json_file import open_content, read_json
from nodepiece.data.releases import BLOCK, git_blob_of, load_checksums, load_sources, sha256_of
from nodepiece.errors import InputError


@dataclass(frozen=True)
class BenchmarkStatus:
    """A known benchmark and the local copy that would be used."""

    benchmark: Benchmark
    folder: Path | None  # None: not found
    sizes: Mapping[str, int]  # part -> facts or labelled nodes; without OGB's binary files
    problems: tuple[str, ...]  # such as "lacks test"; empty if it can be used

    @property
    def name(self) -> str:
        return self.benchmark.name


@dataclass(frozen=True)
class FileCheck:
    """A file of a benchmark, compared with its published checksums."""

    name: str  # of the benchmark
    path: Path
    state: Literal["ok", "changed", "missing", "unchecked"]
    remark: str  # the checksums compared, or why there are none


def list_benchmarks(data: Path | None) -> list[BenchmarkStatus]:
    """All known benchmarks. Lines are counted without parsing, about ten million a second."""
    places = search_places(data)
    return [_status(benchmark, places) for benchmark in BENCHMARKS.values()]


def verify_benchmarks(names: Sequence[str], data: Path | None) -> list[FileCheck]:
    """Check every file of the named benchmarks, or of all local ones if none is named.

    A file is valid if its sha256 is a known one, if its content, decompressed or not, has the git
    blob id of the public release, or if it is as `nodepiece datasets fetch` wrote it.
    """
    places = search_places(data)
    checks = []
    for benchmark in [benchmark_named(name) for name in names] or BENCHMARKS.values():
        location = _best_location(benchmark, places)
        if location is not None:
            checks += _check_location(location)
        elif names:
            folder = places[0] / benchmark.name
            parts = benchmark.layouts[0].files.values()
            checks += [_missing(benchmark.name, folder / files[0]) for files in parts]
    return checks


def _best_location(benchmark: Benchmark, places: tuple[Path, ...]) -> Location | None:
    """The first complete copy, else the first incomplete one."""
    found = list(locations(benchmark, places))
    return next((location for location in found if not location.missing), next(iter(found), None))


def _status(benchmark: Benchmark, places: tuple[Path, ...]) -> BenchmarkStatus:
    location = _best_location(benchmark, places)
    if location is None:
        return BenchmarkStatus(benchmark, None, {}, ())
    sizes = {}
    problems = [f"lacks {part}" for part in location.missing]
    for part, path in location.files.items():
        if part in benchmark.sizes and path.suffix != ".pt":
            try:
                sizes[part] = _count(path, benchmark)
            except (OSError, EOFError, TypeError, zlib.error, InputError) as error:
                problems.append(f"{path.name} cannot be read: {error}")
    return BenchmarkStatus(benchmark, location.folder, sizes, tuple(problems))


def _count(path: Path, benchmark: Benchmark) -> int:
    if ".json" not in path.suffixes:
        return _count_lines(path)
    content = read_json(path)
    if benchmark.task == OUT_OF_SAMPLE:
        return sum(len(facts) for facts in content.values())
    return len(content)


def _count_lines(path: Path) -> int:
    num_lines, last = 0, b"\n"
    with open_content(path) as file:
        while block := file.read(BLOCK):
            num_lines += block.count(b"\n")
            last = block[-1:]
    return num_lines + (last != b"\n")


def _missing(name: str, path: Path) -> FileCheck:
    return FileCheck(name, path, "missing", f"fetch it with `nodepiece datasets fetch {name}`")


def _check_location(location: Location) -> list[FileCheck]:
    name, folder = location.benchmark.name, location.folder
    checks = [_missing(name, path) for path in location.missing.values()]
    checks += [_check(name, folder, part, path) for part, path in location.files.items()]
    listed = [folder / Path(file).relative_to(name) for file in _listed_files(name)]
    extra = [path for path in listed if path.is_file() and path not in location.files.values()]
    return checks + [_check(name, folder, "", path) for path in extra]


def _listed_files(name: str) -> list[str]:
    return [file for file in load_checksums() if file.startswith(f"{name}/")]


def _check(name: str, folder: Path, part: str, path: Path) -> FileCheck:
    relative = path.relative_to(folder).as_posix()
    receipt = read_receipt(folder)
    expected = [
        f"sha256 {checksum}"
        for checksum in (
            load_checksums().get(f"{name}/{relative}"),
            receipt.sha256.get(relative) if receipt else None,
        )
        if checksum
    ]
    expected += [
        f"git blob {source.git_blob}"
        for source in load_sources()[name]
        if source.git_blob and source.stored_as and source.stored_as.rsplit(".", 1)[0] == part
    ]
    if not expected:
        return FileCheck(name, path, "unchecked", "no checksum is known for this file")
    try:
        found = [f"sha256 {sha256_of(path)}", f"git blob {_content_blob(path)}"]
    except (OSError, EOFError, zlib.error) as error:
        return FileCheck(name, path, "changed", f"it cannot be read: {error}; fetch it again")
    if agreed := set(expected) & set(found):
        caution = "; the download was not checked" if receipt and receipt.unchecked else ""
        return FileCheck(name, path, "ok", min(agreed) + caution)
    kinds = {text.rsplit(" ", 1)[0] for text in expected}
    shown = [text for text in found if text.rsplit(" ", 1)[0] in kinds]
    remark = f"expected {' or '.join(expected)}, found {' and '.join(shown)}; fetch it again"
    return FileCheck(name, path, "changed", remark)


def _content_blob(path: Path) -> str:
    """The git blob id of the decompressed content, which is read twice, first for its length."""
    with open_content(path) as file:
        num_bytes = sum(len(block) for block in iter(lambda: file.read(BLOCK), b""))
        file.seek(0)
        return git_blob_of(file, num_bytes)
