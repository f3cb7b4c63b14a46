"""Names in backticks, in the documentation and in docstrings, are names of files and code.

A word is checked if it looks like a name of code: with an underscore, or letters of both cases.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import nodepiece

PACKAGE = Path(nodepiece.__file__).parent
ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = sorted(
    path
    for folder in ("src", "tests", "scripts", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*.py")
)
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
PYKEEN = {"early_stopper", "predict_target", "predict_all", "hpo_pipeline", "save_state_dict"}
EXAMPLES = {"Start_ID", "startId", "valid_negatives", "test_negatives"}  # of columns and of files


@cache
def known_names() -> frozenset[str]:
    """Every identifier, module and one-word string of the code."""
    names = {path.stem for path in PROGRAMS} | EXAMPLES | PYKEEN
    for path in PROGRAMS:
        for node in ast.walk(ast.parse(path.read_bytes())):
            for field in ("id", "attr", "arg", "name", "value"):
                value = getattr(node, field, None)
                if isinstance(value, str) and " " not in value:
                    names.add(value)
    return frozenset(names)


@cache
def known_files() -> frozenset[str]:
    """The paths of all Python files, from any of the folders above them."""
    paths = [path.relative_to(ROOT).parts for path in PROGRAMS]
    return frozenset("/".join(parts[start:]) for parts in paths for start in range(len(parts)))


def text_of(path: Path) -> str:
    """A page without its listings, or a source file; code itself has no backticks."""
    text = path.read_text(encoding="utf-8")
    return re.sub("```.*?```", "", text, flags=re.DOTALL) if path.suffix == ".md" else text


def unknown_references(text: str) -> list[str]:
    unknown = []
    for word in re.findall(r"`([^`\n]+)`", text):
        if re.fullmatch(r"[\w/]+\.py", word):
            unknown += [word] * (word not in known_files())
        elif re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(\(\))?", word):
            parts = word.removesuffix("()").split(".")
            named = [part for part in parts if re.search(r"\w_\w|[a-z][A-Z]", part)]
            unknown += [word] * any(part not in known_names() for part in named)
    return unknown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_refers_to_names_that_exist(page: Path) -> None:
    assert unknown_references(text_of(page)) == []


def test_docstrings_and_comments_refer_to_names_that_exist() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if unknown := unknown_references(text_of(path)):
            found[path.name] = unknown
    assert found == {}


def test_an_unknown_reference_is_found() -> None:
    text = "see `graph/names.py`, `graph/gone.py`, `KnowledgeGraph.triples`, `gone_function()`"
    assert unknown_references(text) == ["graph/gone.py", "gone_function()"]


def test_every_place_that_the_architecture_names_is_in_the_file_it_names() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    places = re.findall(r"`([\w/]+\.py)`: `(\w+)`", page)
    assert len(places) > 10
    for file, name in places:
        source = (PACKAGE / file).read_text(encoding="utf-8")
        assert re.search(rf"(def|class) {name}\b", source), (file, name)
