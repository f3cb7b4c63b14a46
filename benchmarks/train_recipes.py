"""Trains recipes with several seeds, one after another in one process, and keeps their results.

    python -m benchmarks.train_recipes fb15k-237-best wn18rr-best --seeds 0 1 2 --device cuda
    python -m benchmarks.train_recipes wn18rr-paper --set sampled.separate_masks=true
                                       --suffix separate-masks

A run folder for each recipe and seed is in `--runs`. Those that are finished are kept, and those
that were stopped go on, so that the same command may be given again; with --minutes no step and no
evaluation is begun after this time. The result of a run is written to --results when it ends, as
the other files there: NAME.json, or NAME-SUFFIX-seed-N.json. With --baselines the first seed of
each recipe is also evaluated with and without the shortcuts of half-links, for baselines.json.

Say --alone where nothing else uses the GPU: the seconds are then those of a run alone, but for
kernels that an earlier run of the process compiled; --warm-up compiles them before.
"""

import argparse
import gc
import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from benchmarks.baselines import shortcuts_of
from benchmarks.tokenization import ROOT

from nodepiece.commands.evaluate import to_json
from nodepiece.commands.tables import scores_in_words
from nodepiece.errors import InputError
from nodepiece.files import write_json
from nodepiece.inference.run import load
from nodepiece.settings import load_experiment
from nodepiece.tasks.run_folder import METRICS, read_config, read_metrics
from nodepiece.tasks.run_place import holds_work
from nodepiece.tasks.train import train_experiment

RESULTS = ROOT / "results"
WARM_UP = ("training.epochs=1", "training.warmup_epochs=0")
ALONE, NOT_ALONE = "trained alone on the GPU", "maybe others shared the GPU"
COMPILED = "after others in one process, so that most kernels were compiled before"
GOES_ON = "stopped and resumed"


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recipes", nargs="+", metavar="RECIPE")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0], help="(0)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--suffix", help="of the names, for settings that are not the recipe's")
    parser.add_argument("--device", default="cuda", help="(%(default)s)")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="(%(default)s)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="(results/)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="(no limit)")
    parser.add_argument("--warm-up", action="store_true", help="a short run of each recipe first")
    parser.add_argument("--alone", action="store_true", help="nothing else uses the GPU")
    parser.add_argument("--baselines", action="store_true", help="and shortcuts of the first seeds")
    options = parser.parse_args(words)
    deadline = perf_counter() + 60 * options.minutes
    is_compiled = False

    def is_over() -> bool:
        return perf_counter() > deadline

    for seed in options.seeds:  # one seed of all recipes before the next
        for recipe in options.recipes:
            name = name_of(recipe, seed, options.suffix)
            is_first = seed == options.seeds[0]
            if is_over():
                print(f"out of time before {name}; give the same command again")
                return
            if is_finished(recipe, seed, options, name):
                print(f"{name} is finished")
            else:
                if options.warm_up and is_first:
                    warm_up(recipe, options, name)
                    is_compiled = True
                if not train(recipe, seed, options, name, is_compiled, should_stop=is_over):
                    print(f"out of time before the end of {name}; give the same command again")
                    return
                is_compiled = True
            if options.baselines and is_first:
                if is_over():
                    print(
                        f"out of time before the baselines of {name}; give the same command again"
                    )
                    return
                add_shortcuts(name, options)


def name_of(recipe: str, seed: int, suffix: str | None) -> str:
    changed = f"{recipe}-{suffix}" if suffix else recipe
    return f"{changed}-seed-{seed}" if seed else changed


def settings_of(seed: int, options: argparse.Namespace) -> list[str]:
    return [*options.set, *([f"seed={seed}"] if seed else [])]


def is_finished(recipe: str, seed: int, options: argparse.Namespace, name: str) -> bool:
    """Whether there is a finished run with these settings, whose result is then kept."""
    folder, output = options.runs / name, options.results / f"{name}.json"
    if not (folder / METRICS).is_file():
        return False
    wanted = load_experiment(recipe, settings_of(seed, options))
    if read_config(folder) != wanted:
        raise InputError(f"{folder} has a run with other settings; give another --suffix or --runs")
    if not output.is_file():  # the process ended between the two files, or --results is another
        write_json(output, with_remark(read_metrics(folder), [NOT_ALONE]))
    return True


def warm_up(recipe: str, options: argparse.Namespace, name: str) -> None:
    """Compile the kernels of a recipe by a short run."""
    settings, folder = [*options.set, *WARM_UP], options.runs / f"{name}-warm-up"
    train_experiment(recipe, folder, overrides=settings, device=options.device, overwrite=True)


def train(
    recipe: str,
    seed: int,
    options: argparse.Namespace,
    name: str,
    is_compiled: bool,
    *,
    should_stop: Callable[[], bool],
) -> bool:
    """Train and evaluate a run, and write its result; False if it was stopped before the end."""
    folder = options.runs / name
    is_resumed = holds_work(folder)
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    found = train_experiment(
        recipe,
        folder,
        overrides=settings_of(seed, options),
        device=options.device,
        resume=folder.exists(),
        should_stop=should_stop,
        log=lambda sentence: print(f"{name}: {sentence}", flush=True),
    )
    if found is None:
        return False
    remarks = [GOES_ON] * is_resumed
    remarks += [ALONE if options.alone else NOT_ALONE] + [COMPILED] * is_compiled
    write_json(options.results / f"{name}.json", with_remark(found, remarks))
    print(f"{name}: {scores_in_words(found)}", flush=True)
    return True


def with_remark(found: dict[str, Any], remarks: list[str]) -> dict[str, Any]:
    """What is kept of a run: without the peak of the process, which is that of all its runs.

    On a CPU only a run that was resumed has a remark.
    """
    kept = {key: peak for key, peak in found["peak_memory"].items() if key != "process"}
    if kept.get("device") is None:
        remarks = [remark for remark in remarks if remark == GOES_ON]
    more = {"remark": "; ".join(remarks)} if remarks else {}
    return found | {"peak_memory": kept} | more


def add_shortcuts(name: str, options: argparse.Namespace) -> None:
    """Put the scores of a run with and without shortcuts into baselines.json, by its name."""
    run, path = load(options.runs / name, device=options.device), options.results / "baselines.json"
    about = to_json(run, run.evaluate("test"), "test", with_details=False)
    record = shortcuts_of(about | {"baselines": run.compare_baselines("test")})
    if record is None:
        print(f"{name}: its queries are not divided by shortcuts, so there is nothing to keep")
        return
    content = json.loads(path.read_text("utf-8")) if path.exists() else {"models": {}}
    content["models"][name] = record
    write_json(path, content)


if __name__ == "__main__":
    main()
