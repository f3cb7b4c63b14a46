"""nodepiece train: train the model of an experiment and write a run folder."""

import signal
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from nodepiece.commands.console import count, err, interrupts, log
from nodepiece.commands.epochs import EpochProgress
from nodepiece.commands.experiments import AllOption, print_groups
from nodepiece.commands.graphs import (
    ColumnsOption,
    DataOption,
    DelimiterOption,
    FormatOption,
    HeaderOption,
    read_options,
    reading_overrides,
)
from nodepiece.commands.outputs import check_output
from nodepiece.commands.tables import scores_in_words
from nodepiece.errors import InputError, Stopped

if TYPE_CHECKING:
    from nodepiece.evaluation.report import Scores
    from nodepiece.training.loop import Callback

EPOCHS = "training.epochs"

DeviceOption = Annotated[
    str | None,
    typer.Option("--device", metavar="DEVICE", help="cpu, cuda or cuda:N; else a GPU, if any."),
]


def train(
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="GRAPH|EXPERIMENT",
            show_default=False,
            help="A graph (a file, a folder, the name of a benchmark), for which settings are "
            "chosen; or an experiment (a TOML file, the name of one that comes with nodepiece).",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="RUN", help="The run folder; runs/EXPERIMENT if not given."
        ),
    ] = None,
    data: DataOption = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting: training.epochs=5."),
    ] = None,
    device: DeviceOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the checkpoint in RUN, if any.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run in RUN when this one is finished.")
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes",
            metavar="N",
            show_default=False,
            help="Take so many minutes in all, evaluation included, instead of a number of epochs; "
            "10 for a GRAPH.",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            show_default=False,
            help="The most memory to use at the peak, such as 8GB (on a GPU: of the device); "
            "default: most of what is free.",
        ),
    ] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            "--vocabulary",
            metavar="VOCAB",
            show_default=False,
            help="Train with the tokens in this folder of nodepiece tokenize, made of the training "
            "facts; its settings replace those of the EXPERIMENT.",
        ),
    ] = None,
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            "--tensorboard", metavar="DIR", help="Write curves for TensorBoard (extra tensorboard)."
        ),
    ] = None,
    list_all: Annotated[
        bool, typer.Option("--list", help="List the experiments, as `nodepiece experiments` does.")
    ] = False,
    everything: AllOption = False,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
) -> None:
    """Train a model and evaluate it on the test facts.

    For a GRAPH, settings are chosen by its shape, the minutes, the memory and the device; --set
    changes them. Facts are held out for validation and test if there are none.

    Ctrl-C stops after the step (of several processes: after the epoch) and saves; --resume
    continues from there to the same result. With --minutes the learning rate follows the clock, and
    --resume takes the minutes that are left; --resume --minutes takes others, and adds them to a
    finished run, which --resume alone leaves as it is. To train on several GPUs:
    torchrun --nproc-per-node 4 -m nodepiece train EXPERIMENT.
    """
    start = perf_counter()  # before libraries are imported
    from nodepiece.settings import load_experiment, overridden
    from nodepiece.tasks.evaluation_time import minutes_in_words
    from nodepiece.tasks.machine import parse_memory
    from nodepiece.tasks.minutes import minutes_for, minutes_left
    from nodepiece.tasks.open_automatic import automatic_name, is_automatic
    from nodepiece.tasks.run_folder import CONFIG
    from nodepiece.tasks.run_place import has_more_to_do, holds_work
    from nodepiece.tasks.train import command_line, train_experiment
    from nodepiece.training.distribution import torchrun_rank
    from nodepiece.training.interrupts import stop_on_interrupt
    from nodepiece.training.memory import keep_freed_memory

    if list_all:
        print_groups(everything=everything)
        return
    if experiment is None:
        raise InputError(
            "name a GRAPH, a file or folder of facts, or the EXPERIMENT to train: a TOML file, or "
            "a name that `nodepiece experiments` lists, such as countries"
        )
    options = read_options(delimiter, header, columns, format)
    overrides = [*(overrides or ()), *reading_overrides(options)]
    memory_bytes = None if memory is None else parse_memory(memory)
    if is_automatic(experiment):
        given, settings = overridden(overrides), None
        name = str(given.get("name", automatic_name(experiment)))
        epochs = int(cast(int, given.get(EPOCHS, 1)))
    else:
        settings = load_experiment(experiment, overrides)
        name, epochs = settings.name, settings.training.epochs
    folder = output or Path("runs") / name
    taken = minutes_for(
        folder,
        minutes,
        settings,
        is_chosen=is_automatic(experiment),
        has_epochs=EPOCHS in overridden(overrides),
        resume=resume,
        overwrite=overwrite,
    )
    is_first = torchrun_rank() == 0
    if is_first:  # it creates the folder; the others would take it for an earlier run
        check_output(folder, marker=CONFIG, kind="run")
    keep_freed_memory()
    metrics: dict[str, Any] | None = None
    is_interrupted, held = False, holds_work(folder)
    with EpochProgress(epochs, minutes=taken.number) as progress:
        callbacks: tuple[Callback, ...] = (progress,)
        if tensorboard is not None:
            from nodepiece.training.tensorboard import TensorBoard

            callbacks += (TensorBoard(tensorboard / name),)
        with stop_on_interrupt(
            lambda: progress.is_under_way,
            lambda: err.print("stopping and saving; press Ctrl-C again to stop at once"),
            lambda: interrupts.append(signal.SIGINT),
        ) as should_stop:
            try:
                metrics = train_experiment(
                    experiment,
                    folder,
                    data=data,
                    overrides=overrides,
                    device=device,
                    resume=resume,
                    overwrite=overwrite,
                    callbacks=callbacks,
                    log=progress.log,
                    should_stop=should_stop,
                    minutes=minutes,
                    memory=memory_bytes,
                    started=start,
                    vocabulary=vocabulary,
                )
            except KeyboardInterrupt:
                if not (is_first and has_more_to_do(folder, resume=resume, held=held)):
                    raise
                is_interrupted = True
    if not is_first:
        return
    if metrics is None:
        what = "stopped, with a checkpoint" if is_interrupted else "stopped and saved"
        left = None if taken.number is None else minutes_left(folder)
        if left is not None:
            what += f", {minutes_in_words(left)} left"
        again = command_line(
            experiment,
            folder,
            overrides=overrides,
            device=device,
            data=data,
            resume=True,
            minutes=minutes if left is None else None,  # a finished run was to be given more
            memory=memory,
            vocabulary=vocabulary,
        )
        raise Stopped(f"{what}; continue with: {again}")
    for sentence in summary(metrics, folder):
        log(sentence)


