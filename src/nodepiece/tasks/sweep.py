"""Runs of one experiment over a grid of |A|, the number of anchors, and k, anchors per node.

Each run is a process of its own, several side by side, with a folder and a log of its own. A sweep
that was stopped continues: finished runs are kept, others resume from their checkpoints.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import IO, Any

from nodepiece.errors import InputError
from nodepiece.settings import load_experiment

METRICS = "metrics.json"
CHILD = "nodepiece.tasks.child"  # a command that ends with this process
SECONDS_BETWEEN_LOOKS = 0.2
OnDone = Callable[["SweepCell", bool], None]  # a cell, and whether its run succeeded


@dataclass(frozen=True)
class SweepCell:
    """One combination of the grid."""

    num_anchors: int
    anchors_per_node: int

    @property
    def name(self) -> str:
        return f"{self.num_anchors}-{self.anchors_per_node}"

    @property
    def overrides(self) -> tuple[str, str]:
        return (
            f"tokenizer.num_anchors={self.num_anchors}",
            f"tokenizer.anchors_per_node={self.anchors_per_node}",
        )


@dataclass(frozen=True)
class SweepSettings:
    """What is swept, and how."""

    experiment: str  # a name or a TOML file
    folder: Path  # of all runs
    anchors: tuple[int, ...]
    per_node: tuple[int, ...]
    overrides: tuple[str, ...] = ()
    device: str | None = None
    data: Path | None = None
    jobs: int = 1  # runs side by side

    @property
    def cells(self) -> list[SweepCell]:
        """All combinations in which a node has no more anchors than there are."""
        return [SweepCell(a, k) for a in self.anchors for k in self.per_node if k <= a]

    def check(self) -> None:
        """Refuse what could not be trained, before anything is started."""
        if not self.cells:
            raise InputError("every k is larger than every |A|; give a smaller --anchors-per-node")
        if self.jobs < 1:
            raise InputError(f"a sweep runs at least 1 job at a time, not {self.jobs}")
        for cell in self.cells:
            settings = load_experiment(self.experiment, (*self.overrides, *cell.overrides))
        if settings.task == "node-classification":
            raise InputError(f"{settings.name} classifies nodes; a sweep draws MRR and Hits@10")
        other = self.folder / "sweep.json"
        if other.is_file():
            known = json.loads(other.read_text(encoding="utf-8"))
            if (known["experiment"], known["overrides"]) != (settings.name, list(self.overrides)):
                raise InputError(
                    f"{self.folder} has a sweep of {known['experiment']} with other settings; "
                    "choose another folder"
                )

    def command(self, cell: SweepCell) -> list[str]:
        """The command that trains a cell, from its checkpoint if there is one."""
        words = ["train", self.experiment, "-o", str(self.folder / cell.name), "--resume"]
        for override in (*self.overrides, *cell.overrides):
            words += ["--set", override]
        words += [] if self.device is None else ["--device", self.device]
        words += [] if self.data is None else ["--data", str(self.data)]
        return words

    def metrics(self, cell: SweepCell) -> dict[str, Any] | None:
        """The metrics of a finished cell."""
        path = self.folder / cell.name / METRICS
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def run_sweep(settings: SweepSettings, *, on_done: OnDone) -> list[SweepCell]:
    """Train what is not finished, some runs side by side; returns the cells that failed.

    An interrupt is passed on to the runs, which save and stop; so they do if this process ends.
    """
    settings.check()
    settings.folder.mkdir(parents=True, exist_ok=True)
    waiting = [cell for cell in settings.cells if settings.metrics(cell) is None]
    running: list[RunningCell] = []
    failed: list[SweepCell] = []
    try:
        while waiting or running:
            while waiting and len(running) < settings.jobs:
                running.append(RunningCell.start(waiting.pop(0), settings))
            for each in [each for each in running if each.process.poll() is not None]:
                running.remove(each)
                succeeded = each.finish()
                failed += [] if succeeded else [each.cell]
                on_done(each.cell, succeeded)
            sleep(SECONDS_BETWEEN_LOOKS if running else 0)
    finally:
        stop(running)
    return failed


@dataclass(frozen=True, eq=False)
class RunningCell:
    """A run that is training, and the file of what it prints."""

    cell: SweepCell
    process: "subprocess.Popen[bytes]"
    output: IO[bytes]

    @staticmethod
    def start(cell: SweepCell, settings: SweepSettings) -> "RunningCell":
        output = (settings.folder / f"{cell.name}.log").open("ab")
        process = subprocess.Popen(
            [sys.executable, "-m", CHILD, str(os.getpid()), *settings.command(cell)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C reaches it from here, once
        )
        return RunningCell(cell, process, output)

    def finish(self) -> bool:
        """Close the log; whether the run succeeded."""
        self.output.close()
        return self.process.returncode == 0


def stop(running: Sequence[RunningCell]) -> None:
    """Interrupt the runs, which save their state, and wait for their end."""
    for each in running:
        if each.process.poll() is None:
            each.process.send_signal(signal.SIGINT)
    for each in running:
        each.process.wait()
        each.finish()
