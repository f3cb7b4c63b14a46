"""How near the estimates of `nodepiece plan` are to what is then measured.

    python -m benchmarks.plan_accuracy -o results/plan-accuracy.json [--recipe countries]
    python -m benchmarks.plan_accuracy --minutes 12      stops before a recipe that may take longer

For each recipe one process plans, and another one trains for some steps by the runner, as
`nodepiece train` does: the median time of a step, and the peak of memory. Recipes of other tasks,
with walks, propagation and graph layers are among them. The file is written after every recipe, and
those that it has are not measured again, so that the benchmark can be stopped and continued. A
recipe that takes longer than --recipe-seconds for its plan or its steps is left out, and named.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

RECIPES = (
    "countries",
    "own-small",
    "own-medium",
    "fb15k-237-paper",
    "fb15k-237-rotate-small",
    "fb15k-237-best",
    "wn18rr-walks",
    "codex-s-best",
    "inductive-fb15k-237-v1-best-walks",
    "own18rr-paper",
    "wn18rr-relations-paper",
)
STEPS = 12  # of the real run; the first ones are not counted
UNCOUNTED = 4


def planned(recipe: str) -> dict[str, Any]:
    """The estimates: from sizes alone, and by a few steps."""
    import numpy as np
    import torch

    from nodepiece.settings import load_experiment
    from nodepiece.tasks.plan import input_from_task, plan
    from nodepiece.tasks.registry import task_record
    from nodepiece.tasks.timing import estimate_duration
    from nodepiece.training.memory import keep_freed_memory

    keep_freed_memory()  # as the command does
    experiment = load_experiment(recipe)
    inputs = input_from_task(task_record(experiment).task.open(experiment, None))
    duration = estimate_duration(inputs, torch.device("cpu"), rng=np.random.default_rng(0))
    return {
        "step": duration.step,
        "memory": duration.peak,
        "memory from sizes": plan(inputs).training,
    }


def measured(recipe: str) -> dict[str, Any]:
    """A real run that is stopped after a few steps."""
    from nodepiece.tasks.peak import peak_of_process
    from nodepiece.tasks.train import train_experiment
    from nodepiece.training.memory import keep_freed_memory

    instants: list[float] = []

    class Steps:
        def on_step(self, epoch: int, done: int, total: int) -> None:
            instants.append(perf_counter())

        def on_epoch(self, record: dict[str, Any], progress: object) -> None:
            instants.clear()  # the time between two epochs is not that of a step

    keep_freed_memory()  # as the command does
    seconds: list[float] = []

    def should_stop() -> bool:
        if len(instants) > 1:
            seconds.append(instants[-1] - instants[-2])
        return len(seconds) >= STEPS

    with tempfile.TemporaryDirectory() as scratch:
        train_experiment(
            recipe,
            Path(scratch) / "run",
            overrides=["training.validate_every=0", "training.patience=0"],
            device="cpu",
            callbacks=(Steps(),),
            should_stop=should_stop,
        )
    return {"step": median(seconds[UNCOUNTED:] or seconds), "memory": peak_of_process()}


def compare(recipe: str, most_seconds: float) -> dict[str, Any]:
    """Both, each in a process of its own, and their ratios: planned / measured."""
    found = {}
    for part in ("planned", "measured"):
        command = [sys.executable, "-m", "benchmarks.plan_accuracy", part, recipe]
        ran = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=most_seconds
        )
        if ran.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{ran.stderr}")
        found[part] = json.loads(ran.stdout.splitlines()[-1])
    ratios = {key: found["planned"][key] / found["measured"][key] for key in ("step", "memory")}
    ratios["memory from sizes"] = (
        found["planned"]["memory from sizes"] / found["measured"]["memory"]
    )
    return {**found, "ratios": {key: round(value, 3) for key, value in ratios.items()}}


def main() -> None:
    if sys.argv[1:2] in (["planned"], ["measured"]):
        work = planned if sys.argv[1] == "planned" else measured
        print(json.dumps(work(sys.argv[2])))
        return
    parser = argparse.ArgumentParser(description="Plans beside measurements.")
    parser.add_argument("--recipe", action="append", help="instead of all")
    parser.add_argument("-o", "--out", type=Path, default=Path("results/plan-accuracy.json"))
    parser.add_argument("--minutes", type=float, default=60.0, help="for all recipes together")
    parser.add_argument("--recipe-seconds", type=float, default=90.0, help="for each of the two")
    options = parser.parse_args()
    from nodepiece.files import write_json

    start = perf_counter()
    content: dict[str, Any] = {
        "what": "estimates of `nodepiece plan` divided by what was then measured",
        "command": "python -m benchmarks.plan_accuracy",
        "cpus": os.cpu_count(),
        "recipes": {},
    }
    if options.out.is_file():
        content = json.loads(options.out.read_text(encoding="utf-8"))
    for recipe in options.recipe or RECIPES:
        if recipe in content["recipes"]:
            continue
        left = 60 * options.minutes - (perf_counter() - start)
        if left < 2 * options.recipe_seconds:
            print(f"{recipe}: no time left", flush=True)
            continue
        print(f"{recipe} ({left / 60:.0f} minutes left) ...", flush=True)
        try:
            content["recipes"][recipe] = compare(recipe, options.recipe_seconds)
        except subprocess.TimeoutExpired:
            print(f"{recipe}: more than {options.recipe_seconds:g} s", flush=True)
            continue
        except RuntimeError as error:  # data that is not here, for example; others are measured
            print(f"{recipe}: {error}", flush=True)
            continue
        print(recipe, json.dumps(content["recipes"][recipe]["ratios"]), flush=True)
        content["within 30 %"] = within(content["recipes"], 0.3)
        write_json(options.out, content)


def within(recipes: dict[str, Any], share: float) -> dict[str, str]:
    """How many recipes have an estimate within a share of what was measured, by estimate."""
    keys = ("step", "memory", "memory from sizes")
    near = {
        key: sum(1 - share <= each["ratios"][key] <= 1 + share for each in recipes.values())
        for key in keys
    }
    return {key: f"{number} of {len(recipes)}" for key, number in near.items()}


if __name__ == "__main__":
    main()
