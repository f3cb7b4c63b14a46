"""nodepiece map on the command line."""

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.commands.conftest import Nodepiece
from tests.golden.write import STORED_RUNS

from nodepiece.report import layout


@pytest.fixture(autouse=True)
def few_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "EARLY", 10)
    monkeypatch.setattr(layout, "LATE", 10)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return shutil.copytree(STORED_RUNS / "walks", tmp_path / "run")


def test_a_page_with_all_nodes_is_written(run: Path, nodepiece: Nodepiece) -> None:
    outcome = nodepiece("map", run, "-o", "map.html")

    assert outcome.status == 0, outcome.err
    text = Path("map.html").read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    number = len(json.loads(found.group(1))["names"])
    assert f"wrote map.html: {number} nodes, t-SNE" in outcome.out


def test_nodes_without_a_group_can_be_left_out(run: Path, nodepiece: Nodepiece) -> None:
    every, some = (
        nodepiece("map", run, "-o", "map.svg", "--tails-of", "lives in", *options)
        for options in ((), ("--grouped-only",))
    )
    assert every.status == some.status == 0, some.err
    assert every.out != some.out


def test_another_ending_is_refused_before_the_run_is_opened(nodepiece: Nodepiece) -> None:
    outcome = nodepiece("map", "nowhere", "-o", "map.txt")
    assert outcome.status == 2
    assert "map.txt should end in .html, .png, .svg, .pdf" in outcome.err


def test_an_unknown_method_is_refused(run: Path, nodepiece: Nodepiece) -> None:
    outcome = nodepiece("map", run, "-o", "map.html", "--method", "pca")
    assert outcome.status == 2 and "choose t-sne or umap" in outcome.err
