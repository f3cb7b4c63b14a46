"""A stage imports only from earlier stages, and no file is a collection of utilities."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import nodepiece

PACKAGE = Path(nodepiece.__file__).parent
STAGES = (
    "errors",
    "threads",
    "locks",
    "files",
    "renamed",
    "compiled",
    "graph",
    "data",
    "tokenizer",
    "encoders",
    "decoders",
    "evaluation",  # before training, which is validated while it runs
    "training",
    "recipes",  # the experiments that come along, as tables of settings
    "settings",  # the settings of all stages above; tasks are given them as one record
    "tasks",
    "inference",
    "engines",  # only commands import it
    "report",
    "serving",  # only its command, and `nodepiece.connect`, import it
    "commands",
    "cli",
)
FREE = ("__init__", "__main__")  # entry points import from all stages
FORBIDDEN_NAMES = ("utils", "util", "base", "common", "helpers", "misc")
FILES = sorted(PACKAGE.rglob("*.py"))


def stage_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_modules(tree: ast.Module, path: Path) -> Iterator[str]:
    """Every module named in an import anywhere in the file, functions and type checks included."""
    package = ("nodepiece", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, *filter(None, [node.module])))
            yield from (f"{module}.{alias.name}" for alias in node.names)


def later_imports(tree: ast.Module, path: Path) -> list[str]:
    """Imports of `nodepiece` that point from the stage of the file to a later one."""
    own = STAGES.index(stage_of(path))
    modules = [name.split(".") for name in imported_modules(tree, path)]
    inner = [parts for parts in modules if parts[0] == "nodepiece" and len(parts) > 1]
    return [".".join(parts) for parts in inner if parts[1] in STAGES[own + 1 :]]


def encoder_checks(tree: ast.Module) -> list[int]:
    """Line numbers of isinstance checks for a class of encoders."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    checks = (c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "isinstance")
    return [c.lineno for c in checks if ast.unparse(c.args[1]).endswith(("Embedding", "Encoder"))]


def uses_of_print(tree: ast.Module) -> list[int]:
    """Line numbers of calls of the built-in print."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [c.lineno for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"]


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


all_files = pytest.mark.parametrize(
    "path", FILES, ids=[str(path.relative_to(PACKAGE)) for path in FILES]
)


@all_files
def test_every_file_belongs_to_a_known_stage(path: Path) -> None:
    assert stage_of(path) in STAGES + FREE, "add the new stage to STAGES, in its place"


@all_files
def test_no_stage_imports_from_a_later_one(path: Path) -> None:
    if stage_of(path) not in FREE:
        assert later_imports(parse(path), path) == []


@all_files
def test_every_file_and_folder_has_a_subject(path: Path) -> None:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    assert not set(parts) & set(FORBIDDEN_NAMES)


@all_files
def test_only_the_command_line_prints(path: Path) -> None:
    if stage_of(path) != "cli":
        assert uses_of_print(parse(path)) == []


@all_files
def test_encoders_are_used_through_one_interface_outside_their_folder(path: Path) -> None:
    if stage_of(path) != "encoders":
        assert encoder_checks(parse(path)) == []


@pytest.mark.parametrize(
    "line",
    [
        "import nodepiece.tokenizer.tokens",
        "from nodepiece.training import loop",
        "from nodepiece import cli",
        "from ..encoders.mlp import MLPEncoder",
        "from .. import settings",
        "def late():\n    from nodepiece.data import read",
    ],
)
def test_an_import_from_a_later_stage_is_seen_however_it_is_written(line: str) -> None:
    assert later_imports(ast.parse(line), PACKAGE / "graph" / "nearest.py")


@pytest.mark.parametrize(
    "line",
    [
        "import numpy.data",
        "from nodepiece.errors import InputError",
        "from nodepiece.graph.arrays import IntArray",
        "from .arrays import IntArray",
        "from . import arrays",
    ],
)
def test_other_imports_are_free(line: str) -> None:
    assert not later_imports(ast.parse(line), PACKAGE / "graph" / "nearest.py")


def test_a_check_for_a_class_of_encoders_is_seen() -> None:
    lines = "x = isinstance(a, str)\ny = not isinstance(model.nodes, LookupEmbedding)"
    assert encoder_checks(ast.parse(lines)) == [2]


def test_a_print_is_seen_and_a_method_of_that_name_is_not() -> None:
    assert uses_of_print(ast.parse("x = 1\nprint(x)\nconsole.print(x)")) == [2]
