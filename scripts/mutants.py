"""Plant faults into the source, one at a time, and count those that the tests find.

python -m scripts.mutants --seed 0 --number 60        # or: make mutants

Of every package a random sample of places is taken, with one random fault at each. The tests of a
fault are the test files that import its module, those of its package if there are such. They run on
the source as it is first: what fails there is listed and left out.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from math import sqrt
from pathlib import Path

from scripts.mutant_processes import Start, TestProcess, make_tree, side_by_side
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


def plant(mutation: Mutation, tests: list[str], cpu_seconds: int) -> Start:
    """The tests of a fault, for a tree that gets it."""

    def start(tree: Path) -> TestProcess:
        place = tree / mutation.path.relative_to(ROOT)
        place.write_text(mutation.mutated_source(), encoding="utf-8")
        return TestProcess(
            tree,
            ("-x", *tests),
            tree / "log.txt",
            cpu_seconds=cpu_seconds,
            compile_again=reaches_compiled_code(mutation.path),
        )

    return start


def take_out(mutation: Mutation, tree: Path) -> None:
    """Put the source back as it was, with its time, by which compiled code is found again."""
    shutil.copy2(mutation.path, tree / mutation.path.relative_to(ROOT))
    for name in ("compiled", ".hypothesis"):
        shutil.rmtree(tree / name, ignore_errors=True)


def verdict_of(status: int) -> str:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
        return "timeout"
    return "survived" if os.waitstatus_to_exitcode(status) in (0, 5) else "killed"


def failing_tests(tests: list[str], tree: Path, num_jobs: int) -> list[str]:
    """What fails without any fault, every test file in a process of its own."""

    def check(test: str) -> Start:
        log = tree / f"{test.replace('/', '-')}.txt"
        return lambda place: TestProcess(place, [test], log, cpu_seconds=WALL_SECONDS)

    found, starts = list[str](), [check(test) for test in tests]
    for number, process, status, _ in side_by_side(
        starts, [tree] * num_jobs, wall_seconds=WALL_SECONDS
    ):
        if os.waitstatus_to_exitcode(status) not in (0, 5):
            found += process.failed() or [tests[number]]
    return sorted(found)


def test_all(
    sampled: list[tuple[str, Mutation]], options: argparse.Namespace, folder: Path
) -> list[Outcome]:
    """Test every fault, some in parallel; each outcome is written at once."""
    until = time.monotonic() + options.seconds
    tests = {mutation.path: tests_of(mutation.path) for _, mutation in sampled}
    first = make_tree(folder / "tree0", ROOT)
    every_test = list(dict.fromkeys(test for each in tests.values() for test in each))
    left_out = failing_tests(every_test, first, options.jobs)
    print(f"{len(every_test)} test files; fail without a fault: {left_out or 'none'}", flush=True)
    deselected = [f"--deselect={each}" for each in left_out]
    others = [
        shutil.copytree(first, folder / f"tree{n}", symlinks=True) for n in range(1, options.jobs)
    ]
    starts = [
        plant(mutation, [*deselected, *tests[mutation.path]], options.cpu_seconds)
        for _, mutation in sampled
    ]
    outcomes = list[Outcome]()
    for number, process, status, seconds in side_by_side(
        starts, [first, *others], wall_seconds=10 * options.cpu_seconds, until=until
    ):
        group, mutation = sampled[number]
        take_out(mutation, process.tree)
        outcomes.append(Outcome(group, mutation, verdict_of(status), seconds))
        found = outcomes[-1].to_json()
        words = (found[key] for key in ("file", "line", "verdict", "seconds"))
        print(len(outcomes), *words, flush=True)
        write(outcomes, options.output)
    return outcomes


def write(outcomes: list[Outcome], path: Path) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps([each.to_json() for each in outcomes], indent=1) + "\n")
    partial.replace(path)


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
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--packages", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start none later")
    parser.add_argument(
        "--cpu-seconds", type=int, default=CPU_SECONDS, help="after which a fault is a timeout"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "mutants.json")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    for library in ("numba", "networkx", "pytest", "torch_geometric", "torchmetrics"):
        import_module(library)  # once, for all that are forked
    options.output.parent.mkdir(parents=True, exist_ok=True)
    samples = {group: sample(group, options.number, options.seed) for group in options.packages}
    sampled = [  # of every package in turn, so that a run that is stopped has some of each
        (group, samples[group][number])
        for number in range(options.number)
        for group in options.packages
        if number < len(samples[group])
    ]
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        outcomes = test_all(sampled, options, Path(folder))
    if outcomes:
        print(*summary(outcomes), sep="\n")


if __name__ == "__main__":
    main()
