"""Milliseconds of a training step with propagation on a GPU, kernel by kernel, beside the floor.

    python -m benchmarks.propagation_step [fb15k-237-best wn18rr-best ...]

The step is that of training: a recipe is opened with its data and trained for part of an epoch,
with the step replayed as a CUDA graph. 100 steps are timed together; five later ones are profiled,
which says how much of a step each kernel takes.

The floor is counted, not measured: in each layer two rows of every edge are read forwards, and
seven are read or written backwards, at the rate at which a copy moves bytes.

Writes results/propagation-step.json, with a record for each recipe.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from benchmarks.tokenization import ROOT
from torch.profiler import ProfilerActivity, profile

from nodepiece.files import write_json
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.settings import load_experiment
from nodepiece.tasks.registry import task_record
from nodepiece.tasks.run_metrics import describe_device
from nodepiece.tasks.tokens import tokenize_for

OUTPUT = ROOT / "results" / "propagation-step.json"
WARMUP, TIMED, PROFILED = 20, 100, 5
ROWS_OF_EDGE = 9  # read or written in a layer, forwards and backwards


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("recipes", nargs="*", default=["fb15k-237-best", "wn18rr-best"])
    parser.add_argument("--set", action="append", default=[], help="a setting of all recipes")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT, help="(%(default)s)")
    options = parser.parse_args()
    device = torch.device("cuda")
    rate = copied_bytes_a_second(device)
    measured = []
    for recipe in options.recipes:
        measured.append(measure(recipe, options.set, device, rate))
        print(json.dumps(measured[-1], indent=1))
        words = [*options.recipes, *(f"--set {setting}" for setting in options.set)]
        command = "python -m benchmarks.propagation_step " + " ".join(words)
        content = {"command": command, "device": describe_device(device), "measurements": measured}
        write_json(options.output, content)


def copied_bytes_a_second(device: torch.device) -> float:
    """Bytes read and written in a second by a copy of a gigabyte."""
    source = torch.ones(2**28, device=device)
    target = torch.empty_like(source)
    for _ in range(2):  # the first turn warms up
        torch.cuda.synchronize()
        start = perf_counter()
        for _ in range(10):
            target.copy_(source)
        torch.cuda.synchronize()
        seconds = (perf_counter() - start) / 10
    return 2 * source.nbytes / seconds


def measure(
    recipe: str, overrides: list[str], device: torch.device, bytes_a_second: float
) -> dict[str, Any]:
    experiment = load_experiment(recipe, overrides)
    task = task_record(experiment).task.open(experiment, None)
    table = tokenize_for(experiment, task.graph)
    model = task.build_model(table).to(device)
    generator = torch.Generator(device).manual_seed(experiment.seed)
    trainer = task.make_trainer(model, generator=generator)
    torch.cuda.reset_peak_memory_stats()
    profiler = profile(activities=[ProfilerActivity.CUDA])
    times: dict[int, float] = {}
    steps = 0

    def note(done: int, total: int) -> None:
        nonlocal steps
        steps += 1
        if steps in (WARMUP, WARMUP + TIMED):
            torch.cuda.synchronize()
            times[steps] = perf_counter()
        if steps == WARMUP + TIMED:
            profiler.start()
        if steps == WARMUP + TIMED + PROFILED:
            torch.cuda.synchronize()
            profiler.stop()

    epoch = 0
    while steps < WARMUP + TIMED + PROFILED:
        task.before_epoch(model, table, epoch, generator=generator)
        is_done = lambda: steps >= WARMUP + TIMED + PROFILED  # noqa: E731
        trainer.run_steps(epoch, note, should_stop=is_done)
        epoch += 1
    milliseconds = 1000 * (times[WARMUP + TIMED] - times[WARMUP]) / TIMED
    settings = experiment.propagation
    num_edges = len(with_inverses(task.graph))
    row = (
        experiment.training.batch_size
        * settings.dim
        * (2 if experiment.training.precision == "bfloat16" else 4)
    )
    num_bytes = settings.layers * num_edges * ROWS_OF_EDGE * row
    return {
        "recipe": recipe,
        "set": overrides,
        "edges": num_edges,
        "ms": round(milliseconds, 2),
        "floor": {
            "gigabytes": round(num_bytes / 1e9, 1),
            "gigabytes_a_second": round(bytes_a_second / 1e9),
            "ms": round(1000 * num_bytes / bytes_a_second, 2),
        },
        "peak_gigabytes": round(torch.cuda.max_memory_allocated() / 1e9, 2),
        "kernels": kernels_of(profiler),
    }


def kernels_of(profiler: profile) -> list[dict[str, Any]]:
    """Of each kernel: its calls and milliseconds in a step; those of most time first."""
    found = profiler.key_averages()
    kernels = sorted(found, key=lambda kernel: -kernel.device_time_total)
    return [
        {
            "kernel": kernel.key[:80],
            "calls": round(kernel.count / PROFILED, 1),
            "ms": round(kernel.device_time_total / PROFILED / 1000, 3),
        }
        for kernel in kernels[:30]
        if kernel.device_time_total > 0
    ]


if __name__ == "__main__":
    main()
