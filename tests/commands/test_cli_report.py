"""nodepiece report on the command line."""

import re
from pathlib import Path

from scripts.write_results import RESULTS
from tests.commands.conftest import Nodepiece
from tests.golden.write import STORED_RUNS


def test_a_page_markdown_and_figures_are_written(nodepiece: Nodepiece) -> None:
    outcome = nodepiece("report", STORED_RUNS / "walks", STORED_RUNS / "classes", "-o", "out")

    assert outcome.status == 0, outcome.err
    assert "wrote out/report.html: 2 runs" in outcome.out
    text = Path("out/report.md").read_text(encoding="utf-8")
    figures = re.findall(r"!\[.*?\]\((.+?)\)", text)
    assert figures and all((Path("out") / figure).is_file() for figure in figures)


def test_without_runs_the_measured_results_are_written(nodepiece: Nodepiece) -> None:
    outcome = nodepiece("report", "--results", RESULTS)

    assert outcome.status == 0, outcome.err
    text = Path("report/report.md").read_text(encoding="utf-8")
    assert "NBFNet (Zhu et al., 2021)" in text
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert len(links) > 80
    assert all((Path("report") / link).exists() for link in links), links


def test_without_runs_and_results_the_error_says_what_to_give(nodepiece: Nodepiece) -> None:
    outcome = nodepiece("report")
    assert outcome.status == 2 and "name the runs to report on" in outcome.err


def test_another_folder_is_not_replaced(nodepiece: Nodepiece, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    outcome = nodepiece("report", STORED_RUNS / "walks", "-o", "mine")
    assert outcome.status == 2 and "is not a report" in outcome.err
    assert (tmp_path / "mine" / "notes.txt").exists()
