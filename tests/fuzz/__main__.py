"""python -m tests.fuzz --seed 0 --inputs 10000"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from tests.fuzz.cases import KINDS, Outcome, kind_of, random_of, run_case
from tests.fuzz.commands import run_command
from tests.fuzz.materials import make_materials
from tests.fuzz.workers import prepare, run_all

RESULTS = ("valid", "refused", "failed")
SECONDS_BETWEEN_LINES = 10.0
MAX_SHOWN = 20


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    with tempfile.TemporaryDirectory(prefix="fuzz-materials-") as folder:
        materials = Path(folder)
        make_materials(materials)
        run_command(
            [
                "convert",
                str(materials / "dataset"),
                "-o",
                str(materials / "ogb"),
                "--negatives",
                "5",
            ],
            materials,
            stdin=b"",
        )
        if options.only is not None:
            prepare(materials)
            outcome = run_case(options.seed, options.only, materials)
            print(f"{outcome.kind}: {outcome.result}\n{outcome.detail}")
            return int(outcome.result == "failed")
        failures, counts = run(options, materials)
    print_summary(counts)
    for failure in failures[:MAX_SHOWN]:
        print(
            f"\ninput {failure.number} ({failure.kind}): python -m tests.fuzz "
            f"--seed {options.seed} --only {failure.number}\n{failure.detail}"
        )
    print(f"\nseed {options.seed}: {counts.total():,} inputs, {len(failures):,} failures")
    return int(bool(failures))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--kind",
        choices=tuple(KINDS),
        nargs="+",
        default=tuple(KINDS),
        help="only the inputs of these kinds",
    )
    parser.add_argument("--only", type=int, help="run this input alone, in this process")
    return parser.parse_args(arguments)


def run(
    options: argparse.Namespace, materials: Path
) -> tuple[list[Outcome], Counter[tuple[str, str]]]:
    counts: Counter[tuple[str, str]] = Counter()
    failures: list[Outcome] = []
    numbers = [
        number
        for number in range(options.first, options.first + options.inputs)
        if kind_of(random_of(options.seed, number)) in options.kind
    ]
    start = last_line = monotonic()
    for outcome in run_all(options.seed, numbers, materials, num_workers=options.workers):
        counts[outcome.kind, outcome.result] += 1
        if outcome.result == "failed":
            failures.append(outcome)
            last = outcome.detail.strip().splitlines()[-1]
            print(f"input {outcome.number} ({outcome.kind}) failed: {last[:300]}", flush=True)
        if monotonic() - last_line > SECONDS_BETWEEN_LINES:
            last_line = monotonic()
            done = counts.total()
            print(f"{done:,} of {len(numbers):,} in {last_line - start:.0f} s", flush=True)
    return failures, counts


def print_summary(counts: Counter[tuple[str, str]]) -> None:
    print(f"\n{'':16}" + "".join(f"{result:>10}" for result in RESULTS))
    for kind in KINDS:
        print(f"{kind:16}" + "".join(f"{counts[kind, result]:>10,}" for result in RESULTS))


if __name__ == "__main__":
    sys.exit(main())
