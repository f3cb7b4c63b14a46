"""Write docs/experiments.md: the included experiments, the paper's rows, and our measurements.

python -m scripts.list_experiments
"""

from functools import cache

from scripts.write_results import RESULTS, ROOT

from nodepiece.recipes import experiment_names, recipes
from nodepiece.report.measured import (
    TITLES,
    Measurement,
    by_seed,
    changed_settings,
    order,
    read_measurements,
    scores,
)
from nodepiece.report.results_page import ILPC, among_all
from nodepiece.settings import Experiment, load_experiment

PAGE = ROOT / "docs" / "experiments.md"
INTRODUCTION = """# Experiments

Every experiment is a TOML file in [`src/nodepiece/experiments`](../src/nodepiece/experiments), or
an ablation that [`ablations.toml`](../src/nodepiece/experiments/ablations.toml) declares, and is
run by its name:

<!-- not run: downloads files, trains on a GPU -->
```sh
nodepiece datasets fetch fb15k-237
nodepiece train fb15k-237-paper -o runs/fb15k-237-paper
```

`nodepiece experiments` lists the names, and `nodepiece experiments show fb15k-237-paper` prints all
settings of one and marks those that differ from the defaults. The run folder then holds the result
(`metrics.json`) and all settings, defaults included (`config.toml`). `--set training.epochs=5`
changes one of them for a run; a TOML file of your own with `extends = "fb15k-237-paper"` changes
some for good. `python -m benchmarks.train_recipes NAME... --seeds 0 1 2`, in a clone, trains
several one after another and keeps their results.

"Table 2" and "Table 3" are the paper's tables of transductive link prediction, "Relation
prediction" the table of its appendix, "Inductive" that of inductive link prediction, where ranks
are among 50 nodes drawn at random, ten times (for ILPC 2022, which came later, among all nodes),
"Out-of-sample" that of nodes that are added after training. Numbers in the last column are the
paper's, those in "measured" are ours: MRR / Hits@10 on the test facts, or ROC-AUC / PRC-AUC / hard
accuracy on the test nodes, from [`results`](../results), where each file has the command that
reproduces it. Of several seeds it is the mean, with the standard deviation; the link is to the file
of the first. [results.md](results.md) has more, also runs with other settings than those of the
experiment. This page is written by `python -m scripts.list_experiments`.
"""
TABLES = {"fb15k-237": "Table 2", "wn18rr": "Table 2", "codex-l": "Table 3", "yago3-10": "Table 3"}
ABLATIONS = {
    "-no-relations": "no rel. context",
    "-no-distances": "no distances",
    "-relations-only": "no anchors, rels only",
}

WIKIKG2 = {
    "paper": "NP + AutoSF",
    "paper-no-relations": "- rel. context",
    "paper-no-distances": "- anc. dists",
    "paper-relations-only": "- no anchors",
    "autosf": "AutoSF",
    "pairre": "PairRE",
    "rotate": "RotatE",
    "transe": "TransE",
}


def page() -> str:
    experiments = [load_experiment(name) for name in experiment_names()]
    parts = [INTRODUCTION]
    for dataset, title in TITLES.items():
        parts.append(
            f"## {title}\n\n"
            "| experiment | row of the paper | measured | what it is |\n|---|---|---|---|"
        )
        mine = {each.name: each for each in experiments if group(each) == dataset}
        parts += [row(mine[name]) for name in sorted(mine, key=order)] + [""]
    return "\n".join(parts)


def group(experiment: Experiment) -> str:
    """The part of the page that an experiment is in."""
    if experiment.task == "out-of-sample":
        return experiment.task
    return experiment.dataset.partition("/")[0]


def row(experiment: Experiment) -> str:
    name = experiment.name
    recipe = recipes()[name]
    link = f"[`{name}`](../src/nodepiece/{recipe.path})"
    cells = (link, row_of_the_paper(experiment), measured(name), recipe.description)
    return f"| {' | '.join(cells)} |"


def row_of_the_paper(experiment: Experiment) -> str:
    name, table = experiment.name, TABLES.get(experiment.dataset)
    if experiment.task == "node-classification":
        return class_row_of_the_paper(experiment)
    if experiment.task == "inductive-link-prediction" and name.endswith("-paper"):
        return "Inductive: NP + CompGCN"
    if experiment.task == "out-of-sample":
        return out_of_sample_row_of_the_paper(experiment)
    if experiment.dataset == "ogbl-wikikg2":
        return f"WikiKG 2: {WIKIKG2.get(name.removeprefix('wikikg2-'), '-')}"
    is_row = name.endswith(("-paper", "-rotate", "-rotate-small", *ABLATIONS))
    if table is None or not is_row:  # a recipe of our own
        return "-"
    if experiment.task == "relation-prediction":
        table = "Relation prediction"
    if name.endswith("-rotate-small"):
        return f"{table}: RotatE (20d)" if table == "Table 3" else "-"
    if name.endswith("-rotate"):
        return f"{table}: RotatE"
    ablation = next((words for end, words in ABLATIONS.items() if name.endswith(end)), None)
    return f"{table}: {ablation or 'NodePiece + RotatE'}"


def out_of_sample_row_of_the_paper(experiment: Experiment) -> str:
    name = experiment.name
    if experiment.dataset not in ("ofb15k-237", "oyago3-10") or name == "oyago3-10-odistmult":
        return "-"
    if name.endswith("-odistmult"):
        return "Out-of-sample: oDistMult-ERAvg"
    words = (words for end, words in ABLATIONS.items() if name.endswith(end))
    return f"Out-of-sample: {next(words, 'NodePiece + DistMult')}"


def class_row_of_the_paper(experiment: Experiment) -> str:
    share = f"{experiment.classifier.label_share:.0%}".replace("%", " %")
    if share not in ("5 %", "10 %"):
        return "-"
    if experiment.name.endswith(("-mlp", "-compgcn")):
        model = "MLP" if experiment.name.endswith("-mlp") else "CompGCN"
        return f"Node classification, {share}: {model}"
    words = (words for end, words in ABLATIONS.items() if experiment.name.endswith(end))
    return f"Node classification, {share}: {next(words, 'NodePiece + GNN')}"


def measured(name: str) -> str:
    found = measurements().get(name)
    if found is None or changed_settings(found.found):  # not run as the experiment says
        return "-"
    shown = among_all(found.found) if found.found["dataset"] == ILPC else scores(found)
    return f"[{shown}]({found.link})"


@cache
def measurements() -> dict[str, Measurement]:
    """Those of results/ by name, seeds as one."""
    return {each.name: each for each in by_seed(read_measurements(RESULTS))}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
