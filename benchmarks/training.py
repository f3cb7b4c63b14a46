"""Training steps and filtered ranking, ours and PyKEEN's, with the paper's configurations.

    python -m benchmarks.training --cases fb15k-237,wn18rr

Every measurement runs in a separate process, on the CPU with the same number of threads. A step
takes a batch and computes the loss, its gradients and Adam's update; the result is the median,
after warm-up. Ranking is from weights to metrics, the filter included: for us of all test facts,
for PyKEEN of the first few, in batches of the size it chooses and in larger ones, where it is
faster.

Equal are the graph and its inverses, the numbers of anchors, tokens and parameters (to 0.3 %), the
two-layer MLP and its dropout, RotatE with the L2 norm, loss, smoothing, margin, negatives, batch
and Adam. PyKEEN differs in that it has no distances and no [DISCONNECTED], breaks ties in another
way, normalizes relations to unit modulus after each step and not within it, replaces the heads in
one half of a batch and the tails in the other where we do both for every fact, and encodes a node
that occurs several times in a batch once, where we encode it each time. Our process keeps the
memory that a step frees, as `nodepiece train` does; PyKEEN runs with its defaults (with the same
setting its step on WN18RR took 2.16 s instead of 2.21, and the one on FB15k-237 ran out of 24 GB).
The weights are the initial ones, as they do not affect the time.

Writes results/training-CASE.json; a measurement that ran out of memory says so there.
"""

import argparse
import json
import os
import platform
import subprocess
import sys

from benchmarks.tokenization import (
    LIMIT_SECONDS,
    ROOT,
    TABLE_WIDTH,
    Measured,
    installed_versions,
    reason_of,
    run_module,
)
from rich.console import Console
from rich.table import Table

from nodepiece.files import write_json

CASES = {"fb15k-237": "fb15k-237-paper", "wn18rr": "wn18rr-paper"}  # case -> experiment
TITLES = {
    "train": "training step",
    "pykeen-train": "PyKEEN training step",
    "rank": "ranking",
    "pykeen-rank": "PyKEEN ranking",
    "pykeen-rank-large-batch": "PyKEEN ranking, batches of 128",
}
OURS = ("train", "rank")


def main() -> None:
    options = parse_options()
    console = Console() if sys.stdout.isatty() else Console(width=TABLE_WIDTH)
    failures = []
    for name in options.cases:
        measured = measure_case(name, options, console)
        console.print(as_table(name, measured))
        write_result(name, options, measured)
        failures += [f"{name} {step}" for step in OURS if "status" in measured[step]]
    sys.exit(f"failed: {', '.join(failures)}" if failures else 0)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", default=",".join(CASES), help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=20, help="of ours (%(default)s)")
    parser.add_argument(
        "--pykeen-steps", type=int, default=3, help="0: leave PyKEEN out (%(default)s)"
    )
    parser.add_argument(
        "--pykeen-facts", type=int, default=128, help="that PyKEEN ranks, in 128s (%(default)s)"
    )
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="default: all (%(default)s)"
    )
    options = parser.parse_args()
    options.cases = options.cases.split(",")
    for name in options.cases:
        if name not in CASES:
            parser.error(f"unknown case {name!r}; it is one of {', '.join(CASES)}")
    for option in ("steps", "pykeen_facts", "threads"):
        if getattr(options, option) < 1:
            parser.error(f"--{option.replace('_', '-')} must be at least 1")
    if options.pykeen_facts % 128:
        parser.error("--pykeen-facts must be a multiple of 128: part of a batch takes as long")
    return options


def measure_case(name: str, options: argparse.Namespace, console: Console) -> dict[str, Measured]:
    counts = {"train": options.steps, "rank": 0}  # 0: all
    if options.pykeen_steps:
        counts["pykeen-train"] = options.pykeen_steps
        counts |= dict.fromkeys(("pykeen-rank", "pykeen-rank-large-batch"), options.pykeen_facts)
    measured = {}
    for step in [step for step in TITLES if step in counts]:
        console.print(f"{name}: {TITLES[step]}")
        measured[step] = measure([CASES[name], step, str(counts[step]), str(options.threads)])
    return measured


def measure(arguments: list[str]) -> Measured:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), arguments[-1])
    try:
        done = run_module("benchmarks.measure_training", arguments, threads, LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        return {"status": f"stopped after {LIMIT_SECONDS:,.0f} s"}
    except subprocess.CalledProcessError as error:
        return {"status": reason_of(error)}
    return json.loads(done.stdout.splitlines()[-1])


def as_table(name: str, measured: dict[str, Measured]) -> Table:
    table = Table(title=f"{CASES[name]}, on the CPU")
    table.add_column("", no_wrap=True)
    for column in ("seconds a step", "facts a second", "times ours", "peak MiB"):
        table.add_column(column, justify="right")
    table.add_column("no result")
    for step, found in measured.items():
        if "status" in found:
            table.add_row(TITLES[step], "", "", "", "", found["status"])
            continue
        speed = found.get("facts_per_second")
        ratio = times_ours(step, measured)
        table.add_row(
            TITLES[step],
            "" if speed else f"{found['seconds']:,.3f}",
            f"{speed:,.1f}" if speed else "",
            "" if ratio is None else f"{ratio:,.1f}",
            f"{found['peak_memory_mib']:,.0f}",
        )
    return table


def times_ours(step: str, measured: dict[str, Measured]) -> float | None:
    """How many times as long as ours; None for ours, or where one of the two has no result."""
    ours = measured["train" if step.endswith("train") else "rank"]
    found = measured[step]
    if step in OURS or "status" in ours or "status" in found:
        return None
    if "facts_per_second" in found:
        return ours["facts_per_second"] / found["facts_per_second"]
    return found["seconds"] / ours["seconds"]


def write_result(name: str, options: argparse.Namespace, measured: dict[str, Measured]) -> None:
    command = (
        f"python -m benchmarks.training --cases {name} --steps {options.steps} "
        f"--pykeen-steps {options.pykeen_steps} --pykeen-facts {options.pykeen_facts}"
    )
    if options.threads != os.cpu_count():
        command += f" --threads {options.threads}"
    ratios = {step: times_ours(step, measured) for step in measured if step not in OURS}
    result = {
        "case": name,
        "experiment": CASES[name],
        "command": command,
        "cpus": os.cpu_count(),
        "threads": options.threads,
        "versions": {"python": platform.python_version()} | installed_versions(),
        "times_ours": ratios,
        "measurements": measured,
    }
    write_json(ROOT / "results" / f"training-{name}.json", result)


if __name__ == "__main__":
    main()
