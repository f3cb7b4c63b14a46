"""All runs of `benchmarks.budget`: the search of PyKEEN's settings, then everyone's full minutes.

    python -m benchmarks.budget all --lanes 8 --minutes 10 -o FOLDER

Each lane has two processors to itself and one run at a time. A run whose file is in FOLDER is not
repeated, so the command can be given again after it was stopped, and in parts (--phase). At the end
FOLDER/budget.json and FOLDER/budget.svg have everything.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

from benchmarks.budget import GENERATED, OURS

SEARCH_MINUTES = 2.0
MANY_NODES = ("planted-2.5m",)  # where a batch against all nodes does not fit into memory

# Options of each contender in the search, on every dataset. The distances of TransE and RotatE, and
# PyKEEN's DistMult, take a vector for every pair of query and node, so their batches are small.
GRIDS = {
    "complex-lcwa": ("--lr 0.003 --batch 128", "--lr 0.01 --batch 256 --decay"),
    "complex-slcwa": (
        "--loss cross-entropy --lr 0.01 --batch 512 --negatives 64",
        "--loss cross-entropy --lr 0.003 --batch 512 --negatives 64",
    ),
    "distmult-lcwa": ("--lr 0.01 --batch 64",),
    "distmult-slcwa": (
        "--loss cross-entropy --lr 0.01 --batch 512 --negatives 64",
        "--loss cross-entropy --lr 0.003 --batch 512 --negatives 64",
    ),
    "transe-lcwa": ("--lr 0.003 --batch 16 --norm 2",),
    "transe-slcwa": (
        "--loss nssa --lr 0.003 --batch 1024 --negatives 32",
        "--loss nssa --lr 0.01 --batch 1024 --negatives 32",
        "--loss margin --lr 0.005 --batch 4096",
    ),
    "rotate-lcwa": ("--lr 0.003 --batch 8",),
    "rotate-slcwa": (
        "--lr 0.01 --batch 512 --margin 6",
        "--lr 0.03 --batch 1024 --margin 6",
    ),
}


@dataclass(frozen=True)
class Job:
    """One run: the options of `benchmarks.budget run`, and the name of its file."""

    name: str
    options: tuple[str, ...]

    def file(self, folder: Path) -> Path:
        return folder / f"{self.name}.json"

    def is_done(self, folder: Path) -> bool:
        """Whether the result is there, and that of the test facts, which is written at the end."""
        path = self.file(folder)
        return path.exists() and ("--no-test" in self.options or bool(read_json(path)["test"]))


def searches(datasets: Iterable[str], minutes: float = SEARCH_MINUTES) -> Iterator[Job]:
    """The short runs of PyKEEN, one setting of all contenders after the other."""
    for number in range(max(len(grid) for grid in GRIDS.values())):
        for dataset in datasets:
            for contender, grid in GRIDS.items():
                if number >= len(grid) or (dataset in MANY_NODES and "-lcwa" in contender):
                    continue
                options = options_of(dataset, f"pykeen-{contender}", minutes)
                chosen = (*options, *grid[number].split(), *dim_of(dataset, contender))
                yield Job(f"search-{dataset}-{contender}-{number}", (*chosen, "--no-test"))


def finals(
    datasets: Iterable[str], runs: list[dict[str, Any]], minutes: float, finalists: int
) -> Iterator[Job]:
    """Ours, and PyKEEN's contenders with the best validation in the search, for all the minutes."""
    for dataset in datasets:
        yield Job(f"{OURS}-{dataset}", options_of(dataset, OURS, minutes))
        best: dict[str, dict[str, Any]] = {}
        here = [run for run in runs if run["dataset"] == dataset and run["contender"] != OURS]
        for run in sorted(here, key=lambda run: run["valid"]["mrr"]):
            best[run["contender"]] = run
        ranked = sorted(best.values(), key=lambda run: -run["valid"]["mrr"])
        for run in ranked[:finalists]:
            options = options_of(dataset, run["contender"], minutes)
            name = f"final-{dataset}-{run['contender'].removeprefix('pykeen-')}"
            yield Job(name, (*options, *settings_as_options(run["settings"])))


def options_of(dataset: str, contender: str, minutes: float) -> tuple[str, ...]:
    return ("--dataset", dataset, "--contender", contender, "--minutes", f"{minutes:g}")


def dim_of(dataset: str, contender: str) -> tuple[str, ...]:
    """Smaller vectors for generated graphs, which have many nodes; complex numbers count twice."""
    if dataset not in GENERATED:
        return ()
    is_complex = contender.startswith(("complex", "rotate"))
    return ("--dim", "32" if is_complex else "64")


def settings_as_options(settings: dict[str, Any]) -> tuple[str, ...]:
    """The options that give these settings of a PyKEEN run again."""
    names = {
        "dim": "--dim",
        "learning_rate": "--lr",
        "batch_size": "--batch",
        "num_negatives": "--negatives",
        "loss": "--loss",
        "margin": "--margin",
        "norm": "--norm",
        "label_smoothing": "--smoothing",
    }
    words = [word for key, name in names.items() for word in (name, str(settings[key]))]
    return (*words, *(["--decay"] if settings["decay"] else []))


def read_json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def run_all(jobs: list[Job], folder: Path, lanes: int) -> list[str]:
    """Run the jobs that have no file yet, `lanes` at a time; returns the names of those that fail.

    Lane n has the processors 2n and 2n + 1, where there are so many.
    """
    free: Queue[int] = Queue()
    for lane in range(lanes):
        free.put(lane)

    def run(job: Job) -> bool:
        lane = free.get()
        try:
            return run_job(job, folder, lane)
        finally:
            free.put(lane)

    todo = [job for job in jobs if not job.is_done(folder)]
    with ThreadPoolExecutor(lanes) as pool:
        is_done = list(pool.map(run, todo))
    return [job.name for job, done in zip(todo, is_done, strict=True) if not done]


def run_job(job: Job, folder: Path, lane: int) -> bool:
    """One run in a process of its own; what it prints goes to a file beside its result."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.budget", "run", *job.options]
    command += ["-o", str(job.file(folder))]
    if 2 * lane + 1 < (os.cpu_count() or 1):
        command += ["--cores", f"{2 * lane},{2 * lane + 1}"]
    with (folder / f"{job.name}.log").open("w", encoding="utf-8") as log:
        done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
    print(f"{job.name}: {'done' if done.returncode == 0 else 'failed'}", flush=True)
    return done.returncode == 0


def main_all(
    datasets: list[str], folder: Path, *, lanes: int, minutes: float, finalists: int, phase: str
) -> None:
    """Both phases, or one of them, and the collected results."""
    from benchmarks.budget_results import collect

    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    if phase in ("search", "both"):
        failed += run_all(list(searches(datasets)), folder, lanes)
    if phase in ("final", "both"):
        found = [read_json(path) for path in sorted(folder.glob("search-*.json"))]
        failed += run_all(list(finals(datasets, found, minutes, finalists)), folder, lanes)
    files = [path for path in folder.glob("*.json") if path.name != "budget.json"]
    collect(files, folder / "budget.json")
    if failed:
        sys.exit(f"failed, see their .log files: {', '.join(failed)}")
