"""Processes killed at random instants, beside readers, leave the old or the new state, complete.

    python -m tests.crash --seed 0 --kills 200

Four kinds of jobs take turns: tokenizing, training, training that replaces another run, updates.
Each runs in a process that gets SIGKILL before or after one of its file operations, drawn at
random; every second time a thread reads meanwhile. Then the folder must hold the state before or
after the job, and a job that is done to its end must give the same digits as one that was never
killed. Exit status 1 with the seed, the kill and what was found otherwise.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numba
import torch
from tests.crash.kills import kill_many
from tests.crash.scenarios import SCENARIOS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--kind", choices=tuple(SCENARIOS), help="only jobs of this kind")
    options = parser.parse_args()
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    start = perf_counter()
    with tempfile.TemporaryDirectory(prefix="nodepiece-crash-") as place:
        summary = kill_many(
            options.seed,
            options.kills,
            Path(place),
            lambda line: print(line, flush=True),
            (options.kind,) if options.kind else tuple(SCENARIOS),
        )
    if summary.found:
        print(summary.found)
        return 1
    counts = ", ".join(f"{number} in {name}" for name, number in summary.kills.items())
    print(
        f"seed {options.seed}: {summary.kills.total()} kills ({counts}), {summary.num_ended} jobs "
        f"ended before, {summary.num_reads} reads beside, {summary.num_finished} jobs done to the "
        f"end and compared; nothing wrong in {perf_counter() - start:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
