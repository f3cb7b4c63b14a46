"""Progress of training in Python: log messages, a function of the user, a bar in a notebook."""

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

from nodepiece.inference.given_data import LoggedEpochs
from nodepiece.training.checkpoint import Progress
from nodepiece.training.trainer import Trainer

SECONDS_BETWEEN_REPORTS = 1.0
SCORES = {"valid_mrr": "MRR", "valid_hits@10": "Hits@10"}  # that a bar shows

ProgressCallback = Callable[[dict[str, Any]], None]


class TrainProgress(LoggedEpochs):
    """Logs epochs; calls a function about once a second, and after every epoch or validation.

    Within an epoch the function gets its number, the number of steps so far and in an epoch, the
    loss, facts a second, and seconds since the start and until the end; after it, the record of
    history.jsonl as well. In a notebook the same is shown as a bar.
    """

    def __init__(
        self,
        callback: ProgressCallback | None,
        *,
        minutes: float | None,
        bar: "NotebookBar | None" = None,
    ) -> None:
        self.minutes, self.bar = minutes, bar
        self.functions = [each for each in (callback, bar) if each is not None]
        self.created, self.last = perf_counter(), 0.0
        self.first_step = self.first_epoch = self.step_start = 0.0
        self.steps_per_epoch = 1
        self.trainer: Trainer[Any] | None = None

    def on_start(self, trainer: Trainer[Any]) -> None:
        self.trainer = trainer

    def log(self, sentence: str) -> None:
        super().log(sentence)
        if self.bar is not None:
            self.bar.show(sentence)

    def on_step(self, epoch: int, done: int, total: int) -> None:
        now, step = perf_counter(), epoch * total + done
        if not self.is_under_way:
            self.step_start, self.first_step, self.first_epoch = now, step - 1, (step - 1) / total
        super().on_step(epoch, done, total)
        self.steps_per_epoch = total
        if self.functions and self.trainer and now - self.last > SECONDS_BETWEEN_REPORTS:
            self._report({"epoch": epoch + 1, "step": step, "loss": self.trainer.mean_loss}, now)

    def on_epoch(self, record: dict[str, Any], progress: Progress) -> None:
        super().on_epoch(record, progress)
        self._report({"step": progress.num_steps, **record}, perf_counter())

    def _report(self, record: dict[str, Any], now: float) -> None:
        self.last = now
        step, rate = record["step"], 0.0
        if self.trainer is not None:
            number = (step - self.first_step) * self.trainer.batches.facts_per_step
            rate = number / max(1e-9, now - self.step_start)
        whole = {
            **record,
            "steps_per_epoch": self.steps_per_epoch,
            "facts_per_second": rate,
            "seconds": now - self.created,
            "seconds_left": self._seconds_left(step / self.steps_per_epoch, now),
        }
        for function in self.functions:
            function(whole)

    def _seconds_left(self, epochs_done: float, now: float) -> float:
        if self.minutes is not None or self.trainer is None:
            return max(0.0, 60 * (self.minutes or 0.0) - (now - self.created))
        each = (now - self.step_start) / max(1e-9, epochs_done - self.first_epoch)
        return max(0.0, each * (self.trainer.settings.epochs - epochs_done))


class NotebookBar:
    """A bar in the output of a notebook's cell; needs nothing but the kernel."""

    def __init__(self) -> None:
        self.handle: Any = None
        self.share, self.scores = 0.0, ""

    def __call__(self, record: dict[str, Any]) -> None:
        self.share = record["seconds"] / max(1e-9, record["seconds"] + record["seconds_left"])
        scores = [f"{name} {record[key]:.4f}" for key, name in SCORES.items() if key in record]
        self.scores = f", valid {', '.join(scores)}" if scores else self.scores
        self.show(
            f"epoch {record['epoch']}, step {record['step']:,}, loss {record['loss']:.4f}"
            f"{self.scores}, {record['facts_per_second']:,.0f} facts/s, "
            f"{record['seconds_left']:.0f} s left"
        )

    def show(self, text: str) -> None:
        """Show a text beside the bar, in place of the one before."""
        from html import escape

        from IPython.display import display

        page = (
            f'<div class="nodepiece-progress"><progress value="{self.share:.3f}"></progress> '
            f"{escape(text)}</div>"
        )
        content = {"text/plain": text, "text/html": page}
        if self.handle is None:
            self.handle = display(content, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self.handle.update(content, raw=True)


def in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return getattr(shell, "kernel", None) is not None
