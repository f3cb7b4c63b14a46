"""Rows of baselines without training, and of models with and without shortcuts.

From `results/baselines.json`, which `python -m benchmarks.baselines` writes.
"""

import json
from pathlib import Path
from typing import Any

from nodepiece.report.compared import listed
from nodepiece.report.document import Part, Table
from nodepiece.report.measured import TITLES, Measurement, format_score, score_keys
from nodepiece.report.published import VERSIONS

BASELINES = "baselines.json"
NAMES = ("popularity", "half-links", "personalized PageRank")
ALL_NODES, DRAWN = "all nodes", "50 nodes drawn at random"
RANKED_BY_DATASET = ("link-prediction", "inductive-link-prediction")
SHORTCUTS = """
Half-links answer a query from one other fact of the same two nodes, or by the relation's most
frequent tails. Where they put the answer first, alone, the query has a shortcut. What a model is
worth shows in the other queries. A model may be another run of the recipe than the row above;
`fb15k-237` is the automatic choice for FB15k-237 after four minutes on one core
(`nodepiece train fb15k-237 --minutes 4`), evaluated with `--set evaluation.test_facts=0`. Inductive
models have the first seed and were evaluated on a CPU; their queries are ranked among all nodes
here too. † The file has a remark on the model: it was trained before a mistake of propagation on
GPUs [was corrected](propagation.md#what-it-is-worth). Written by
`nodepiece evaluate RUN --baselines --json` and `python -m benchmarks.baselines`, or by
`python -m benchmarks.train_recipes --baselines`.
"""


def read_baselines(results: Path) -> dict[str, Any]:
    """The content of the file; without it, no dataset, no other task and no model."""
    path = results / BASELINES
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {"datasets": {}, "tasks": {}, "models": {}} | found


def baseline_rows(
    content: dict[str, Any], measured: dict[str, Any], num_columns: int
) -> list[list[str]]:
    """A row for each baseline on the task and data of a run; no parameters, epochs or seconds."""
    return [
        [
            f"{name}, without training",
            "0",
            " / ".join(format_score(scores[key]) for key in score_keys(scores)),
            *[""] * (num_columns - 2),
        ]
        for name, scores in scores_of_baselines(content, measured).items()
    ]


def scores_of_baselines(
    content: dict[str, Any], measured: dict[str, Any]
) -> dict[str, dict[str, float]]:
    """The scores of each baseline, by name, on the task and data of a run: among all nodes."""
    if measured["task"] in RANKED_BY_DATASET:
        every = content["datasets"].get(measured["dataset"], {}).get("baselines", {})
        return {name: every[name][ALL_NODES] for name in NAMES if name in every}
    for record in content["tasks"].values():
        same = ("task", "dataset", "label_share")
        if all(record.get(key) == measured.get(key) for key in same):
            return dict(record["baselines"])
    return {}


def below_half_links(content: dict[str, Any], measurements: list[Measurement]) -> str:
    """Which runs half-links are ahead of by MRR, dataset by dataset; "" where there is none."""
    lines = []
    for dataset in dict.fromkeys(each.found["dataset"] for each in measurements):
        runs = [each for each in measurements if each.found["dataset"] == dataset]
        found = scores_of_baselines(content, runs[0].found).get("half-links")
        if found is None:
            continue
        below = [f"`{each.name}`" for each in runs if each.found["mrr"] <= found["mrr"]]
        if below:
            lines.append(
                f"- `{dataset}`: half-links, without training, have an MRR of "
                f"{format_score(found['mrr'])}, more than {listed(below)}."
            )
    return "\n".join(lines)


def inductive_rows(content: dict[str, Any], among: str, key: str) -> list[list[str]]:
    """A row for each baseline but PageRank, which has one of its own, and a cell for each split."""
    rows = []
    for name in NAMES[:2]:
        cells = [
            content["datasets"].get(f"inductive/{version}", {}).get("baselines", {}).get(name)
            for version in VERSIONS
        ]
        if any(cells):
            rows.append([name, *(format_score(cell[among][key]) if cell else "" for cell in cells)])
    return rows


def shortcut_parts(content: dict[str, Any]) -> list[Part]:
    """A table of models with and without shortcuts."""
    rows = []
    for name, model in sorted(content["models"].items(), key=lambda item: place(item[1])):
        baseline = scores_of_baselines(content, model).get("half-links")
        with_one, without = model["queries with a shortcut"], model["queries without a shortcut"]
        share = with_one["count"] / (with_one["count"] + without["count"])
        rows.append(
            [
                f"`{name}` <sup>†</sup>" if "remark" in model else f"`{name}`",
                both(model),
                both(baseline) if baseline else "",
                f"{100 * share:.0f} %",
                both(with_one),
                both(without),
            ]
        )
    columns = [
        "",
        "all queries",
        "half-links alone",
        "with a shortcut",
        "of these",
        "of the others",
    ]
    return [SHORTCUTS, Table(columns, rows)] if rows else []


def place(model: dict[str, Any]) -> tuple[bool, int]:
    """The place of a model in the table: that of its dataset among the tables of the page.

    Inductive ones come after the others, in the order of the paper's table.
    """
    graph = model["dataset"].removeprefix("inductive/")
    is_inductive = graph != model["dataset"]
    graphs = VERSIONS if is_inductive else list(TITLES)
    return is_inductive, graphs.index(graph) if graph in graphs else len(graphs)


def both(scores: dict[str, float]) -> str:
    return f"{format_score(scores['mrr'])} / {format_score(scores['hits@10'])}"
