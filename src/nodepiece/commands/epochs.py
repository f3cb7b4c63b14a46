"""Progress of training: epochs done, loss and time left."""

from time import perf_counter
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from nodepiece.commands.console import err
from nodepiece.commands.tables import SHARES

if TYPE_CHECKING:
    from nodepiece.training.checkpoint import Progress as TrainingProgress

SECONDS_BETWEEN_LINES = 10.0
STEPS_BETWEEN_UPDATES = 20


class EpochProgress:
    """Progress as a bar on a terminal, elsewhere as a line for the first and the last epoch and
    at most every ten seconds in between.
    """

    def __init__(self, num_epochs: int) -> None:
        self.num_epochs = num_epochs
        self.is_under_way = False  # between the first step and the end of the last epoch
        self.start = self.last_line = 0.0
        self.first_epoch = 0
        self.bar = Progress(
            TextColumn("epoch {task.completed:.0f}/{task.total:.0f}"),
            BarColumn(bar_width=20),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=err,
            transient=True,
        )
        self.task = self.bar.add_task("", total=num_epochs)

    def __enter__(self) -> "EpochProgress":
        return self

    def __exit__(self, *error: object) -> None:
        self._stop_bar()

    def log(self, sentence: str) -> None:
        """Print a sentence before the first epoch or after the last."""
        self.is_under_way = False
        self._stop_bar()
        err.print(sentence, soft_wrap=True)

    def on_step(self, epoch: int, done: int, total: int) -> None:
        if not self.is_under_way:
            self.is_under_way, self.start, self.first_epoch = True, perf_counter(), epoch
            if err.is_terminal:
                self.bar.start()
        if done % STEPS_BETWEEN_UPDATES == 0 or done == total:
            self.bar.update(self.task, completed=epoch + done / total)

    def on_epoch(self, record: dict[str, Any], progress: "TrainingProgress") -> None:
        epoch, text = record["epoch"], describe(record)
        is_last = epoch == self.num_epochs
        self.bar.update(self.task, completed=epoch, description=text)
        now = perf_counter()
        if not err.is_terminal and (now - self.last_line > SECONDS_BETWEEN_LINES or is_last):
            self.last_line = now
            left = (now - self.start) / (epoch - self.first_epoch) * (self.num_epochs - epoch)
            ending = "" if is_last else f"; {left:.0f} s left"
            err.print(f"epoch {epoch}/{self.num_epochs}: {text}{ending}", soft_wrap=True)
        if is_last:
            self.is_under_way = False
            self._stop_bar()

    def _stop_bar(self) -> None:
        if self.bar.live.is_started:  # else it would print an empty line
            self.bar.stop()


def describe(record: dict[str, Any]) -> str:
    """The loss of an epoch, and its validation scores if it had a validation."""
    found = [
        f"{SHARES[key]} {record[f'valid_{key}']:.4f}"
        for key in SHARES
        if f"valid_{key}" in record and key not in ("hits@1", "hits@3")
    ]
    found[:1] = [f"valid {first}" for first in found[:1]]
    return ", ".join([f"loss {record['loss']:.4f}", *found])
