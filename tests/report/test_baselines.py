"""Rows of baselines without training, from a small file of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.baselines import shortcuts_of

from nodepiece.report.baselines import (
    DRAWN,
    baseline_rows,
    below_half_links,
    inductive_rows,
    read_baselines,
    shortcut_parts,
)
from nodepiece.report.document import Table
from nodepiece.report.measured import Measurement

HALF = {"all nodes": {"mrr": 0.25, "hits@10": 0.5}}
CONTENT: dict[str, Any] = {
    "datasets": {
        "codex-s": {"baselines": {"popularity": {"all nodes": {"mrr": 0.1, "hits@10": 0.2}}}},
        "wn18rr": {"baselines": {"half-links": HALF}},
        "inductive/nell-995-v2": {
            "baselines": {"half-links": {DRAWN: {"mrr": 0.1, "hits@10": 0.75}, **HALF}}
        },
    },
    "tasks": {
        "classes-recipe": {
            **{"task": "node-classification", "dataset": "classes", "label_share": 0.1},
            "baselines": {"class shares": {"roc_auc": 0.5, "prc_auc": 0.6, "hard_accuracy": 0.0}},
        },
        "unseen-recipe": {
            **{"task": "out-of-sample", "dataset": "wn18rr"},
            "baselines": {"half-links": HALF["all nodes"]},
        },
    },
    "models": {
        "wn18rr-best": {
            **{"task": "link-prediction", "dataset": "wn18rr"},
            "mrr": 0.5,
            "hits@10": 0.6,
            "queries with a shortcut": {"mrr": 0.9, "hits@10": 1.0, "count": 1},
            "queries without a shortcut": {"mrr": 0.3, "hits@10": 0.4, "count": 3},
        }
    },
}


def run_on(task: str, dataset: str, **more: Any) -> dict[str, Any]:
    return {"task": task, "dataset": dataset, **more}


def test_a_row_has_the_scores_among_all_nodes_and_no_parameters() -> None:
    assert baseline_rows(CONTENT, run_on("link-prediction", "codex-s"), 5) == [
        ["popularity, without training", "0", ".100 / .200", "", "", ""]
    ]


def test_a_dataset_without_baselines_has_no_rows() -> None:
    assert baseline_rows(CONTENT, run_on("link-prediction", "fb15k-237"), 5) == []
    assert baseline_rows(CONTENT, run_on("relation-prediction", "codex-s"), 5) == []


def test_rows_of_classes_are_those_of_the_same_share_of_labels() -> None:
    measured = run_on("node-classification", "classes", label_share=0.1)
    assert baseline_rows(CONTENT, measured, 4) == [
        ["class shares, without training", "0", ".500 / .600 / .000", "", ""]
    ]
    assert not baseline_rows(CONTENT, measured | {"label_share": 0.2}, 4)


def test_runs_that_half_links_are_ahead_of_are_named() -> None:
    about = run_on("out-of-sample", "wn18rr")
    runs = [Measurement(name, about | {"mrr": mrr}) for name, mrr in (("a", 0.1), ("b", 0.9))]
    assert below_half_links(CONTENT, runs) == (
        "- `wn18rr`: half-links, without training, have an MRR of .250, more than `a`."
    )
    assert below_half_links(CONTENT, runs[1:]) == ""


def test_an_inductive_row_has_a_cell_for_each_split_and_empty_ones_where_none_is_measured() -> None:
    rows = inductive_rows(CONTENT, DRAWN, "hits@10")
    assert rows == [["half-links", *[""] * 9, ".750", "", ""]]


def test_a_model_is_shown_with_and_without_shortcuts() -> None:
    _, table = shortcut_parts(CONTENT)
    assert isinstance(table, Table)
    cells = [".500 / .600", ".250 / .500", "25 %", ".900 / 1.000", ".300 / .400"]
    assert table.rows == [["`wn18rr-best`", *cells]]


def test_a_model_is_beside_the_half_links_of_its_task_and_its_remark_is_marked() -> None:
    model = CONTENT["models"]["wn18rr-best"] | {"task": "relation-prediction", "remark": "old"}
    _, table = shortcut_parts(CONTENT | {"models": {"recipe": model}})
    assert isinstance(table, Table)
    assert table.rows[0][:3] == ["`recipe` <sup>†</sup>", ".500 / .600", ""]


def test_a_folder_without_the_file_has_no_baselines(tmp_path: Path) -> None:
    assert read_baselines(tmp_path) == {"datasets": {}, "tasks": {}, "models": {}}
    (tmp_path / "baselines.json").write_text(json.dumps(CONTENT), encoding="utf-8")
    assert read_baselines(tmp_path) == CONTENT


def model(dataset: str) -> dict[str, Any]:
    return {**CONTENT["models"]["wn18rr-best"], "dataset": dataset}


def test_inductive_models_come_last_in_the_order_of_the_papers_table() -> None:
    names = [
        "inductive/nell-995-v1",
        "inductive/ilpc-small",
        "inductive/wn18rr-v2",
        "another",
        "codex-s",
        "inductive/fb15k-237-v4",
        "wn18rr",
    ]
    _, table = shortcut_parts({"datasets": {}, "models": {name: model(name) for name in names}})
    assert isinstance(table, Table)
    assert [row[0].strip("`") for row in table.rows] == [
        "wn18rr",
        "codex-s",
        "another",
        "inductive/fb15k-237-v4",
        "inductive/wn18rr-v2",
        "inductive/nell-995-v1",
        "inductive/ilpc-small",
    ]


@pytest.mark.parametrize("inductive", [False, True])
def test_a_model_has_its_scores_among_all_nodes(inductive: bool) -> None:
    full = {"mrr": 0.5, "hits@1": 0.4, "hits@10": 0.6, "count": 4}
    drawn = {"mrr": 0.8, "hits@1": 0.7, "hits@10": 0.9, "count": 4}
    parts = {
        f"queries {which} a shortcut": {**full, "mean_rank": 7.0} for which in ("with", "without")
    }
    evaluated = {
        **{"experiment": "mine", "task": "link-prediction", "dataset": "graph"},
        "split": "test",
        **({**drawn, "all nodes": full} if inductive else full),
        "baselines": {"popularity": full, **parts},
    }
    assert shortcuts_of(evaluated | {"baselines": {"popularity": full}}) is None
    assert shortcuts_of(evaluated) == {
        **{"experiment": "mine", "task": "link-prediction", "dataset": "graph"},
        "split": "test",
        "mrr": 0.5,
        "hits@10": 0.6,
        "queries with a shortcut": full,
        "queries without a shortcut": full,
    }
