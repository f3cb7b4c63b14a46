"""Tokenization, ours and PyKEEN's, on the same anchors and the same edges.

    python -m benchmarks.tokenization --cases fb15k-237,wn18rr

Every measurement runs in a separate process. PyKEEN's searchers are compared call by call: edges
and anchors in, k anchors for every node out, its matrix or our adjacency built within. (Its fourth
searcher ranks by personalized PageRank, node by node, and is another method.) Writes
results/tokenize-CASE.json; a measurement that was stopped or ran out of memory says so there.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

from benchmarks.cases import CASES, Case
from rich.console import Console
from rich.table import Table

from nodepiece.files import write_json

Measured = dict[str, Any]  # what benchmarks.measure prints, or {"status": why there is nothing}

ROOT = Path(__file__).parent.parent
PACKAGES = ("nodepiece", "numpy", "numba", "scipy", "torch", "pykeen")
LIMIT_SECONDS = 1800
TABLE_WIDTH = 120  # columns, where there is no terminal to ask

ONE_THREAD = "-1-thread"
OURS = {  # step -> title
    "compile": "compilation, once",
    "search": "k nearest anchors",
    "search-1-thread": "k nearest anchors, 1 thread",
    "select": "anchor selection",
    "context": "relational context",
    "whole": "whole, from arrays",
    "read": "reading a TSV file",
    "whole-from-file": "whole, from a TSV file",
}
OF_FILES = ("read", "whole-from-file")  # measured where a case reads a file
PYKEEN = {  # step -> the step of ours that it is held against
    "pykeen-search-csgraph": "search",
    "pykeen-search-scipy-sparse": "search",
    "pykeen-search-sparse-bfs": "search",
    "pykeen-select": "select",
    "pykeen-context": "context",
}
PYKEEN_WHOLE = ("pykeen-search-csgraph", "pykeen-select", "pykeen-context")  # one of each


def main() -> None:
    options = parse_options()
    console = Console() if sys.stdout.isatty() else Console(width=TABLE_WIDTH)
    failures = []
    for name in options.cases:
        sizes, measured = measure_case(name, options, console)
        console.print(as_table(name, sizes, measured))
        write_result(name, options, sizes, measured)
        failures += [f"{name} {step}" for step in OURS if "status" in measured.get(step, {})]
    sys.exit(f"failed: {', '.join(failures)}" if failures else 0)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", default=",".join(CASES), help="default: %(default)s")
    parser.add_argument(
        "--pykeen-limit-seconds",
        type=float,
        default=LIMIT_SECONDS,
        help="stop a process that measures PyKEEN after so long; 0: leave PyKEEN out (%(default)s)",
    )
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="of ours; default: all (%(default)s)"
    )
    options = parser.parse_args()
    options.cases = options.cases.split(",")
    for name in options.cases:
        if name not in CASES:
            parser.error(f"unknown case {name!r}; it is one of {', '.join(CASES)}")
    return options


def measure_case(
    name: str, options: argparse.Namespace, console: Console
) -> tuple[dict[str, int], dict[str, Measured]]:
    """The sizes of the graph, and all measurements, one after the other, by step."""
    measured: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory() as folder:
        console.print(f"{name}: preparing the graph")
        try:
            sizes = json.loads(run_module("benchmarks.cases", [name, folder], {}, None).stdout)
        except subprocess.CalledProcessError as error:
            sys.exit(f"{name}: {reason_of(error)}")
        for step in steps_of(CASES[name], options):
            console.print(f"{name}: {step}")
            num_threads = 1 if step.endswith(ONE_THREAD) else options.threads
            environment = {"NUMBA_CACHE_DIR": folder, "NUMBA_NUM_THREADS": str(num_threads)}
            limit = options.pykeen_limit_seconds if step in PYKEEN else None
            arguments = [name, step.removesuffix(ONE_THREAD), folder]
            measured[step] = measure(arguments, environment, limit)
    return sizes, measured


def steps_of(case: Case, options: argparse.Namespace) -> list[str]:
    """The steps, ours first; the first of them compiles the kernels."""
    steps = [step for step in OURS if step not in OF_FILES or case.reads_file]
    if case.with_pykeen and options.pykeen_limit_seconds:
        steps += [*PYKEEN, "compare"]
    return steps


def measure(arguments: list[str], environment: dict[str, str], limit: float | None) -> Measured:
    try:
        done = run_module("benchmarks.measure", arguments, environment, limit)
    except subprocess.TimeoutExpired:
        return {"status": f"stopped after {limit:,.0f} s"}
    except subprocess.CalledProcessError as error:
        return {"status": reason_of(error)}
    return json.loads(done.stdout.splitlines()[-1])


def run_module(
    module: str, arguments: list[str], environment: dict[str, str], limit: float | None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=limit,
        check=True,
    )


def reason_of(error: subprocess.CalledProcessError) -> str:
    """The reason why a measurement ended without a result, in words."""
    if error.returncode == -9:
        return "killed by the system, which it does when memory runs out"
    last_line = (error.stderr.strip().splitlines() or ["no message"])[-1]
    if last_line.startswith(("ImportError", "ModuleNotFoundError")):
        return f"not installed: {last_line.partition(': ')[2]}"
    if "MemoryError" in last_line or "can't allocate memory" in last_line:  # Python's, PyTorch's
        return "out of memory"
    return f"failed: {last_line}"


def as_table(name: str, sizes: dict[str, int], measured: dict[str, Measured]) -> Table:
    case = CASES[name]
    table = Table(
        title=f"{name}: {sizes['num_nodes']:,} nodes, {sizes['num_edges']:,} edges, "
        f"{sizes['num_relations']:,} relations\n{case.num_anchors:,} anchors, "
        f"k={case.anchors_per_node}, m={case.relations_per_node}",
        caption=None if case.with_pykeen else why_not_pykeen(case, sizes),
    )
    table.add_column("step", no_wrap=True)
    for column in ("seconds", "times ours", "peak MiB", "same distances"):
        table.add_column(column, justify="right")
    table.add_column("no result")
    for step in [step for step in (*OURS, *PYKEEN) if step in measured]:
        table.add_row(
            OURS.get(step) or f"PyKEEN {step.removeprefix('pykeen-')}", *cells(step, measured)
        )
    if (seconds := pykeen_whole_seconds(measured)) and (ours := measured["whole"].get("seconds")):
        table.add_row(
            "PyKEEN csgraph + select + context", f"{seconds:,.2f}", f"{seconds / ours:,.1f}"
        )
    return table


def cells(step: str, measured: dict[str, Measured]) -> list[str]:
    found = measured[step]
    if "status" in found:
        return ["", "", "", "", found["status"]]
    ratio = times_ours(step, measured)
    share = measured.get("compare", {}).get("result", {}).get(step)
    return [
        f"{found['seconds']:,.2f}",
        "" if ratio is None else f"{ratio:,.1f}",
        f"{found['peak_memory_mib']:,.0f}",
        "" if share is None else f"{share:.1%}",
    ]


def times_ours(step: str, measured: dict[str, Measured]) -> float | None:
    """How many times as long as ours; None for ours, or where one of the two has no result."""
    seconds = measured[step].get("seconds")
    ours = measured.get(PYKEEN.get(step, ""), {}).get("seconds")
    return seconds / ours if seconds and ours else None


def pykeen_whole_seconds(measured: dict[str, Measured]) -> float | None:
    """The sum of its steps, None if one of them has no result."""
    found = [measured.get(step, {}) for step in PYKEEN_WHOLE]
    return sum(one["seconds"] for one in found) if all("seconds" in one for one in found) else None


def why_not_pykeen(case: Case, sizes: dict[str, int]) -> str:
    gib = case.num_anchors * sizes["num_nodes"] * 8 / 2**30
    return f"PyKEEN was not tried: its table of nodes by anchors alone would take {gib:,.0f} GiB"


def installed_versions() -> dict[str, str]:
    installed = {package for names in packages_distributions().values() for package in names}
    return {package: version(package) for package in PACKAGES if package in installed}


def write_result(
    name: str,
    options: argparse.Namespace,
    sizes: dict[str, int],
    measured: dict[str, Measured],
) -> None:
    case = CASES[name]
    command = f"python -m benchmarks.tokenization --cases {name}"
    if options.threads != os.cpu_count():
        command += f" --threads {options.threads}"
    if options.pykeen_limit_seconds != LIMIT_SECONDS:
        command += f" --pykeen-limit-seconds {options.pykeen_limit_seconds:g}"
    result = {
        "case": name,
        "command": command,
        **sizes,
        "num_anchors": case.num_anchors,
        "anchors_per_node": case.anchors_per_node,
        "relations_per_node": case.relations_per_node,
        "cpus": os.cpu_count(),
        "threads": options.threads,
        "versions": {"python": platform.python_version()} | installed_versions(),
        "times_ours": {step: times_ours(step, measured) for step in PYKEEN if step in measured},
        "measurements": measured,
    }
    if not case.with_pykeen:
        result["note"] = why_not_pykeen(case, sizes)
    write_json(ROOT / "results" / f"tokenize-{name}.json", result)


if __name__ == "__main__":
    main()
