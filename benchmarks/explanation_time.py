"""How long an explanation takes: wall time and processor time of facts of the test split.

    python -m benchmarks.explanation_time RUN --number 40 -o results/explanation-time-codex-s.json

Two explanations come first and are not counted. Processor time is that of all threads, and hardly
depends on other programs; wall time is that of a user only on a machine without them.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter, process_time

import numba
import numpy as np
import torch

from nodepiece.files import write_json
from nodepiece.inference.run import load_links

WARM_UP = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--number", type=int, default=40, help="of explanations")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="of the choice of facts")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    numba.set_num_threads(options.threads)
    run = load_links(options.run)
    names, test = run.dataset.names, run.dataset.test
    rng = np.random.default_rng(options.seed)
    chosen = test[rng.permutation(len(test))[: options.number + WARM_UP]]
    wall, processor = [], []
    for head, relation, tail in chosen.tolist():
        fact = names.node(head), names.relation(relation), names.node(tail)
        start, cpu = perf_counter(), process_time()
        run.explain(head=fact[0], relation=fact[1], tail=fact[2])
        wall.append(1000 * (perf_counter() - start))
        processor.append(1000 * (process_time() - cpu))
    measured = {
        "dataset": run.experiment.dataset,
        "experiment": run.experiment.name,
        "explanations": len(wall) - WARM_UP,
        "threads": options.threads,
        "wall milliseconds": summary(wall[WARM_UP:]),
        "processor milliseconds": summary(processor[WARM_UP:]),
    }
    print(json.dumps(measured, indent=1))
    if options.output is not None:
        command = f"python -m benchmarks.explanation_time RUN --number {options.number}"
        write_json(
            options.output, {"what": "the time of explanations", "command": command} | measured
        )


def summary(times: list[float]) -> dict[str, float]:
    return {
        "median": round(float(np.median(times)), 1),
        "mean": round(float(np.mean(times)), 1),
        "p95": round(float(np.percentile(times, 95)), 1),
    }


if __name__ == "__main__":
    main()
