"""nodepiece calibrate and classify-triples."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands.conftest import Nodepiece


def test_a_calibrated_run_scores_with_probabilities(nodepiece: Nodepiece, run: Path) -> None:
    ran = nodepiece("calibrate", run)

    assert ran.status == 0 and "165 true facts, 165 false facts" in ran.out
    assert f"wrote {run / 'calibration.json'}" in ran.out
    (run.parent / "facts.tsv").write_text("Kenya\tborders\tUganda\nKenya\tborders\tPeru\n")
    lines = nodepiece("score", run, "facts.tsv").out.splitlines()
    said = [json.loads(line)["probability"] for line in lines]
    assert 0 <= said[1] <= said[0] <= 1
    query = ("--head", "Kenya", "--relation", "borders", "--top", 2)
    predicted = nodepiece("predict", run, *query)
    assert "probability" in predicted.out
    assert "probabilities are by this query alone; nodepiece explain also" in predicted.err
    assert "shares of facts mixed as in calibration" in " ".join(predicted.err.split())


def test_a_sample_of_the_facts_is_stated(nodepiece: Nodepiece, run: Path) -> None:
    ran = nodepiece("calibrate", run, "--num-facts", 50)

    assert "50 true facts, 50 false facts" in ran.out
    assert "drawn from 165; --num-facts 0 takes all of them" in ran.out


def test_triples_are_classified_in_one_command(
    nodepiece: Nodepiece, trained: Path, tmp_path: Path
) -> None:
    ran = nodepiece("classify-triples", trained, "--plot", "reliability.svg", "--per-relation")
    found = json.loads(nodepiece("classify-triples", trained, "--json").out)

    assert ran.status == 0 and "probabilities fitted to the validation facts" in ran.out
    assert "ECE" in ran.out and "threshold of relation" in ran.out and "borders" in ran.out
    assert (tmp_path / "reliability.svg").read_text().startswith("<?xml")
    assert found["task"] == "triple-classification" and found["count"] == 330
    assert {"accuracy", "f1", "roc_auc", "brier", "calibration_error"} <= set(found)
    assert sum(found["reliability"]["count"]) == 330 and "relations" not in found
    assert not (trained / "calibration.json").exists()


def test_a_file_of_false_facts_is_read_and_a_wrong_picture_refused_first(
    nodepiece: Nodepiece, trained: Path, tmp_path: Path
) -> None:
    (tmp_path / "false.tsv").write_text("Kenya\tborders\tPeru\nChad\tborders\tPeru\n")

    ran = nodepiece("classify-triples", trained, "--negatives", "false.tsv", "--json")
    refused = nodepiece("classify-triples", trained, "--plot", "picture.doc")

    assert json.loads(ran.out)["negatives"] == "verified: given"
    assert refused.status == 2 and "should end in .png, .svg, .pdf" in refused.err
