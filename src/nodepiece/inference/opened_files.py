"""The files that a run was opened from, to detect that they were replaced."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nodepiece.errors import InputError
from nodepiece.inference.computed_once import computed_once
from nodepiece.tasks.run_folder import CONFIG, MODEL
from nodepiece.tokenizer.storage import HEADER

Stamp = tuple[int, int, int, int]  # device, inode, size, time of the last change

STAMPED = (CONFIG, MODEL, f"vocabulary/{HEADER}")


@dataclass(frozen=True, eq=False)
class OpenedFiles:
    """A run folder as it was when it was opened."""

    folder: Path
    stamps: tuple[Stamp | None, ...]  # of STAMPED; None: there was no such file
    model: NDArray[np.uint8] | None  # the weights, mapped, so they do not change

    @staticmethod
    def of(folder: Path) -> "OpenedFiles":
        path = folder / MODEL
        is_there = path.is_file() and path.stat().st_size > 0
        return OpenedFiles(folder, _stamps(folder), np.memmap(path, mode="r") if is_there else None)

    @computed_once
    def model_hash(self) -> str:
        """SHA-256 of the weights that were opened."""
        if self.model is None:
            raise InputError(f"{self.folder} holds no trained model; train it first")
        return hashlib.sha256(self.model.data).hexdigest()

    def are_current(self) -> bool:
        """Whether the folder still has the same files."""
        return self.stamps == _stamps(self.folder)

    def check(self) -> None:
        """Raise an InputError if the folder holds another run now."""
        if self.are_current():
            return
        now = OpenedFiles.of(self.folder)
        if now.model is not None and now.model_hash == self.model_hash:
            return  # the same weights were written again
        raise InputError(
            f"the files of {self.folder} were replaced since it was opened; open it again with "
            f"nodepiece.load({str(self.folder)!r})"
        )


def _stamps(folder: Path) -> tuple[Stamp | None, ...]:
    return tuple(_stamp(folder / name) for name in STAMPED)


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
