"""The report of runs, as a person sees it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.golden.write import STORED_RUNS
from tests.inference.test_with_facts import trained
from tests.tasks.couples import experiment

from nodepiece.errors import InputError
from nodepiece.inference.calibration import calibrate_run
from nodepiece.report.document import Table, to_html, to_markdown
from nodepiece.report.measured import by_seed
from nodepiece.report.run_report import others_of, paper_names, read_run, report_document, run_names


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two seeds of an experiment, the second calibrated, and another task."""
    folder = tmp_path_factory.mktemp("runs")
    first = trained(folder / "first", experiment(epochs=2)).folder
    second = shutil.copytree(first, folder / "second")
    metrics = json.loads((second / "metrics.json").read_text(encoding="utf-8"))
    (second / "metrics.json").write_text(
        json.dumps(metrics | {"seed": 1, "mrr": metrics["mrr"] + 0.1})
    )
    calibrate_run(trained(folder / "calibrated", experiment(epochs=1)))
    return [first, second, folder / "calibrated", STORED_RUNS / "classes"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_filled_tables_and_drawn_figures(
    runs: list[Path], scheme: str, tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    path = tmp_path / "report.html"
    path.write_text(to_html(report_document(runs)), encoding="utf-8")

    opened = open_page(path, scheme)

    tables = opened.tab.locator("table")
    assert tables.count() >= 5
    for number in range(tables.count()):
        assert len(tables.nth(number).inner_text().split()) > 4
    figures = opened.tab.locator("figure svg")
    assert figures.count() == 3  # curves of both datasets, and a reliability diagram
    assert all(figures.nth(n).bounding_box()["height"] > 100 for n in range(figures.count()))
    assert figures.nth(0).locator("path").count() > 5
    opened.tab.click("text=Calibration")
    assert opened.errors == [] and opened.requests == [path.as_uri()]


def test_seeds_are_one_row_with_mean_and_spread(runs: list[Path]) -> None:
    measured = [read_run(folder, folder.name) for folder in runs[:2]]
    low, high = (each.found["mrr"] for each in measured)

    (row,) = by_seed(measured)

    assert row.found["mrr"] == pytest.approx((low + high) / 2)
    assert row.spread["mrr"] == pytest.approx((high - low) / 2**0.5)
    text = to_markdown(report_document(runs[:2]))
    assert f"{row.found['mrr']:.3f}"[1:] + " ± .071" in text


def test_runs_with_the_same_seed_stay_apart(runs: list[Path]) -> None:
    assert len(by_seed([read_run(runs[0], name) for name in "ab"])) == 2


def test_scores_by_relation_are_side_by_side(runs: list[Path]) -> None:
    section = report_document([runs[0], runs[2]]).sections[1]
    table = [part for part in section.parts if isinstance(part, Table)][-1]
    assert [row[0] for row in table.rows] == ["married to"]
    assert len(table.columns) == 2 + 2 * 2 and all(table.rows[0])


def test_the_rows_of_the_paper_and_of_others_belong_to_the_dataset() -> None:
    found = {"task": "link-prediction", "dataset": "fb15k-237", "experiment": "mine"}
    assert paper_names(found) == ["fb15k-237-paper"]
    assert [each.system for each in others_of("link-prediction", "wn18rr")][-1] == "AdaProp"
    inductive = others_of("inductive-link-prediction", "inductive/wn18rr-v1")
    assert {each.system: each.scores for each in inductive}["NBFNet"] == (0.948,)
    nell = others_of("inductive-link-prediction", "inductive/nell-995-v4")
    assert [each.system for each in nell] == ["Neural LP", "DRUM", "RuleN", "GraIL"]


def test_runs_are_named_by_as_much_of_their_paths_as_differs() -> None:
    assert run_names([Path("/a/b"), Path("/a/c")]) == ["b", "c"]
    assert run_names([Path("/a/b"), Path("/c/b")]) == ["a/b", "c/b"]
    with pytest.raises(InputError, match="given twice"):
        run_names([Path("/a/b"), Path("/a/../a/b")])


def test_a_run_that_is_not_finished_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a finished run"):
        report_document([tmp_path])
    (tmp_path / "metrics.json").write_text("{")
    with pytest.raises(InputError, match=r"metrics\.json is damaged"):
        report_document([tmp_path])
