"""Trains recipes with several seeds, one after another in one process, and keeps their results.

    python -m benchmarks.train_recipes fb15k-237-best wn18rr-best --seeds 0 1 2 --device cuda
    python -m benchmarks.train_recipes wn18rr-paper --set sampled.separate_masks=true
                                       --suffix separate-masks

A run folder for each recipe and seed is in `--runs`. Those that are finished are kept, and those
that were stopped go on, so that the same command may be given again; with --minutes no step is
begun after this time. The result of a run is written to --results when it ends, as the other files
there: NAME.json, or NAME-SUFFIX-seed-N.json. With --baselines the first seed of each recipe is also
evaluated with and without the shortcuts of half-links, for baselines.json.

On a GPU that nothing else uses the seconds are those of a run alone, but for kernels that an
earlier run of the process compiled; --warm-up compiles them before.
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
from nodepiece.files import write_json
from nodepiece.inference.run import load
from nodepiece.tasks.train import train_experiment

RESULTS = ROOT / "results"
WARM_UP = ("training.epochs=1", "training.warmup_epochs=0")
IN_A_ROW = (
    "trained alone on the GPU, one after another in one process, so that most kernels were "
    "compiled before"
)
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
    parser.add_argument("--baselines", action="store_true", help="and shortcuts of the first seeds")
    options = parser.parse_args(words)
    deadline = perf_counter() + 60 * options.minutes

    def is_over() -> bool:
        return perf_counter() > deadline

    for recipe in options.recipes if options.warm_up else ():
        folder = options.runs / f"{name_of(recipe, 0, options.suffix)}-warm-up"
        settings = [*options.set, *WARM_UP]
        train_experiment(recipe, folder, overrides=settings, device=options.device, overwrite=True)
    for seed in options.seeds:  # one seed of all recipes before the next
        for recipe in options.recipes:
            name = name_of(recipe, seed, options.suffix)
            if is_over() or not train(recipe, seed, options, name, should_stop=is_over):
                print(f"out of time before the end of {name}; give the same command again")
                return
            if options.baselines and seed == options.seeds[0] and not is_over():
                add_shortcuts(options.runs / name, options.device, options.results)


def name_of(recipe: str, seed: int, suffix: str | None) -> str:
    changed = f"{recipe}-{suffix}" if suffix else recipe
    return f"{changed}-seed-{seed}" if seed else changed


def train(
    recipe: str,
    seed: int,
    options: argparse.Namespace,
    name: str,
    *,
    should_stop: Callable[[], bool],
) -> bool:
    """Train and evaluate a run, unless that is done; False if it was stopped before the end."""
    folder, output = options.runs / name, options.results / f"{name}.json"
    if (folder / "metrics.json").is_file():
        print(f"{folder} is finished")
        return True
    is_begun, overrides = folder.exists(), [*options.set, *([f"seed={seed}"] if seed else [])]
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    found = train_experiment(
        recipe,
        folder,
        overrides=overrides,
        device=options.device,
        resume=is_begun,
        should_stop=should_stop,
        log=lambda sentence: print(f"{name}: {sentence}", flush=True),
    )
    if found is not None:
        write_json(output, with_remark(found, is_resumed=is_begun))
        print(f"{name}: MRR {found['mrr']:.4f}  Hits@10 {found['hits@10']:.4f}", flush=True)
    return found is not None


def with_remark(found: dict[str, Any], *, is_resumed: bool) -> dict[str, Any]:
    """What is kept of a run: without the peak of the process, which is that of all its runs."""
    kept = {key: peak for key, peak in found["peak_memory"].items() if key != "process"}
    remarks = [IN_A_ROW] * (kept.get("device") is not None) + [GOES_ON] * is_resumed
    more = {"remark": "; ".join(remarks)} if remarks else {}
    return found | {"peak_memory": kept} | more


def add_shortcuts(folder: Path, device: str, results: Path) -> None:
    """Put the scores of a run with and without shortcuts into baselines.json."""
    run, path = load(folder, device=device), results / "baselines.json"
    about = to_json(run, run.evaluate("test"), "test", with_details=False)
    record = shortcuts_of(about | {"baselines": run.compare_baselines("test")})
    content = json.loads(path.read_text("utf-8")) if path.exists() else {"models": {}}
    content["models"][record["experiment"]] = record
    write_json(path, content)


if __name__ == "__main__":
    main()
