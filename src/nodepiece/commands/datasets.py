"""nodepiece datasets: list known benchmarks and where they are, fetch them, verify them."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from nodepiece.commands.console import err, log, out, readable_bytes
from nodepiece.commands.graphs import DataOption
from nodepiece.errors import InputError

ACTIONS = ("list", "fetch", "verify")

if TYPE_CHECKING:
    from nodepiece.data.fetch import FetchProgress
    from nodepiece.data.inventory import BenchmarkStatus


def datasets(
    action: Annotated[
        str, typer.Argument(metavar="ACTION", help="list, fetch or verify.")
    ] = "list",
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", show_default=False, help="Which ones; for list and verify, else all."
        ),
    ] = None,
    data: DataOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON for other programs (list).")
    ] = False,
    unchecked: Annotated[
        bool,
        typer.Option("--unchecked", help="Also fetch files without a published checksum."),
    ] = False,
) -> None:
    """List the known benchmarks and where they were found, fetch some, or verify their files.

    fetch downloads the public release into --data, or else into the user's cache.

    An interrupted fetch continues where it stopped.
    """
    if action not in ACTIONS:
        raise InputError(f"unknown action {action!r}; it is one of {', '.join(ACTIONS)}")
    if action == "fetch":
        fetch(names or [], data, unchecked=unchecked)
    elif action == "verify":
        verify(names or [], data)
    else:
        list_all(names or [], data, as_json)


def list_all(names: list[str], data: Path | None, as_json: bool) -> None:
    from nodepiece.data.benchmarks import benchmark_named, search_places
    from nodepiece.data.inventory import list_benchmarks

    wanted = {benchmark_named(name).name for name in names}
    found = [row for row in list_benchmarks(data) if not wanted or row.name in wanted]
    if as_json:
        typer.echo(json.dumps([status_json(status) for status in found], indent=2))
        return
    places = search_places(data)
    out.print(status_table(found, places))
    numbered = [f"({number}) {place}" for number, place in enumerate(places, start=1)]
    log("searched, in this order: " + ", ".join(numbered))
    log("get one that is missing with: nodepiece datasets fetch NAME")


def status_table(found: "list[BenchmarkStatus]", places: tuple[Path, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True)
    for heading in ("nodes", "relations", "facts"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("found in")
    task = ""
    for status in found:
        known = status.benchmark
        if known.task != task:
            task = known.task
            table.add_section()
            table.add_row(task, style="bold")
        facts = sum(n for part, n in known.sizes.items() if not part.endswith("_labels"))
        table.add_row(
            known.name,
            "?" if known.num_nodes is None else f"{known.num_nodes:,}",
            f"{known.num_relations:,}",
            f"{facts:,}",
            where(status, places),
        )
    return table


def where(status: "BenchmarkStatus", places: tuple[Path, ...]) -> str:
    """The number of the folder that has the benchmark, and what is wrong with the copy."""
    folder = status.folder
    if folder is None:
        return "-"
    position = next(n for n, place in enumerate(places, start=1) if folder.is_relative_to(place))
    expected = status.benchmark.sizes
    problems = list(status.problems) + [
        f"{part} has {number:,} rows, expected {expected[part]:,}"
        for part, number in status.sizes.items()
        if number != expected[part]
    ]
    return "; ".join([f"({position})", *problems])


def status_json(status: "BenchmarkStatus") -> dict[str, Any]:
    known = status.benchmark
    return {
        "name": known.name,
        "task": known.task,
        "num_nodes": known.num_nodes,
        "num_relations": known.num_relations,
        "sizes": dict(known.sizes),
        "source": known.source,
        "folder": None if status.folder is None else str(status.folder),
        "sizes_found": dict(status.sizes),
        "problems": list(status.problems),
    }


def fetch(names: list[str], data: Path | None, *, unchecked: bool) -> None:
    from nodepiece.data.benchmarks import benchmark_named, cache_folder
    from nodepiece.data.fetch import fetch_benchmark

    if not names:
        raise InputError("name what to fetch, such as: nodepiece datasets fetch fb15k-237")
    for name in [benchmark_named(name).name for name in names]:
        with DownloadProgress() as progress:
            report = fetch_benchmark(
                name, into=data or cache_folder(), progress=progress.show, unchecked=unchecked
            )
        if report.was_there:
            log(f"{name} exists already and is unchanged: {report.folder}")
        else:
            log(f"fetched {name}: {readable_bytes(report.num_bytes)} into {report.folder}")
        if report.caution:
            err.print(f"caution: {report.caution}", style="yellow", soft_wrap=True)


class DownloadProgress:
    """A bar on a terminal; elsewhere a line for each file and each remark."""

    def __init__(self) -> None:
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=err,
            disable=not err.is_terminal,
        )
        self.task = self.bar.add_task("", total=None)
        self.said = ""

    def __enter__(self) -> "DownloadProgress":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def show(self, step: "FetchProgress") -> None:
        line = f"{step.name} {step.file_number}/{step.num_files}: {step.file}"
        self.bar.update(
            self.task, description=line, completed=step.num_bytes, total=step.total_bytes
        )
        line = step.remark or line
        if line != self.said and (step.remark or not err.is_terminal):
            self.bar.console.print(line, soft_wrap=True)
            self.said = line


def verify(names: list[str], data: Path | None) -> None:
    from nodepiece.data.inventory import verify_benchmarks

    checks = verify_benchmarks(names, data)
    if not checks:
        raise InputError(
            "no benchmark was found to verify; `nodepiece datasets` lists the folders searched"
        )
    for check in checks:
        log(f"{check.state:9} {check.path}" + ("" if check.state == "ok" else f" ({check.remark})"))
    counts = Counter(check.state for check in checks)
    log(", ".join(f"{number:,} {state}" for state, number in counts.items()))
    if counts["changed"] or counts["missing"]:
        raise InputError(
            f"{counts['changed'] + counts['missing']} of {len(checks)} files are not as published; "
            "fetch them again"
        )
