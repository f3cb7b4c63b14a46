"""Sweeps over |A| and k: numbers, figure, and what a repeated command does."""

import json
from pathlib import Path
from typing import Any

import pytest

from nodepiece.errors import InputError
from nodepiece.report.heat_map import text_colour
from nodepiece.report.sweep import PAPER, draw_sweep, sweep_numbers
from nodepiece.tasks.sweep import SweepCell, SweepSettings

FOUND = {"parameters": 1, "epochs": 2, "device": "CPU", "seconds": {"train": 1.5}, "command": "c"}


def settings(folder: Path, **changes: Any) -> SweepSettings:
    return SweepSettings("countries", folder, (5, 10), (4, 8), **changes)


def finish(sweep: SweepSettings, cell: SweepCell, mrr: float) -> None:
    folder = sweep.folder / cell.name
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text(json.dumps(FOUND | {"mrr": mrr, "hits@10": 2 * mrr}))


def test_cells_have_no_more_anchors_per_node_than_anchors(tmp_path: Path) -> None:
    cells = settings(tmp_path).cells
    assert [(cell.num_anchors, cell.anchors_per_node) for cell in cells] == [
        (5, 4),
        (10, 4),
        (10, 8),
    ]


def test_numbers_are_those_of_finished_runs(tmp_path: Path) -> None:
    sweep = settings(tmp_path, overrides=("training.epochs=2",))
    finish(sweep, SweepCell(5, 4), 0.1)
    finish(sweep, SweepCell(10, 8), 0.3)

    numbers = sweep_numbers(sweep)

    assert [(c["num_anchors"], c["mrr"], c["hits@10"]) for c in numbers["cells"]] == [
        (5, 0.1, 0.2),
        (10, 0.3, 0.6),
    ]
    assert numbers["experiment"] == "countries" and numbers["overrides"] == ["training.epochs=2"]
    assert numbers["command"] == (
        "nodepiece sweep countries --anchors 5,10 --anchors-per-node 4,8 "
        f"--set training.epochs=2 -o {tmp_path}"
    )
    shown = [text.get_text() for axes in draw_sweep(numbers).axes for text in axes.texts]
    assert sorted(shown) == [".100", ".200", ".300", ".600"]


def test_the_paper_s_cells_are_drawn_below() -> None:
    cell = {"num_anchors": 25, "anchors_per_node": 5, "mrr": 0.1, "hits@10": 0.2}
    numbers = {"dataset": "wn18rr", "experiment": "e", "overrides": [], "cells": [cell]}
    figure = draw_sweep(numbers)
    num_cells = sum(len(line) for line in PAPER["wn18rr"]["mrr"].values())
    assert [len(axes.texts) for axes in figure.axes] == [1, 1, num_cells, num_cells]


def test_a_command_trains_one_cell_and_resumes_it(tmp_path: Path) -> None:
    sweep = settings(tmp_path, overrides=("seed=1",), device="cpu")
    assert sweep.command(SweepCell(10, 8)) == [
        *("train", "countries", "-o", str(tmp_path / "10-8"), "--resume", "--set", "seed=1"),
        *("--set", "tokenizer.num_anchors=10", "--set", "tokenizer.anchors_per_node=8"),
        *("--device", "cpu"),
    ]


def test_another_sweep_in_the_folder_is_refused(tmp_path: Path) -> None:
    first = settings(tmp_path)
    first.check()
    (tmp_path / "sweep.json").write_text(json.dumps(sweep_numbers(first)))
    first.check()
    with pytest.raises(InputError, match="has a sweep of countries with other settings"):
        settings(tmp_path, overrides=("seed=1",)).check()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"per_node": (20,)}, "every k is larger than every"),
        ({"overrides": ("training.epoch=1",)}, "epoch"),
        ({"jobs": 0}, "at least 1 job"),
        ({"experiment": "wd50k-5-paper"}, "classifies nodes"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_starts(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"experiment": "countries", "anchors": (5, 10), "per_node": (4,)}
    with pytest.raises(InputError, match=message):
        SweepSettings(folder=tmp_path, **(given | changes)).check()


def test_numbers_are_black_on_bright_cells_and_white_on_dark_ones() -> None:
    assert text_colour(1.0, 0.9, 0.2) == "black" and text_colour(0.0, 0.13, 0.3) == "white"
    assert text_colour(0.5, 0.5, 0.5) == "black"  # a contrast of 5.3 instead of 4.0
