"""Curves for TensorBoard, an optional dependency."""

from pathlib import Path
from typing import Any

from nodepiece.errors import MissingExtra


class TensorBoard:
    """Writes every number of an epoch's record as a curve."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtra("this needs TensorBoard", "tensorboard") from error
        self.writer = SummaryWriter(folder)

    def on_step(self, epoch: int, done: int, total: int) -> None:
        pass

    def on_epoch(self, record: dict[str, Any], progress: object) -> None:
        for name, value in record.items():
            if name != "epoch":
                self.writer.add_scalar(name, value, record["epoch"])
        self.writer.flush()
