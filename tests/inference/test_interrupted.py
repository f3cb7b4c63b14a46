"""Ctrl-C in Python: training leaves a checkpoint and weights that can be used."""

import logging
import signal
from pathlib import Path

import pytest

import nodepiece
from nodepiece.inference.given_data import LoggedEpochs

SETTINGS = (
    "training.epochs=2",
    "training.validate_every=1",
    "encoder.dim=8",
    "decoder.kind=distmult",
)


def train(folder: Path, *, resume: bool = False) -> nodepiece.Run:
    return nodepiece.train("countries", folder, overrides=SETTINGS, device="cpu", resume=resume)


def interrupt_at(monkeypatch: pytest.MonkeyPatch, moment: tuple[int, int]) -> None:
    on_step = LoggedEpochs.on_step

    def press(self: LoggedEpochs, epoch: int, done: int, total: int) -> None:
        on_step(self, epoch, done, total)
        if (epoch, done) == moment:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(LoggedEpochs, "on_step", press)


def test_an_interrupt_in_python_leaves_a_run_that_answers_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        interrupt_at(patch, (1, 3))
        with pytest.raises(KeyboardInterrupt, match="continue it with resume=True"):
            train(tmp_path / "run")

    with caplog.at_level(logging.WARNING, "nodepiece"):
        stopped = nodepiece.load(tmp_path / "run")
    assert "its weights are the best on validation so far, of step" in caplog.text
    assert len(stopped.predict(head="Kenya", relation="borders", top=3)) == 3
    assert stopped.evaluate("valid").scores["count"] > 0

    caplog.clear()
    resumed = train(tmp_path / "run", resume=True)
    assert "stopped before the end" not in caplog.text
    whole = train(tmp_path / "whole")
    assert resumed.evaluate("test").scores == whole.evaluate("test").scores
