"""Plant faults into the source, one at a time, and count those that the tests find.

python -m scripts.mutants --seed 0 --number 60        # or: make mutants

Of every package a random sample of places is taken, with one random fault at each. The tests of a
fault are the test files that import its module, those of its package if there are such. Each fault
has a process of its own, forked from one that has loaded PyTorch and Numba, and not nodepiece.
Compiled code is cached by the file it is in and not by what it calls, so a fault in a file with
compiled functions, or in one that these import, starts with an empty cache.
"""

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from math import sqrt
from pathlib import Path

from scripts.mutations import Mutation, mutations

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "nodepiece"
GROUPS = {
    "evaluation": "evaluation/*.py",
    "splitting": "data/[hlo]*_[so]*t.py",  # hold_out, label_split, out_of_sample_split
    "tokenizer": "tokenizer/*.py",
    "graph": "graph/*.py",
    "tasks": "tasks/*.py",
    "inference": "inference/*.py",
}
CPU_SECONDS, WALL_SECONDS = 150, 1500  # after which a fault counts as found: a loop without end
OPTIONS = ("-x", "-q", "-m", "not gpu and not data", "--hypothesis-seed=0", "--tb=line")
QUIET = ("-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist")


@dataclass(frozen=True)
class Outcome:
    """What the tests made of a fault."""

    group: str
    mutation: Mutation
    verdict: str  # "killed", "survived" or "timeout"
    seconds: float  # of CPU time

    def to_json(self) -> dict[str, object]:
        mutation = self.mutation
        lines = mutation.path.read_text(encoding="utf-8").splitlines()
        mutated = mutation.mutated_source().splitlines()
        line = mutation.position[0]
        return {
            "group": self.group,
            "file": str(mutation.path.relative_to(PACKAGE)),
            "line": line,
            "operator": mutation.operator,
            "before": lines[line - 1].strip(),
            "after": mutated[line - 1].strip(),
            "verdict": self.verdict,
            "seconds": round(self.seconds, 1),
        }


def sample(group: str, number: int, seed: int) -> list[Mutation]:
    """One fault at each of so many places."""
    rng = random.Random(f"{seed} {group}")
    by_place: dict[tuple[Path, tuple[int, int]], list[Mutation]] = {}
    for path in sorted(PACKAGE.glob(GROUPS[group])):
        for mutation in mutations(path):
            by_place.setdefault((mutation.path, mutation.position), []).append(mutation)
    places = sorted(by_place)
    chosen = rng.sample(places, min(number, len(places)))
    return [rng.choice(sorted(by_place[place])) for place in chosen]


def module_name(path: Path) -> str:
    return ".".join(("nodepiece", *path.relative_to(PACKAGE).with_suffix("").parts))


def tests_of(path: Path) -> list[str]:
    """The test files that import a module: of its own package, else of any, else all of its own."""
    pattern = re.compile(rf"\b{re.escape(module_name(path))}\b")
    own = sorted((ROOT / "tests" / path.parent.name).glob("test_*.py"))
    others = sorted((ROOT / "tests").rglob("test_*.py"))
    for files in (own, others):
        found = [each for each in files if pattern.search(each.read_text(encoding="utf-8"))]
        if found:
            break
    else:
        found = own
    found.sort(key=lambda each: each.stem != f"test_{path.stem}")  # the paired one first
    return [str(each.relative_to(ROOT)) for each in found]


def reaches_compiled_code(path: Path) -> bool:
    """Whether compiled functions are in a file, or in one that imports it."""
    pattern = re.compile(rf"\b{re.escape(module_name(path))}\b")
    return any(
        each == path or pattern.search(text)
        for each in PACKAGE.rglob("*.py")
        if "njit" in (text := each.read_text(encoding="utf-8"))
    )


def make_tree(folder: Path) -> None:
    """A copy of what tests need, for one process to plant faults into."""
    ignore = shutil.ignore_patterns("*.egg-info")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignore)  # with what is compiled
    for name in ("tests", "benchmarks", "examples", "scripts", "docs", "results", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)


def run_tests(
    tree: Path, tests: list[str], *, seconds: int, compile_again: bool, log: Path
) -> None:
    """In a forked process: run pytest and end with its exit status."""
    import numba
    import pytest

    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    output = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree / "src")
    if compile_again:
        os.environ["NUMBA_CACHE_DIR"] = str(tree / "compiled")
        numba.config.reload_config()  # type: ignore[no-untyped-call]
    sys.path[:0] = [str(tree / "src"), str(tree)]
    sys.dont_write_bytecode = True
    status = 99
    try:
        status = int(pytest.main([*OPTIONS, *QUIET, *tests]))
    finally:
        os._exit(status)


