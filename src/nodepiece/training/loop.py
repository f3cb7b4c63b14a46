"""Training from the first epoch to the last: validation, best weights, checkpoints, history."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.training.checkpoint import Progress, load_checkpoint, save_checkpoint
from nodepiece.training.trainer import Trainer, learning_rate

Metrics = dict[str, float]


class Callback(Protocol):
    """Called while a model is trained: a progress bar, TensorBoard, a history file."""

    def on_step(self, epoch: int, done: int, total: int) -> None: ...

    def on_epoch(self, record: dict[str, Any], progress: Progress) -> None: ...


@dataclass(frozen=True)
class Stopping:
    """Why training ended."""

    reason: str
    interrupted: bool = False


def fit(
    trainer: Trainer[Any],
    *,
    checkpoint: Path,
    validate: Callable[[], Metrics],
    before_epoch: Callable[[int], None],
    callbacks: list[Callback],
    should_stop: Callable[[], bool],
    resume: bool,
) -> tuple[Progress, Stopping]:
    """Train to the end; the model then has the best weights, or the last without validation.

    `before_epoch` may change the tokens. `should_stop` is called after every epoch; if it returns
    True, a checkpoint is written at once and training ends, to be resumed later.
    """
    settings, progress = trainer.settings, Progress()
    best: dict[str, Tensor] | None = None
    if resume and checkpoint.exists():
        progress, best = load_checkpoint(checkpoint, trainer)
    last_saved = perf_counter()
    while progress.epoch < settings.epochs and not _is_patience_over(trainer, progress):
        start = perf_counter()
        epoch = progress.epoch
        trainer.start_epoch(epoch)
        before_epoch(epoch)
        loss = trainer.run_epoch(epoch, partial(_step, callbacks, epoch))
        record = {"epoch": epoch + 1, "loss": loss, "learning_rate": learning_rate(settings, epoch)}
        progress.epoch += 1
        is_last = progress.epoch == settings.epochs
        if settings.validate_every and (is_last or progress.epoch % settings.validate_every == 0):
            record |= validation_record(validate())
            best = _keep_best(trainer, progress, record, best)
        progress.seconds += perf_counter() - start
        record["seconds"] = round(progress.seconds, 3)
        progress.history.append(record)
        for callback in callbacks:
            callback.on_epoch(record, progress)
        if trainer.processes.any(should_stop()):
            save_checkpoint(checkpoint, trainer, progress, best)
            return progress, Stopping("interrupted", interrupted=True)
        if perf_counter() - last_saved > settings.checkpoint_seconds and not is_last:
            save_checkpoint(checkpoint, trainer, progress, best)
            last_saved = perf_counter()
    save_checkpoint(checkpoint, trainer, progress, best)
    if best is not None:
        trainer.model.load_state_dict(best)
    if _is_patience_over(trainer, progress):
        return progress, Stopping(f"no improvement in {progress.since_best} validations")
    return progress, Stopping("all epochs done")


def _is_patience_over(trainer: Trainer[Any], progress: Progress) -> bool:
    patience = trainer.settings.patience
    return patience > 0 and progress.since_best >= patience


def validation_record(metrics: Metrics) -> Metrics:
    """Validation metrics with the prefix "valid_", as the history has them."""
    return {
        name if name.startswith("train_") else f"valid_{name}": value
        for name, value in metrics.items()
    }


def _step(callbacks: list[Callback], epoch: int, done: int, total: int) -> None:
    for callback in callbacks:
        callback.on_step(epoch, done, total)


def _keep_best(
    trainer: Trainer[Any],
    progress: Progress,
    record: dict[str, Any],
    best: dict[str, Tensor] | None,
) -> dict[str, Tensor] | None:
    name = f"valid_{trainer.settings.metric}"
    if name not in record:
        known = ", ".join(key.removeprefix("valid_") for key in record if key.startswith("valid_"))
        raise InputError(f"training.metric = {trainer.settings.metric!r} is not one of {known}")
    if progress.best_metric is not None and record[name] <= progress.best_metric:
        progress.since_best += 1
        return best
    progress.best_metric, progress.best_epoch = record[name], progress.epoch
    progress.since_best = 0
    return {key: value.detach().clone() for key, value in trainer.model.state_dict().items()}
