"""The notebooks run, print what is stored in them, and are shown with it in the site."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from scripts import notebook_pages

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from scripts.run_notebooks import executed, notebooks

NOTEBOOKS = notebooks()


def stored(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def kinds_of_output(notebook: Any) -> list[list[str]]:
    """For each cell what it shows: printed text, or the kinds of data."""
    return [
        sorted(k for output in cell.get("outputs", ()) for k in output.get("data", ["printed"]))
        for cell in notebook["cells"]
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_is_stored_in_it(path: Path) -> None:
    now = executed(path)  # raises if a cell fails

    assert kinds_of_output(now) == kinds_of_output(stored(path)), "python -m scripts.run_notebooks"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_stored_notebook_has_output_and_no_paths_of_a_machine(path: Path) -> None:
    notebook = stored(path)

    assert sum(bool(kinds) for kinds in kinds_of_output(notebook)) >= 3
    for cell in notebook["cells"]:
        text = json.dumps([cell["source"], cell.get("outputs", [])])
        assert not re.search(r"/(tmp|home|root|Users|work|opt)/", text), cell["source"]
        assert all(each["output_type"] != "error" for each in cell.get("outputs", ()))


def test_there_are_three_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first-graph", "paper-table", "service"]


def test_a_page_shows_text_code_and_output(tmp_path: Path) -> None:
    printed = {"output_type": "stream", "name": "stdout", "text": ["2\n"]}
    table = {"text/html": ["<style>x</style><table border='1'>\n <tr></tr></table>"]}
    picture = {"image/png": "AAAA\n"}
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "[next](next.ipynb)"]},
        {
            "cell_type": "code",
            "source": ["print(1 + 1)"],
            "outputs": [printed, {"data": table}, {"data": picture}],
        },
    ]
    path = tmp_path / "small.ipynb"
    path.write_text(json.dumps({"cells": cells}))

    page = notebook_pages.page(path)

    assert page.startswith("# Title\n[next](next.md)\n\n```python\nprint(1 + 1)\n```\n")
    assert "```text\n2\n```" in page and "<table><tr></tr></table>" in page
    assert 'src="data:image/png;base64,AAAA"' in page
