"""nodepiece explain: text, JSON and a drawing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from nodepiece.inference.run import load

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands.conftest import Nodepiece

FACT = ("--head", "Kenya", "--relation", "borders", "--tail", "Uganda")


def test_an_explanation_is_printed_in_80_columns(nodepiece: Nodepiece, trained: Path) -> None:
    ran = nodepiece("explain", trained, *FACT)
    lines = ran.out.splitlines()
    assert ran.status == 0 and lines[0] == "Kenya — borders — Uganda"
    assert max(map(len, lines)) <= 80
    for title in ("Paths, by", "Pieces that carry the score", "Necessary facts", "Similar facts"):
        assert any(line.startswith(title) for line in lines), title


def test_the_json_is_that_of_python(nodepiece: Nodepiece, trained: Path) -> None:
    ran = nodepiece("explain", trained, *FACT, "--json", "--paths", 2, "--necessary", 1)
    found = json.loads(ran.out)
    python = load(trained).explain(
        head="Kenya", relation="borders", tail="Uganda", paths=2, facts=1
    )
    assert found == json.loads(json.dumps(python.to_json()))
    assert len(found["paths"]) == 2 and len(found["necessary"]) <= 1


def test_the_paths_are_drawn_in_a_file(nodepiece: Nodepiece, trained: Path, tmp_path: Path) -> None:
    ran = nodepiece("explain", trained, *FACT, "--svg", "paths.svg")
    assert ran.status == 0 and "wrote paths.svg" in ran.err
    root = ElementTree.parse(tmp_path / "paths.svg").getroot()
    assert root.tag.endswith("svg") and "Kenya" in "".join(root.itertext())


def test_facts_may_be_assumed(nodepiece: Nodepiece, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "new.tsv").write_text("<script>\tborders\tUganda\n<script>\tborders\tKenya\n")
    asked = ("--head", "<script>", "--relation", "borders", "--tail", "Tanzania")
    ran = nodepiece("explain", trained, *asked, "--facts", "new.tsv", "--svg", "x.svg", "--json")
    found = json.loads(ran.out)
    assert ran.status == 0
    assert any("<script>" in step for path in found["paths"] for step in path["steps"])
    drawing = (tmp_path / "x.svg").read_text()
    assert "<script>" not in drawing and "&lt;script&gt;" in drawing
    ElementTree.fromstring(drawing)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--head", "Kenia", *FACT[2:]), "unknown node 'Kenia'; did you mean 'Kenya'"),
        ((*FACT[:2], "--relation", "border", *FACT[4:]), "unknown relation 'border'; did you mean"),
        ((*FACT, "--svg", "paths.png"), "paths.png should end in .svg"),
    ],
)
def test_wrong_input_is_one_sentence(
    nodepiece: Nodepiece, trained: Path, options: tuple[str, ...], sentence: str
) -> None:
    ran = nodepiece("explain", trained, *options)
    assert ran.status == 2 and sentence in ran.err and len(ran.err.splitlines()) == 1
