"""Progress of `nodepiece.train`: a callback, a bar in a notebook, and nothing unless asked for."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import nodepiece
from nodepiece.inference import train_progress

EPOCHS = "training.epochs=2"
SETTINGS = ("training.validate_every=1", "encoder.dim=8", "graph.layers=0")


def train(folder: Path, minutes: float | None = None, **options: Any) -> nodepiece.Run:
    chosen = SETTINGS if minutes is not None else (*SETTINGS, EPOCHS)
    return nodepiece.train(
        "countries", folder, overrides=chosen, minutes=minutes, device="cpu", **options
    )


@pytest.fixture
def every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_progress, "SECONDS_BETWEEN_REPORTS", -1.0)


def test_a_callback_gets_every_step_and_what_was_validated(
    tmp_path: Path, every_step: None
) -> None:
    records: list[dict[str, Any]] = []

    train(tmp_path / "run", callback=records.append)

    steps, epochs = (
        [each for each in records if ("valid_mrr" in each) == validated]
        for validated in (False, True)
    )
    total = steps[0]["steps_per_epoch"]
    assert [each["step"] for each in steps] == list(range(1, 2 * total + 1))
    assert [(each["epoch"], each["step"]) for each in epochs] == [(1, total), (2, 2 * total)]
    assert epochs[1]["seconds_left"] == 0 < epochs[0]["seconds_left"]
    assert all(each["loss"] > 0 and each["facts_per_second"] > 0 for each in records)


def test_with_minutes_a_callback_gets_the_time_that_is_left(
    tmp_path: Path, every_step: None
) -> None:
    records: list[dict[str, Any]] = []

    train(tmp_path / "run", minutes=0.02, callback=records.append)

    assert 0 < records[0]["seconds_left"] + records[0]["seconds"] <= 1.2001


class Kernel(ModuleType):
    """IPython as far as a bar needs it; records what is displayed."""

    def __init__(self) -> None:
        super().__init__("IPython")
        self.shown: list[str] = []
        self.num_bars = 0

    def get_ipython(self) -> Any:
        return SimpleNamespace(kernel=self)

    def display(self, content: dict[str, str], *, raw: bool, display_id: bool) -> "Kernel":
        self.num_bars += 1
        self.update(content, raw=raw)
        return self

    def update(self, content: dict[str, str], *, raw: bool) -> None:
        self.shown.append(content["text/html"])


def test_a_notebook_shows_one_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every_step: None
) -> None:
    kernel = Kernel()
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", kernel)

    train(tmp_path / "run")

    assert kernel.num_bars == 1
    assert all('class="nodepiece-progress"' in each for each in kernel.shown)
    assert any("tokenizing 831 nodes" in each for each in kernel.shown)
    assert any("epoch 2, step" in each and "valid MRR" in each for each in kernel.shown)
    assert "training ended after epoch 2: all epochs done" in kernel.shown[-1]
    assert 'value="1.000"' in kernel.shown[-1]


def test_training_in_python_prints_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not train_progress.in_notebook()

    train(tmp_path / "run")

    assert capfd.readouterr() == ("", "")


def test_the_columns_of_a_file_are_given_as_an_argument(tmp_path: Path) -> None:
    path = tmp_path / "graph.csv"
    path.write_text("a,b,likes\nb,c,likes\nc,a,likes\n")

    run = nodepiece.train(path, tmp_path / "run", columns=(0, 2, 1), minutes=0.01, device="cpu")

    assert run.relation_vectors().names == ["likes", "inverse of likes"]
    assert "columns = [" in (tmp_path / "run" / "config.toml").read_text()
