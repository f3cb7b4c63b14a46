"""What a release consists of agrees: versions, changes, files of the package."""

import re
import tomllib
from pathlib import Path

import nodepiece

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")

    assert PROJECT["project"]["version"] == nodepiece.__version__
    assert re.findall(r"^version: (.+)$", citation, flags=re.MULTILINE) == [nodepiece.__version__]


def test_the_changes_have_the_version_and_what_comes_next() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert re.findall(r"^## (\S+)", changes, flags=re.MULTILINE)[0] == "Unreleased"
    assert f"\n## {nodepiece.__version__}" in changes


def test_stored_folders_of_the_released_version_are_there() -> None:
    major, minor, _ = nodepiece.__version__.split(".")

    assert (ROOT / "tests" / "golden" / f"runs-{major}.{minor}").is_dir()


def test_every_file_of_the_package_is_packed() -> None:
    package = ROOT / "src" / "nodepiece"
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["nodepiece"]
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    files = {path for path in package.rglob("*") if path.is_file() and path.suffix != ".py"}
    cached = {path for path in files if "__pycache__" in path.parts}

    assert files - cached - packed == set()


def test_every_extra_that_development_needs_is_known() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    (needed,) = extras["dev"]

    names = needed.removeprefix("nodepiece[").removesuffix("]").split(",")
    assert [name for name in names if name not in extras] == []
