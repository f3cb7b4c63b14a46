"""The training curves on docs/results.md are those of the runs in results."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scripts.write_results import PAGE, RESULTS, page

from nodepiece.errors import InputError
from nodepiece.report import class_curves
from nodepiece.report.class_curves import MODELS, SCORES, SHARES, Curve, collect, run_name
from nodepiece.report.class_curves_figure import digest, draw
from nodepiece.report.gaps import compare_gaps, gap, gap_table, last_of_all, smaller
from nodepiece.report.measured import CLASS_SCORES, read_measurement

CURVES = RESULTS / class_curves.CURVES
PICTURE = PAGE.parent / "wd50k-curves.svg"


def read_curves() -> dict[tuple[int, str], Curve]:
    return class_curves.read_curves(CURVES)


def test_a_curve_has_the_scores_of_its_run_at_the_epoch_that_was_chosen() -> None:
    runs = json.loads(CURVES.read_text(encoding="utf-8"))["runs"]
    for (share, model), curve in read_curves().items():
        measurement = read_measurement(RESULTS, run_name(share, model))
        assert measurement is not None
        found, run = measurement.found, runs[measurement.name]
        assert {
            key: run[key] for key in ("command", "device", "best_epoch")
        }.items() <= found.items()
        assert curve.epochs[-1] == found["epochs"] and found["label_share"] == share / 100
        for score in CLASS_SCORES:
            known = found["valid"][score]
            assert curve.at(curve.best_epoch, f"valid_{score}") == pytest.approx(known, abs=6e-5)
        assert all(len(values) == len(curve.epochs) for values in curve.scores.values())


def test_the_picture_was_drawn_from_the_curves() -> None:
    written = PICTURE.read_text(encoding="utf-8")
    assert digest(CURVES) in written, "run: python -m scripts.write_results"


def test_the_picture_has_both_curves_of_every_run_in_every_panel() -> None:
    curves = read_curves()
    panels = draw(curves).axes

    assert len(panels) == len(SHARES) * len(CLASS_SCORES)
    for number, axes in enumerate(panels):
        share, score = SHARES[number // 3], CLASS_SCORES[number % 3]
        drawn = [np.asarray(line.get_ydata(), dtype=float).tolist() for line in axes.lines]
        for model in MODELS:
            for part in ("train", "valid"):
                assert drawn.count(curves[share, model].scores[f"{part}_{score}"]) == 1
        low, high = axes.get_ylim()
        assert all(low <= value <= high for values in drawn for value in values)


def test_the_page_links_to_the_part_on_the_gap() -> None:
    (anchor,) = re.findall(r"\[below\]\(#(.+?)\)", page())

    assert f"\n### {anchor.replace('-', ' ').capitalize()}\n" in page()


def curves_with(gaps: dict[str, list[float]]) -> dict[tuple[int, str], Curve]:
    """Two validations each; validation is .5 throughout; gaps are of the shares, at the first."""
    return {
        (share, model): Curve(
            50,
            [50, 100],
            {key: [0.5 + (gaps[model][n] if "train" in key else 0), 0.5] for key in SCORES},
        )
        for n, share in enumerate(SHARES)
        for model in MODELS
    }


def test_gaps_are_compared_share_by_share() -> None:
    even = [0.2, 0.2, 0.2]
    curves = curves_with({"paper": [0.3, 0.2, 0.05], "paper-relations-only": even, "compgcn": even})

    assert last_of_all(curves) == 100
    assert gap(curves[5, "paper"], "prc_auc", 50) == 0.3
    assert smaller(curves, "prc_auc") == "smaller with 100 %, **not with 5 % and 10 %**"
    assert smaller(curves, "prc_auc", 100) == "**smaller with no share**"
    assert "PRC-AUC is reached with 100 %: .300 / .200 / .050 at the dots" in compare_gaps(curves)
    assert ["10 %", "NodePiece + CompGCN", "50", ".700 - .500 = .200"] in [
        list(row[:4]) for row in gap_table(curves).rows
    ]


def test_only_the_runs_of_results_are_collected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run: nodepiece train wd50k-5-paper"):
        collect(tmp_path, RESULTS)
    folder = tmp_path / "wd50k-5-paper"
    folder.mkdir()
    another = {"epoch": 1300} | dict.fromkeys(SCORES, 0.5)
    (folder / "history.jsonl").write_text(json.dumps(another) + "\n", encoding="utf-8")

    with pytest.raises(InputError, match=r"another run than results/wd50k-5-paper\.json"):
        collect(tmp_path, RESULTS)
