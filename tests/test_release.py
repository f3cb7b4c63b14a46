"""What a release consists of agrees: versions, changes, files of the package."""

import re
import tomllib
from pathlib import Path

from scripts import try_versions

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


def test_the_pythons_of_the_package_are_those_that_are_tested() -> None:
    classifiers = PROJECT["project"]["classifiers"]
    prefix = "Programming Language :: Python :: 3."
    pythons = [f"3.{each.removeprefix(prefix)}" for each in classifiers if each.startswith(prefix)]
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"python: \[(.+)\]", workflow)

    assert re.findall(r"[\d.]+", listed) == pythons
    assert PROJECT["project"]["requires-python"] == f">={pythons[0]}"
    assert "versions: [lowest, newest]" in workflow


def test_every_dependency_has_a_lower_bound() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    tested = [each for name in try_versions.EXTRAS.split(",") for each in extras[name]]
    needed = [*PROJECT["project"]["dependencies"], *tested]

    assert [each for each in needed if not re.search(r">=\d|==\d", each)] == []


def test_the_tests_of_versions_are_there() -> None:
    assert [path for path in try_versions.TESTS if not (ROOT / path).exists()] == []
