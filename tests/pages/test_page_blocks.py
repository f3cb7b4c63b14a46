"""Every code block of the README and the documentation runs, and prints what the page shows.

The blocks of the tutorial run first, in a folder that has `src` as a clone does; those of every
other page run in a copy of what the tutorial left. `blocks.py` says how a block is marked.
"""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest
from tests.pages.blocks import Block, nodepiece_commands, read_blocks, sessions
from typer.main import get_command

from nodepiece.cli import app
from nodepiece.recipes import experiment_names
from nodepiece.settings import load_experiment

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SHELLS = ("sh", "bash", "shell")
ENTRY = re.compile(r"^[A-Z]+\[|^\w+: \w+ = field\(")  # a line for a registry, shown in a recipe


def is_run(block: Block) -> bool:
    if block.language not in (*SHELLS, "python", "console") or "not run" in block.directives:
        return False
    return not ENTRY.match(block.code)


BLOCKS = {page: read_blocks(page) for page in PAGES}
RUN = [page for page in PAGES if page != TUTORIAL and any(map(is_run, BLOCKS[page]))]


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def run_block(block: Block, folder: Path, environment: dict[str, str]) -> str:
    """What the block prints; its output is compared where the page shows it."""

    def run(*command: str) -> str:
        ran = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
        )
        assert ran.returncode == 0, f"{block}: {' '.join(command)}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    if block.language == "python":
        printed = run("nodepiece", "-c", block.code)
    elif block.language == "console":
        printed = ""
        for command, shown in sessions(block):
            output = run("bash", "-e", "-c", command)
            if "varies" not in block.directives:
                assert lines(output) == lines(shown), block
            printed += output
    else:
        printed = run("bash", "-e", "-c", block.code)
    assert block.directives.get("prints", "") in " ".join(printed.split()), f"{block}: {printed}"
    for name in block.directives.get("leaves", "").split():
        assert (folder / name).exists(), f"{block}: {name}"
    return printed


@contextmanager
def served(run: str, folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Serve a run, and give the address; pages show the default port, tests take a free one."""
    command = [sys.executable, "-m", "nodepiece", "serve", run, "--writable", "--port", "0"]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=PIPE, stderr=STDOUT, text=True
    ) as server:
        assert server.stdout is not None
        printed = ""
        for line in server.stdout:
            printed += line
            if found := re.search(r"http://[\d.]+:\d+", line):
                break
        else:
            raise AssertionError(printed)
        try:
            yield found.group()
        finally:
            server.terminate()


def run_page(page: Path, folder: Path, environment: dict[str, str]) -> None:
    """Run the blocks in order; a text block right after a program is what the program prints."""
    printed = None
    for block in BLOCKS[page]:
        if block.language == "text" and printed is not None:
            assert lines(printed) == lines(block.code), block
        printed = None
        if is_run(block) and "served" in block.directives:
            with served(block.directives["served"], folder, environment) as address:
                code = block.code.replace("http://127.0.0.1:8000", address)
                run_block(replace(block, code=code), folder, environment)
        elif is_run(block):
            output = run_block(block, folder, environment)
            printed = output if block.language == "python" else None


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory, page_environment: dict[str, str]) -> Path:
    """A folder in which the tutorial was followed word for word."""
    folder = tmp_path_factory.mktemp("tutorial") / "clone"
    folder.mkdir()
    (folder / "src").symlink_to(ROOT / "src")
    (folder / "examples").symlink_to(ROOT / "examples")
    run_page(TUTORIAL, folder, page_environment)
    return folder


def test_the_tutorial_leaves_a_run_that_answers(tutorial: Path) -> None:
    metrics = json.loads((tutorial / "run" / "metrics.json").read_text())

    assert 0 < metrics["mrr"] < 1


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run_after_the_tutorial(
    page: Path, tutorial: Path, page_environment: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "clone"
    shutil.copytree(tutorial, folder, symlinks=True)

    run_page(page, folder, page_environment)


NOT_RUN = [block for blocks in BLOCKS.values() for block in blocks if not is_run(block)]


@pytest.mark.parametrize(
    "block", [b for b in NOT_RUN if b.language in (*SHELLS, "console")], ids=str
)
def test_a_block_that_is_not_run_has_a_reason_and_options_that_exist(block: Block) -> None:
    assert block.directives["not run"]
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for name, *arguments in nodepiece_commands(block.code):
        if name.startswith("-"):
            continue
        command = commands[name]
        with command.make_context(name, [], resilient_parsing=True) as context:
            command.make_parser(context).parse_args(list(arguments))
        if name == "train" and "." not in arguments[0]:
            assert arguments[0] in experiment_names(), arguments[0]
    for module in re.findall(r"python -m (\w+(?:\.\w+)*)", block.code):
        path = ROOT.joinpath(*module.split("."))
        if module.split(".")[0] in ("scripts", "benchmarks", "tests"):
            assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    for target in re.findall(r"^make ([\w-]+)", block.code, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("block", [b for b in NOT_RUN if b.language == "python"], ids=str)
def test_a_program_that_is_not_run_has_a_reason_and_can_be_parsed(block: Block) -> None:
    assert block.directives.get("not run") or ENTRY.match(block.code), block
    ast.parse(block.code)


@pytest.mark.parametrize("block", [b for b in NOT_RUN if b.language == "toml"], ids=str)
def test_an_experiment_on_a_page_has_settings_that_exist(block: Block, tmp_path: Path) -> None:
    tomllib.loads(block.code)
    path = tmp_path / "experiment.toml"
    path.write_text(block.code, encoding="utf-8")
    load_experiment(str(path))


def test_every_block_has_a_language() -> None:
    without = [str(block) for block in NOT_RUN if not block.language]
    assert without == []


def test_directives_and_indented_blocks_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- not run: a GPU -->\n```sh\nls\n```\n- x\n\n  ```python\n  x = 1\n  ```\n")

    first, second = read_blocks(page)

    assert first.directives == {"not run": "a GPU"} and first.code == "ls\n" and first.line == 3
    assert second.code == "x = 1\n" and second.language == "python"


def test_commands_of_a_block_are_found_behind_torchrun_and_continued_lines() -> None:
    code = "torchrun -m nodepiece train x \\\n  -o y  # comment\nnodepiece plan z | head\n"

    assert list(nodepiece_commands(code)) == [["train", "x", "-o", "y"], ["plan", "z"]]
