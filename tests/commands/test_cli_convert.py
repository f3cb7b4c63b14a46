"""nodepiece convert, and training and evaluation on the folder that it writes."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands.conftest import Nodepiece

COUNTRIES = files("nodepiece") / "data" / "countries"


def test_a_converted_dataset_is_trained_on_and_ranked_both_ways(
    nodepiece: Nodepiece, tmp_path: Path
) -> None:
    assert nodepiece("convert", "countries", "-o", "ogb", "--negatives", 20).status == 0
    changes = ["dataset=ogb", "training.epochs=1", "evaluation.candidates=given"]
    words = [word for change in changes for word in ("--set", change)]
    assert nodepiece("train", "countries", "-o", "run", "--device", "cpu", *words).status == 0

    def mrr(*more: str) -> float:
        ran = nodepiece("evaluate", "run", "--json", "--device", "cpu", *more)
        assert ran.status == 0, ran.err
        found: float = json.loads(ran.out)["mrr"]
        return found

    of_training = json.loads((tmp_path / "run/metrics.json").read_text())
    assert of_training["candidates"] == "given"
    assert mrr() == pytest.approx(of_training["mrr"])
    assert mrr("--set", "evaluation.candidates=all") < mrr()  # more rivals


def test_facts_are_held_out_where_there_are_none(nodepiece: Nodepiece, tmp_path: Path) -> None:
    ran = nodepiece("convert", COUNTRIES / "train.tsv", "-o", "ogb", "--held-out", 7)
    assert ran.status == 0
    assert "7 for valid; 7 for test" in ran.err
    assert (tmp_path / "ogb/split/time/test.pt").is_file()
    ran = nodepiece("tokenize", "ogb", "-o", "vocabulary", "--anchors", 30)
    assert ran.status == 0, ran.err


@pytest.mark.parametrize(
    ("source", "number", "words"),
    [("countries", 5, "leave out --held-out"), (str(COUNTRIES / "train.tsv"), 0, "set --held-out")],
)
def test_a_split_that_makes_no_sense_is_refused(
    nodepiece: Nodepiece, source: str, number: int, words: str
) -> None:
    ran = nodepiece("convert", source, "-o", "ogb", "--held-out", number)
    assert ran.status == 2
    assert words in ran.err


def test_only_the_judging_can_be_changed_after_training(
    nodepiece: Nodepiece, trained: Path
) -> None:
    ran = nodepiece("evaluate", trained, "--set", "encoder.dim=3")
    assert ran.status == 2
    assert "would change what was trained" in ran.err


def test_negatives_that_a_dataset_lacks_are_reported_before_training(nodepiece: Nodepiece) -> None:
    ran = nodepiece("train", "countries", "-o", "run", "--set", "evaluation.candidates=given")
    assert ran.status == 2
    assert "comes without negatives" in ran.err
