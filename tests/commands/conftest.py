"""Running the command line inside the test, and a small graph to run it on."""

import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from nodepiece.cli import main


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


Nodepiece = Callable[..., Outcome]


@pytest.fixture
def nodepiece(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Nodepiece:
    """A function that runs a command; it returns the exit status and the printed text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NODEPIECE_DATA", raising=False)

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["nodepiece", *map(str, arguments)])
        status = 0
        handler = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the runner ignores it
        try:
            main()
        except SystemExit as stop:
            status = int(stop.code or 0)
        finally:
            signal.signal(signal.SIGINT, handler)
        return Outcome(status, *capfd.readouterr())

    return run


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    """ada and bob know each other and cy; dan and eve are apart from them."""
    path = tmp_path / "facts.tsv"
    path.write_text(
        "ada\tknows\tbob\n"
        "bob\tknows\tada\n"
        "bob\tknows\tcy\n"
        "cy\tlikes\tada\n"
        "dan\tlikes\teve\n"
        "ada\tknows\tbob\n"  # stated twice
    )
    return path


SMALL = ("--anchors", 1, "--anchors-per-node", 1, "--relations-per-node", 3, "--mix", "degree=1")


@pytest.fixture
def vocabulary(nodepiece: Nodepiece, facts: Path, tmp_path: Path) -> Path:
    """A vocabulary of `facts`, with bob or ada, the first of them, as the only anchor."""
    folder = tmp_path / "vocabulary"
    assert nodepiece("tokenize", facts, "-o", folder, *SMALL).status == 0
    return folder


FEW_EPOCHS = ("training.epochs=2", "training.validate_every=1", "encoder.dim=16")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the graph of countries, trained for two epochs; tests must not change it."""
    import nodepiece

    folder = tmp_path_factory.mktemp("trained") / "run"
    nodepiece.train("countries", folder, overrides=FEW_EPOCHS, device="cpu")
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may damage."""
    return shutil.copytree(trained, tmp_path / "run")