class Job:
    """A fault under test in one of the trees."""

    def __init__(self, tree: Path, group: str, mutation: Mutation | None, tests: list[str]) -> None:
        self.tree, self.group, self.mutation = tree, group, mutation
        self.start = time.monotonic()
        if mutation is not None:
            self.place = tree / mutation.path.relative_to(ROOT)
            self.original, self.times = self.place.read_bytes(), self.place.stat()
            self.place.write_text(mutation.mutated_source(), encoding="utf-8")
        compile_again = mutation is not None and reaches_compiled_code(mutation.path)
        seconds = WALL_SECONDS if mutation is None else CPU_SECONDS
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            log = tree / "log.txt"
            run_tests(tree, tests, seconds=seconds, compile_again=compile_again, log=log)

    def finish(self, status: int) -> str:
        """Take the fault out again; returns the verdict."""
        if self.mutation is not None:
            self.place.write_bytes(self.original)
            os.utime(self.place, ns=(self.times.st_atime_ns, self.times.st_mtime_ns))
        for name in ("compiled", ".hypothesis"):
            shutil.rmtree(self.tree / name, ignore_errors=True)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
            return "timeout"
        return "survived" if os.waitstatus_to_exitcode(status) in (0, 5) else "killed"


def test_all(
    sampled: list[tuple[str, Mutation]], num_jobs: int, folder: Path, output: Path
) -> list[Outcome]:
    """Every fault, some side by side; what is found is written down at once.

    Before, the tests of each package run on the source as it is: they must pass.
    """
    trees = [folder / f"tree{number}" for number in range(num_jobs)]
    for tree in trees:
        make_tree(tree)
    untouched: list[tuple[str, Mutation | None]] = [(group, None) for group, _ in sampled]
    waiting = [*sorted(set(untouched)), *sampled]
    running, outcomes = dict[int, Job](), list[Outcome]()
    while waiting or running:
        while waiting and trees:
            group, mutation = waiting.pop(0)
            paths = [
                each.path for name, each in sampled if mutation in (None, each) and name == group
            ]
            tests = list(dict.fromkeys(test for path in paths for test in tests_of(path)))
            job = Job(trees.pop(), group, mutation, tests)
            running[job.pid] = job
        pid, status, usage = os.wait4(-1, os.WNOHANG)
        if not pid:
            for job in running.values():
                if time.monotonic() - job.start > WALL_SECONDS:
                    os.killpg(job.pid, signal.SIGKILL)
            time.sleep(0.1)
            continue
        job = running.pop(pid)
        trees.append(job.tree)
        verdict = job.finish(status)
        if job.mutation is None:
            if verdict != "survived":
                sys.exit(f"the tests of {job.group} fail without any fault: {job.tree / 'log.txt'}")
            continue
        seconds = usage.ru_utime + usage.ru_stime
        outcomes.append(Outcome(job.group, job.mutation, verdict, seconds))
        found = outcomes[-1].to_json()
        words = (found[key] for key in ("file", "line", "verdict", "seconds"))
        print(len(outcomes), *words, flush=True)
        output.write_text(json.dumps([each.to_json() for each in outcomes], indent=1) + "\n")
    return outcomes


def interval(found: int, number: int) -> tuple[float, float]:
    """Where the share of all faults lies with 95 % confidence (Wilson)."""
    z, share = 1.96, found / number
    middle = (share + z * z / (2 * number)) / (1 + z * z / number)
    half = z * sqrt(share * (1 - share) / number + z * z / (4 * number**2)) / (1 + z * z / number)
    return middle - half, middle + half


def summary(outcomes: list[Outcome]) -> list[str]:
    lines = ["| | faults | killed | timeout | survived | found | 95 % interval |", "|---" * 7 + "|"]
    groups = sorted({each.group for each in outcomes}, key=list(GROUPS).index)
    for group in (*groups, "all"):
        counts = Counter(each.verdict for each in outcomes if group in ("all", each.group))
        number = counts.total()
        found = number - counts["survived"]
        low, high = interval(found, number)
        lines.append(
            f"| {group} | {number} | {counts['killed']} | {counts['timeout']} | "
            f"{counts['survived']} | {found / number:.1%} | {low:.0%} to {high:.0%} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, default=60, help="faults a package")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--packages", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "mutants.json")
    arguments = parser.parse_args()
    for library in ("numba", "networkx", "pytest", "torch_geometric", "torchmetrics"):
        import_module(library)  # once, for all that are forked
    folder = arguments.output.with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    samples = {
        group: sample(group, arguments.number, arguments.seed) for group in arguments.packages
    }
    sampled = [  # of every package in turn, so that a run that is stopped has some of each
        (group, samples[group][number])
        for number in range(arguments.number)
        for group in arguments.packages
        if number < len(samples[group])
    ]
    outcomes = test_all(sampled, arguments.jobs, folder, arguments.output)
    print(*summary(outcomes), sep="\n")


if __name__ == "__main__":
    main()
