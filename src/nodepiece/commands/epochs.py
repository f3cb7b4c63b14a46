"""Progress of training: steps, epochs, loss, facts a second and time left."""

from time import perf_counter
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from nodepiece.commands.console import err
from nodepiece.commands.tables import SHARES

if TYPE_CHECKING:
    from nodepiece.training.checkpoint import Progress as TrainingProgress
    from nodepiece.training.trainer import Trainer

SECONDS_BETWEEN_LINES = 10.0  # of epochs
SECONDS_BETWEEN_STEPS = 30.0  # lines of steps, in a long epoch
SECONDS_BETWEEN_UPDATES = 1.0  # of the bar


class EpochProgress:
    """Progress as a bar on a terminal, with lines above it for epochs with a validation and for the
    last one; elsewhere as a line for the first and the last epoch. Lines of other epochs are at
    least ten seconds apart, and within a long one there is a line every half minute.
    """

    def __init__(self, num_epochs: int, *, minutes: float | None = None) -> None:
        self.num_epochs = num_epochs
        self.minutes, self.created = minutes, perf_counter()
        self.is_under_way = False  # between the first step and the end of the last epoch
        self.start = self.last_line = self.last_update = 0.0
        self.first_done = 0.0  # epochs done before, and the number of steps since
        self.num_steps = 0
        self.trainer: Trainer[Any] | None = None
        self.last_epoch = ""  # its line, if the bar was the only place that showed it
        of_epochs = "epoch {task.completed:.0f}/{task.total:.0f}"
        self.bar = Progress(
            TextColumn(of_epochs if minutes is None else "{task.completed:.0f}/{task.total:.0f} s"),
            BarColumn(bar_width=20),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=err,
            transient=True,
        )
        total = num_epochs if minutes is None else 60 * minutes
        self.task = self.bar.add_task("", total=total)

    def __enter__(self) -> "EpochProgress":
        return self

    def __exit__(self, *error: object) -> None:
        self._stop_bar()

    def log(self, sentence: str) -> None:
        """Print a sentence before the first epoch or after the last."""
        self.is_under_way = False
        self._stop_bar()
        err.print(sentence, soft_wrap=True)

    def on_start(self, trainer: "Trainer[Any]") -> None:
        self.trainer = trainer

    def on_step(self, epoch: int, done: int, total: int) -> None:
        now = perf_counter()
        if not self.is_under_way:
            self.is_under_way, self.start, self.num_steps = True, now, 0
            self.last_line = self.last_update = now
            self.first_done = epoch + (done - 1) / total
            if err.is_terminal:
                self.bar.start()
        self.num_steps += 1
        if err.is_terminal:
            if now - self.last_update > SECONDS_BETWEEN_UPDATES or done == total:
                self.last_update = now
                text = self._describe_step(done, total, now)
                is_timed = self.minutes is not None
                completed = now - self.created if is_timed else epoch + done / total
                self.bar.update(self.task, completed=completed, description=text)
        elif now - self.last_line > SECONDS_BETWEEN_STEPS and done < total:
            self.last_line = now
            text = self._describe_step(done, total, now)
            left = self._seconds_left(epoch + done / total, now)
            err.print(f"{self._name(epoch + 1)}: {text}; {left:.0f} s left")

    def _describe_step(self, done: int, total: int, now: float) -> str:
        """Such as "step 120/700, loss 0.4512, 12,400 facts/s"."""
        text = f"step {done:,}/{total:,}"
        if self.trainer is None:
            return text
        rate = self.num_steps * self.trainer.batches.facts_per_step / max(1e-9, now - self.start)
        return f"{text}, loss {self.trainer.mean_loss:.4f}, {rate:,.0f} facts/s"

    def _name(self, epoch: int) -> str:
        return f"epoch {epoch}" if self.minutes is not None else f"epoch {epoch}/{self.num_epochs}"

    def _seconds_left(self, done: float, now: float) -> float:
        if self.minutes is not None:
            return max(0.0, 60 * self.minutes - (now - self.created))
        return (now - self.start) / max(1e-9, done - self.first_done) * (self.num_epochs - done)

    def on_epoch(self, record: dict[str, Any], progress: "TrainingProgress") -> None:
        epoch, text = record["epoch"], describe(record)
        now = perf_counter()
        is_last = self.minutes is None and epoch == self.num_epochs
        completed = epoch if self.minutes is None else now - self.created
        self.bar.update(self.task, completed=completed, description=text)
        is_first = epoch - self.first_done <= 1
        is_late = now - self.last_line > SECONDS_BETWEEN_LINES
        if err.is_terminal:
            self.last_epoch = f"{self._name(epoch)}: {text}"
            if is_late and "valid" in text:  # the rest is in the bar
                self._print_last_epoch(now)
        elif is_late or is_first or is_last:
            self.last_line = now
            ending = "" if is_last else f"; {self._seconds_left(epoch, now):.0f} s left"
            err.print(f"{self._name(epoch)}: {text}{ending}", soft_wrap=True)
        if is_last:
            self.is_under_way = False
            self._stop_bar()

    def _print_last_epoch(self, now: float) -> None:
        self.last_line = now
        err.print(self.last_epoch, soft_wrap=True)
        self.last_epoch = ""

    def _stop_bar(self) -> None:
        if self.bar.live.is_started:  # else it would print an empty line
            self.bar.stop()
            if self.last_epoch:  # it was in the bar, which is gone
                self._print_last_epoch(perf_counter())


def describe(record: dict[str, Any]) -> str:
    """The loss of an epoch, and its validation scores if it had a validation."""
    found = [
        f"{SHARES[key]} {record[f'valid_{key}']:.4f}"
        for key in SHARES
        if f"valid_{key}" in record and key not in ("hits@1", "hits@3")
    ]
    found[:1] = [f"valid {first}" for first in found[:1]]
    return ", ".join([f"loss {record['loss']:.4f}", *found])
