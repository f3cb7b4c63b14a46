"""nodepiece tune: search for settings."""

import shlex
import signal
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from nodepiece.commands.console import count, err, interrupts, log
from nodepiece.commands.epochs import EpochProgress
from nodepiece.commands.graphs import (
    ColumnsOption,
    DataOption,
    DelimiterOption,
    FormatOption,
    HeaderOption,
    read_options,
    reading_overrides,
)
from nodepiece.commands.train import DeviceOption
from nodepiece.errors import Stopped

if TYPE_CHECKING:
    from nodepiece.tasks.tune import Tuned


def tune(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH|EXPERIMENT",
            show_default=False,
            help="A graph (a file, a folder, the name of a benchmark), or an experiment to start "
            "from (a TOML file, the name of one that comes with nodepiece).",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FOLDER", show_default=False, help="The folder of the search."
        ),
    ],
    minutes: Annotated[
        float, typer.Option("--minutes", metavar="N", help="The time of the whole search.")
    ] = 60.0,
    trial_minutes: Annotated[
        float | None,
        typer.Option(
            "--trial-minutes",
            metavar="N",
            show_default=False,
            help="The time of one trial; a twelfth of the search if not given.",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting that all trials have."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the search in FOLDER, if any.")
    ] = False,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            show_default=False,
            help="The most memory that a trial may use, such as 8GB; default: most of what is "
            "free.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="N", help="Random seed of the search.")
    ] = 0,
    data: DataOption = None,
    device: DeviceOption = None,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
) -> None:
    """Search for settings for a graph, with Optuna (extra tune).

    The first trial has the settings that `nodepiece train GRAPH` would choose. Each trial trains
    for the same time; one whose validation is below the median of the others is stopped early.
    FOLDER/best.toml has the best settings so far, for `nodepiece train`; FOLDER/study.log all
    trials, and --resume adds more.
    """
    started = perf_counter()  # before libraries are imported
    from nodepiece.tasks.machine import parse_memory
    from nodepiece.tasks.open_tuning import tune_source
    from nodepiece.tasks.train import choose_device
    from nodepiece.tasks.trial import TuneOptions
    from nodepiece.training.interrupts import stop_on_interrupt
    from nodepiece.training.memory import keep_freed_memory

    options = read_options(delimiter, header, columns, format)
    changes = [*(overrides or ()), *reading_overrides(options)]
    memory_bytes = None if memory is None else parse_memory(memory)
    keep_freed_memory()
    with (
        EpochProgress(1, minutes=minutes) as progress,
        stop_on_interrupt(
            lambda: progress.is_under_way,
            lambda: err.print("stopping the search; press Ctrl-C again to stop at once"),
            lambda: interrupts.append(signal.SIGINT),
        ) as should_stop,
    ):
        found = tune_source(
            graph,
            TuneOptions(
                output,
                choose_device(device),
                minutes,
                trial_minutes,
                seed,
                callbacks=(progress,),
                log=progress.log,
                should_stop=should_stop,
                started=started,
                memory=memory_bytes,
            ),
            data=data,
            overrides=changes,
            resume=resume,
        )
    for sentence in summary(found):
        log(sentence)
    if found.is_stopped:
        words = ["nodepiece", "tune", graph, "-o", str(output), "--minutes", f"{minutes:g}"]
        words += [] if data is None else ["--data", str(data)]
        words += [] if memory is None else ["--memory", memory]
        raise Stopped(f"stopped; continue with: {shlex.join([*words, '--resume'])}")


def summary(found: "Tuned") -> list[str]:
    """What was found, in two lines."""
    metric, ends = found.experiment.training.metric, ""
    if found.first_score is not None:
        ends = f"; the settings it started from have {found.first_score:.4f}"
    return [
        f"best {metric} of validation {found.score:.4f}{ends}; "
        f"{count(found.num_trials, 'trial')} finished, {found.num_pruned} stopped early",
        f"wrote {found.path}; train with it: nodepiece train {found.path} --minutes 10 -o run",
    ]
