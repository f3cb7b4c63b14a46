"""nodepiece evaluate: the same numbers as after training, and those of other splits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from tests.commands.conftest import Nodepiece


def test_it_finds_what_training_found(nodepiece: Nodepiece, trained: Path) -> None:
    ran = nodepiece("evaluate", trained, "--json", "--per-relation", "--device", "cpu")

    assert ran.status == 0
    found, printed = json.loads((trained / "metrics.json").read_text()), json.loads(ran.out)
    assert printed["split"] == "test"
    for key in ("mrr", "hits@1", "hits@10", "mean_rank", "head", "tail", "relations"):
        assert printed[key] == found[key]


def test_relations_are_named_and_shown_only_when_asked_for(
    nodepiece: Nodepiece, trained: Path
) -> None:
    assert "relations" not in json.loads(nodepiece("evaluate", trained, "--json").out)
    assert "has currency" not in nodepiece("evaluate", trained).out
    ran = nodepiece("evaluate", trained, "--per-relation")
    names = [line.split("0.")[0].strip() for line in ran.out.splitlines() if "0." in line]
    assert names[:4] == ["all", "head", "tail", "near"]  # the most frequent relation first
    assert "has currency" in names


def test_the_table_has_a_row_for_each_side(nodepiece: Nodepiece, trained: Path) -> None:
    ran = nodepiece("evaluate", trained, "--split", "valid")

    rows = {line.split("0.")[0].strip(): line.split() for line in ran.out.splitlines()}
    both = json.loads((trained / "metrics.json").read_text())["valid"]
    assert f"{both['mrr']:.3f}" in rows["all"]
    assert rows["head"][-1] == rows["tail"][-1] == "165"
    assert "on its valid split" in " ".join(ran.err.split())


def test_it_says_where_only_the_first_facts_are_ranked(nodepiece: Nodepiece, trained: Path) -> None:
    part = nodepiece("evaluate", trained, "--set", "evaluation.test_facts=10")
    assert "the first 10 of 165 facts are ranked, as evaluation.test_facts says" in part.err
    assert "are ranked, as" not in nodepiece("evaluate", trained).err


def test_popularity_is_ranked_on_the_same_facts(nodepiece: Nodepiece, trained: Path) -> None:
    found = json.loads((trained / "metrics.json").read_text())["popularity"]

    ran = nodepiece("evaluate", trained, "--json")
    assert json.loads(ran.out)["popularity"] == found
    assert found["count"] == json.loads(ran.out)["count"]
    printed = nodepiece("evaluate", trained).out
    assert f"popularity, without training: MRR {found['mrr']:.4f}" in printed


def test_baselines_are_ranked_beside_the_model(nodepiece: Nodepiece, trained: Path) -> None:
    printed = json.loads(nodepiece("evaluate", trained, "--json", "--baselines").out)
    found = printed["baselines"]
    assert list(found) == [
        *("popularity", "half-links", "personalized PageRank"),
        *("queries with a shortcut", "queries without a shortcut"),
    ]
    assert found["popularity"] == printed["popularity"]
    easy, hard = found["queries with a shortcut"], found["queries without a shortcut"]
    assert easy["count"] == round(found["half-links"]["hits@1"] * printed["count"])
    mean = (easy["mrr"] * easy["count"] + hard["mrr"] * hard["count"]) / printed["count"]
    assert abs(mean - printed["mrr"]) < 1e-6
    assert "half-links" in nodepiece("evaluate", trained, "--baselines").out


def test_a_shallow_model_is_trained_beside_it_on_request(
    nodepiece: Nodepiece, trained: Path
) -> None:
    metrics = json.loads((trained / "metrics.json").read_text())
    ran = nodepiece("evaluate", trained, "--json", "--shallow", "--device", "cpu")
    assert ran.status == 0, ran.err
    found = json.loads(ran.out)["shallow"]
    assert found["steps"] == metrics["steps"]
    assert found["parameters"] <= metrics["parameters"]
    assert found["count"] == metrics["count"]
    printed = nodepiece("evaluate", trained, "--shallow", "--device", "cpu").out
    assert f"a vector of {found['dim']} numbers for every node: MRR" in printed


def test_an_unknown_split_is_refused(nodepiece: Nodepiece, trained: Path) -> None:
    ran = nodepiece("evaluate", trained, "--split", "tset")

    assert ran.status == 2
    assert "unknown split 'tset'; it is one of train, valid, test" in ran.err


def test_a_long_evaluation_shows_how_far_it_is(
    nodepiece: Nodepiece, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.commands.progress.SECONDS_BETWEEN_LINES", -1.0)

    ran = nodepiece("evaluate", trained)

    assert "ranking: 330/330 queries; 0 s left" in ran.err
