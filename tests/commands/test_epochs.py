"""What a terminal shows of training, and what stays there."""

from io import StringIO

import pytest
from rich.console import Console

from nodepiece.commands import epochs
from nodepiece.commands.epochs import EpochProgress
from nodepiece.training.checkpoint import Progress


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> StringIO:
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=width, markup=False, highlight=False)
    monkeypatch.setattr(epochs, "err", console)
    return file


def train(num_epochs: int, minutes: float | None = None) -> None:
    """Two steps an epoch; every second epoch has a validation."""
    with EpochProgress(num_epochs, minutes=minutes) as shown:
        for epoch in range(num_epochs):
            for step in (1, 2):
                shown.on_step(epoch, step, 2)
            valid = {"valid_mrr": 0.25, "valid_hits@10": 0.5} if epoch % 2 else {}
            shown.on_epoch({"epoch": epoch + 1, "loss": 1.5, **valid}, Progress())
        shown.log("training ended")


@pytest.mark.parametrize("minutes", [None, 1.0])
@pytest.mark.parametrize("width", [80, 160])
def test_the_last_epoch_stays_on_the_terminal(
    width: int, minutes: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = terminal(monkeypatch, width)

    train(4, minutes)

    name = "epoch 4/4" if minutes is None else "epoch 4"
    lines = file.getvalue().splitlines()
    assert lines[-1] == "training ended"
    assert lines[-2].endswith(f"{name}: loss 1.5000, valid MRR 0.2500, Hits@10 0.5000")


def test_epochs_with_a_validation_stay_above_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "SECONDS_BETWEEN_LINES", -1.0)
    file = terminal(monkeypatch, 80)

    train(5)

    text = file.getvalue()
    assert [text.count(f"epoch {n}/5: loss") for n in range(1, 6)] == [0, 1, 0, 1, 1]
