"""Seconds of a pass over the facts, passes in some minutes, and the peak of memory.

    python -m benchmarks.seconds_a_pass medium --minutes 10 -o results/passes-150k.json
    python -m benchmarks.seconds_a_pass medium --minutes 1 --device cuda -o results/passes-cuda.json

A graph of `benchmarks.planted_graphs` is trained with the automatic choice, and with each --set in
place of it: one run for every value, such as --set "training.loss=sampled-softmax
training.batch_size=8192". A pass has every fact in both directions once. Time of validations does
not count for a pass; it does for the minutes.
"""

import argparse
import json
import os
import shlex
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from benchmarks.planted_graphs import SIZES, GraphSizes, planted_split

from nodepiece.commands.epochs import EpochProgress
from nodepiece.data.dataset import Dataset
from nodepiece.files import write_json
from nodepiece.settings import load_experiment
from nodepiece.tasks.graph_shape import shape_of
from nodepiece.tasks.run_folder import CONFIG
from nodepiece.tasks.train import train_experiment
from nodepiece.training.memory import keep_freed_memory


@dataclass
class StepTimes:
    """A callback that adds up the time between steps, without that of validations."""

    seconds: float = 0.0
    steps: int = 0
    last: float | None = field(default=None, repr=False)

    def on_step(self, epoch: int, done: int, total: int) -> None:
        now = perf_counter()
        if self.last is not None and done > 1:
            self.seconds += now - self.last
            self.steps += 1
        self.last = now

    def on_epoch(self, record: dict[str, Any], progress: object) -> None:
        self.last = None  # a validation took place


def measure(
    dataset: Dataset, overrides: list[str], *, minutes: float, device: str, memory: int | None
) -> dict[str, Any]:
    """Train for some minutes; the time of a pass, and how good the model is."""
    times, started = StepTimes(), perf_counter()
    with tempfile.TemporaryDirectory() as scratch, EpochProgress(1, minutes=minutes) as progress:
        folder = Path(scratch) / "run"
        metrics = train_experiment(
            None,
            folder,
            data=dataset,
            overrides=overrides,
            device=device,
            minutes=minutes,
            memory=memory,
            callbacks=(times, progress),
            log=progress.log,
            started=started,
        )
        seconds = perf_counter() - started
        training = load_experiment(folder / CONFIG).training
    assert metrics is not None  # nothing stops it before the end
    shape = shape_of(dataset.train)
    num_items = shape.num_queries if training.is_one_vs_all else 2 * shape.num_facts
    pass_steps = num_items / training.batch_size
    return {
        "overrides": overrides,
        "loss": training.loss,
        "batch_size": training.batch_size,
        "precision": training.precision,
        "parameters": metrics["parameters"],
        "steps": metrics["steps"],
        "passes": round(metrics["steps"] / pass_steps, 2),
        "seconds_a_step": times.seconds / max(1, times.steps),
        "seconds_a_pass": round(pass_steps * times.seconds / max(1, times.steps), 2),
        "seconds": metrics["seconds"] | {"all": round(seconds, 1)},
        "peak_memory": metrics["peak_memory"],
        "valid_mrr": metrics["valid"]["mrr"],
        "test_mrr": metrics["mrr"],
        "popularity_valid_mrr": metrics["popularity_valid"]["mrr"],
        "popularity_mrr": metrics["popularity"]["mrr"],
        "device": metrics["device"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds of a pass over the facts of a graph.")
    parser.add_argument("size", nargs="?", choices=tuple(SIZES), default="medium")
    parser.add_argument("--nodes", type=int, help="with --facts, of another graph")
    parser.add_argument("--facts", type=int)
    parser.add_argument("--minutes", type=float, default=10.0, help="of each run")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--memory", type=float, help="gigabytes that each run may use")
    parser.add_argument("--set", action="append", default=[], metavar="SETTINGS")
    parser.add_argument("-o", "--out", type=Path)
    options = parser.parse_args()
    sizes = SIZES[options.size]
    if options.nodes and options.facts:
        sizes = GraphSizes(options.nodes, options.facts, sizes.num_relations)
    dataset = planted_split(sizes, seed=0)
    keep_freed_memory()  # as `nodepiece train` does
    content: dict[str, Any] = {
        "what": "seconds of a pass over the facts of a generated graph, and the peak of memory",
        "command": shlex.join(["python", "-m", "benchmarks.seconds_a_pass", *sys.argv[1:]]),
        "graph": vars(sizes),
        "minutes": options.minutes,
        "cpus": os.cpu_count(),
        "runs": [],
    }
    memory = None if options.memory is None else int(options.memory * 1e9)
    for overrides in [each.split() for each in options.set] or [[]]:
        found = measure(
            dataset, overrides, minutes=options.minutes, device=options.device, memory=memory
        )
        content["runs"].append(found)
        print(json.dumps(found), flush=True)
        if options.out is not None:
            write_json(options.out, content)


if __name__ == "__main__":
    main()
