"""What each part of propagation adds: a recipe, and the same recipe with one part changed.

    python -m benchmarks.propagation_parts --list            prints the commands of all variants
    python -m benchmarks.propagation_parts -o RUNS [--device cuda]

The second form trains what RUNS does not have yet, one variant after the other, and writes
results/propagation-parts.json and the table of docs/propagation.md. Folders of RUNS are run
folders, or NAME.json is the metrics.json of one, so that variants may also be trained elsewhere.
Where several were trained side by side on one GPU, --shared leaves out their seconds:

    python -m benchmarks.propagation_parts -o RUNS --seeds 1 --shared --collect
"""

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from nodepiece.files import write_json
from nodepiece.report.measured import format_score

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "results" / "propagation-parts.json"
PAGE = ROOT / "docs" / "propagation.md"
MARKS = "<!-- variants -->\n", "<!-- end of variants -->\n"  # of the table on the page
RECIPE = "codex-s-best"
SEEDS = (0, 1)
WALKS = ("walks.steps=3", "walks.separate_losses=true", "walks.choose_coefficient=true")
WORDS = {
    "all": "the recipe: 6 layers, `dim` 32, `rank` 12",
    "vectors-alone": "vectors alone",
    "propagation-alone": "propagation alone: with a coefficient of 1,000 vectors count for nothing",
    "one-loss": "one loss of the sum, not one for each",
    "layers-4": "4 layers",
    "layers-2": "2 layers",
    "dim-16": "states of 16 numbers",
    "rank-1": "`rank` 1",
    "all-targets": "all answers of a query are targets and hidden, not a half",
    "equal-targets": "all targets weigh the same (`query_balance` 0)",
    "pairs-hidden": "all facts between head and target hidden (`hide_pairs`)",
    "all-negatives": "other answers are negatives (`loss` cross-entropy)",
    "float32": "tf32 in place of bfloat16",
    "with-walks": "and walks of 3 steps",
}
VARIANTS: dict[str, tuple[str, ...]] = {  # name: what is set
    "all": (),
    "vectors-alone": ("propagation.layers=0", "training.hide_targets=false"),
    "propagation-alone": ("propagation.choose_coefficient=false", "propagation.coefficient=1000"),
    "one-loss": ("propagation.separate_losses=false", "propagation.choose_coefficient=false"),
    "layers-4": ("propagation.layers=4",),
    "layers-2": ("propagation.layers=2",),
    "dim-16": ("propagation.dim=16",),
    "rank-1": ("propagation.rank=1",),
    "all-targets": ("one_vs_all.target_share=1.0", "one_vs_all.most_targets=0"),
    "equal-targets": ("one_vs_all.query_balance=0.0",),
    "pairs-hidden": ("one_vs_all.hide_pairs=true",),
    "all-negatives": ("training.loss=cross-entropy",),
    "float32": ("training.precision=tf32",),
    "with-walks": WALKS,
}
KEPT = ("mrr", "hits@10", "parameters", "seconds", "device", "seed", "coefficients")
SHARED = "several trainings at a time shared the GPU, so their seconds are left out"


def command_of(variant: str, seed: int, folder: Path, device: str | None) -> list[str]:
    """The words of the command that trains a variant, after `nodepiece`."""
    words = ["train", RECIPE]
    for override in (f"seed={seed}", *VARIANTS[variant]):
        words += ["--set", override]
    words += ["--device", device] if device else []
    return [*words, "-o", str(folder / name_of(variant, seed))]


def name_of(variant: str, seed: int) -> str:
    return f"{RECIPE}-{variant}-seed-{seed}"


def find_metrics(folder: Path, variant: str, seed: int) -> dict[str, Any] | None:
    name = name_of(variant, seed)
    for path in (folder / name / "metrics.json", folder / f"{name}.json"):
        if path.is_file():
            return dict(json.loads(path.read_text(encoding="utf-8")))
    return None


def collect(
    folder: Path, *, seeds: tuple[int, ...] = SEEDS, shared: bool = False
) -> list[dict[str, Any]]:
    """A record for each variant that has been trained: its runs, and their means.

    Runs that shared a GPU have no seconds.
    """
    kept = [key for key in KEPT if not (shared and key == "seconds")]
    records = []
    for variant, overrides in VARIANTS.items():
        found = [find_metrics(folder, variant, seed) for seed in seeds]
        runs = [{key: run[key] for key in kept if key in run} for run in found if run]
        if runs:
            means = {key: fmean(run[key] for run in runs) for key in ("mrr", "hits@10")}
            if not shared:
                means["train"] = fmean(run["seconds"]["train"] for run in runs)
            records.append({"variant": variant, "set": overrides, **means, "runs": runs})
    return records


def table_of(records: list[dict[str, Any]]) -> str:
    """The table of the page, in Markdown: a row for each variant; seconds where all have them."""
    timed = all("train" in record for record in records)
    titles = ["", "MRR / Hits@10", "parameters", *(["training"] if timed else []), "seeds"]
    lines = [f"|{' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for record in records:
        scores = " / ".join(format_score(record[key]) for key in ("mrr", "hits@10"))
        size = f"{record['runs'][0]['parameters'] / 1e6:.2f}M"
        seconds = [f"{record['train']:.0f} s"] if timed else []
        cells = [WORDS[record["variant"]], scores, size, *seconds, str(len(record["runs"]))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def with_table(page: str, records: list[dict[str, Any]]) -> str:
    """The page with the table between its marks."""
    start, end = page.index(MARKS[0]) + len(MARKS[0]), page.index(MARKS[1])
    return page[:start] + table_of(records) + page[end:]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", "--runs", type=Path, default=Path("runs/propagation-parts"))
    parser.add_argument("--device", help="of training, such as cuda")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many (%(default)s)")
    parser.add_argument("--list", action="store_true", help="print the commands alone")
    parser.add_argument("--collect", action="store_true", help="train nothing")
    parser.add_argument("--shared", action="store_true", help="the runs shared a GPU: no seconds")
    options = parser.parse_args()
    for seed in SEEDS[: options.seeds]:
        for variant in VARIANTS:
            words = command_of(variant, seed, options.runs, options.device)
            if options.list:
                print(shlex.join(["nodepiece", *words]))
            elif not options.collect and find_metrics(options.runs, variant, seed) is None:
                subprocess.run([sys.executable, "-m", "nodepiece", *words], check=True)
    if options.list:
        return
    records = collect(options.runs, seeds=SEEDS[: options.seeds], shared=options.shared)
    seeds = "one seed" if options.seeds == 1 else "means of seeds"
    command = (
        f"python -m benchmarks.propagation_parts -o RUNS --device cuda --seeds {options.seeds}"
    )
    content = {
        "what": f"{RECIPE} and the same recipe with one part changed, test split, {seeds}",
        "command": command,
        **({"remark": SHARED} if options.shared else {}),
        "variants": records,
    }
    write_json(OUTPUT, content)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_table(page, records), encoding="utf-8")
    for record in records:
        print(f"{record['variant']:18} MRR {record['mrr']:.3f}  Hits@10 {record['hits@10']:.3f}")


if __name__ == "__main__":
    main()