def summary(metrics: dict[str, Any], folder: Path) -> list[str]:
    from nodepiece.tasks.registry import TASKS

    seconds, task = metrics["seconds"], TASKS[metrics["task"]]
    query = task.example_query
    if task.new_facts and metrics["vocabulary"]["anchors"]:
        query += f" {task.new_facts}"  # which a vector for every node cannot answer
    scores = ["no test facts, so it was not evaluated"]
    if metrics["split"] is not None:
        scores = [f"test {beside_popularity(metrics, metrics['popularity'])}"]
    if metrics["valid"]:
        scores.append(f"valid {beside_popularity(metrics['valid'], metrics['popularity_valid'])}")
    if is_no_better(metrics):
        scores.append(
            "no better than popularity, a baseline without training; it may need more time "
            "(--resume --minutes N)"
        )
    return [
        *(f"{metrics['experiment']}: {line}" for line in scores),
        f"{metrics['parameters']:,} parameters; {count(metrics['steps'], 'step')} in "
        f"{seconds['train']:.1f} s of training, "
        f"{seconds['evaluate']:.1f} s of evaluation on {metrics['device']}",
        f"wrote {folder}; query it with: nodepiece predict {folder} {query}",
    ]


def is_no_better(metrics: dict[str, Any]) -> bool:
    """Whether a model has no better MRR than popularity on the test facts."""
    popularity = metrics["popularity"]
    return bool(popularity and "mrr" in popularity and metrics["mrr"] <= popularity["mrr"])


def beside_popularity(scores: "Scores", popularity: "Scores | None") -> str:
    """Scores in words, with those of popularity on the same facts where there are some."""
    found = scores_in_words(scores)
    return f"{found} (popularity: {scores_in_words(popularity)})" if popularity else found
