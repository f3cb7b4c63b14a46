"""nodepiece train: an experiment becomes a run folder."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from nodepiece.commands.console import err, say
from nodepiece.commands.graphs import DataOption

if TYPE_CHECKING:
    from nodepiece.training.checkpoint import Progress as TrainingProgress

SECONDS_BETWEEN_LINES = 10.0

DeviceOption = Annotated[
    str | None,
    typer.Option(metavar="DEVICE", help="cpu, cuda or cuda:N; a GPU if there is one."),
]


def train(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            show_default=False,
            help="A TOML file, or the name of an experiment that comes with nodepiece.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="RUN", help="The run folder; runs/EXPERIMENT if not given."
        ),
    ] = None,
    data: DataOption = None,
    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting: training.epochs=5."),
    ] = None,
    device: DeviceOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint in RUN, if there is one.")
    ] = False,
    tensorboard: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write curves for TensorBoard (extra tensorboard)."),
    ] = None,
) -> None:
    """Train and evaluate a model. Ctrl-C stops after the epoch; --resume goes on from there."""
    from nodepiece.settings import load_experiment
    from nodepiece.tasks.train import train_experiment
    from nodepiece.training.loop import Watcher

    overrides = set or []
    settings = load_experiment(experiment, overrides)
    folder = output or Path("runs") / settings.name
    with stop_after_epoch() as should_stop, EpochProgress(settings.training.epochs) as progress:
        watchers: tuple[Watcher, ...] = (progress,)
        if tensorboard is not None:
            from nodepiece.training.tensorboard import TensorBoard

            watchers += (TensorBoard(tensorboard / settings.name),)
        metrics = train_experiment(
            settings,
            folder,
            data=data,
            overrides=overrides,
            device=device,
            resume=resume,
            watchers=watchers,
            say=lambda sentence: err.print(sentence, soft_wrap=True),
            should_stop=should_stop,
        )
    if metrics is None:
        err.print(f"stopped; go on with: nodepiece train {experiment} --resume -o {folder}")
        raise typer.Exit(130)
    for sentence in summary(metrics, folder):
        say(sentence)


def summary(metrics: dict[str, Any], folder: Path) -> list[str]:
    seconds = metrics["seconds"]
    return [
        f"{metrics['experiment']}: test MRR {metrics['mrr']:.4f}, Hits@1 {metrics['hits@1']:.4f}, "
        f"Hits@3 {metrics['hits@3']:.4f}, Hits@10 {metrics['hits@10']:.4f}",
        f"{metrics['parameters']:,} parameters; {seconds['train']:.1f} s of training, "
        f"{seconds['evaluate']:.1f} s of evaluation on {metrics['device']}",
        f"wrote {folder}; ask it with: nodepiece predict {folder} --head X --relation R",
    ]


@contextmanager
def stop_after_epoch() -> Iterator[Any]:
    """The first Ctrl-C asks to stop after the epoch, the second one stops at once."""
    asked = False

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        err.print("stopping after this epoch; press Ctrl-C again to stop at once")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


class EpochProgress:
    """Epochs done, loss and time left: a bar on a terminal, now and then a line elsewhere."""

    def __init__(self, num_epochs: int) -> None:
        self.num_epochs = num_epochs
        self.last_line = 0.0
        self.start: float | None = None
        self.first_epoch = 0
        self.bar = Progress(
            TextColumn("epoch {task.completed:.0f}/{task.total:.0f}"),
            BarColumn(),
            TextColumn("{task.description}"),
            TextColumn("time left"),
            TimeRemainingColumn(),
            console=err,
            transient=True,
        )
        self.task = self.bar.add_task("", total=num_epochs)

    def __enter__(self) -> "EpochProgress":
        if err.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def on_step(self, epoch: int, done: int, total: int) -> None:
        if self.start is None:
            self.start, self.first_epoch = perf_counter(), epoch
        if err.is_terminal and (done % 20 == 0 or done == total):
            self.bar.update(self.task, completed=epoch + done / total)

    def on_epoch(self, record: dict[str, Any], progress: "TrainingProgress") -> None:
        text = f"loss {record['loss']:.5f}"
        text += "".join(
            f", {name.removeprefix('valid_')} {value:.4f}"
            for name, value in record.items()
            if name in ("valid_mrr", "valid_hits@10")
        )
        if err.is_terminal:
            self.bar.update(self.task, completed=record["epoch"], description=text)
            return
        now = perf_counter()
        is_last = record["epoch"] == self.num_epochs
        if now - self.last_line > SECONDS_BETWEEN_LINES or is_last:
            self.last_line = now
            done = record["epoch"] - self.first_epoch
            left = (now - (self.start or now)) / done * (self.num_epochs - record["epoch"])
            err.print(
                f"epoch {record['epoch']}/{self.num_epochs}: {text}; {left:.0f} s left",
                soft_wrap=True,
            )
