"""Updates that are killed at random moments, for test_killed_updates.py.

    python tests/inference/killed_updates.py RUN ROUNDS

Each round forks a process that updates the run without end, kills it after a while, and opens the
run; in every other round it is opened repeatedly meanwhile. Batch n adds "new n" and removes
"new n - 1", so the number of the last batch determines all facts. Prints the number of committed
batches, the number of different states found, and the last base.
"""

import os
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import torch
from tests.inference.fresh_vectors import facts_of, fresh_vectors

from nodepiece.inference import graph_updates
from nodepiece.inference.graph_updates import UPDATES_FOLDER, has_updates
from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load_links
from nodepiece.inference.update import update_run


def update_without_end(run: LinkRun) -> None:
    while True:
        number = 1 if run.updates is None else run.updates.state.number + 1
        gone = [f"new {number - 1}"] if number > 1 else []
        update_run(run, add=[(f"new {number}", "lives in", "town 1")], remove_nodes=gone)


def check(run: LinkRun, trained: set[tuple[str, str, str]]) -> int:
    number = 0 if run.updates is None else run.updates.state.number
    expected = trained | ({(f"new {number}", "lives in", "town 1")} if number else set())
    assert facts_of(run) == expected
    assert run.dataset.num_nodes == 44 + number
    assert run.is_present.sum() == 44 + min(number, 1)
    torch.testing.assert_close(run.node_vectors, fresh_vectors(run))
    return number


def seconds_of_six_updates(folder: Path) -> float:
    """Seconds of six updates, with the first snapshot and a compaction, with loaded kernels."""
    run = load_links(folder)
    update_run(run, add=[("new 0", "lives in", "town 1")])
    shutil.rmtree(folder / UPDATES_FOLDER)
    run.refresh()
    start = time.perf_counter()
    for n in range(6):
        update_run(run, add=[(f"new {n}", "lives in", "town 1")])
    return time.perf_counter() - start


def main(folder: Path, num_rounds: int) -> None:
    graph_updates.COMPACT_AFTER = 4
    torch.set_num_threads(1)
    run = load_links(folder)
    trained = facts_of(run)
    longest = seconds_of_six_updates(shutil.copytree(folder, folder.with_name("measured")))
    rng = np.random.default_rng(0)
    numbers = [0]
    for round_number in range(num_rounds):
        child = os.fork()
        if not child:
            update_without_end(run)
        end = time.perf_counter() + float(rng.random()) * longest
        while round_number % 2 and time.perf_counter() < end:
            check(load_links(folder), trained)  # somebody reads while it writes
        time.sleep(max(0.0, end - time.perf_counter()))
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL  # it did not stop by itself before
        run = load_links(folder)
        numbers.append(check(run, trained))
    assert numbers == sorted(numbers)
    bases = [path.name for path in (folder / "live").glob("base-*")] if has_updates(folder) else []
    sys.stdout.write(f"{numbers[-1]} {len(set(numbers))} {max(bases, default='none')}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
