"""nodepiece plan: parameters, memory and time, before anything is run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from nodepiece.commands.console import JsonOption, err, out, readable_bytes, stage
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
from nodepiece.errors import InputError

PLANNED_MINUTES = "10,60,1440"  # ten minutes, an hour, a day

if TYPE_CHECKING:
    import torch

    from nodepiece.tasks.plan import Plan, PlanInput
    from nodepiece.tasks.timing import Duration


def plan(
    source: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH|EXPERIMENT",
            show_default=False,
            help="A graph (a file, a folder, the name of a benchmark), or an experiment (a TOML "
            "file, the name of one that comes with nodepiece).",
        ),
    ],
    data: DataOption = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting: encoder.dim=100."),
    ] = None,
    minutes: Annotated[
        str | None,
        typer.Option(
            "--minutes",
            metavar="N,N",
            show_default=False,
            help="What would be chosen for GRAPH in so many minutes; several: 10,60,1440.",
        ),
    ] = None,
    device_memory: Annotated[
        str | None,
        typer.Option(
            "--device-memory",
            metavar="SIZE",
            show_default=False,
            help="What would be chosen for GRAPH with so much memory, such as 24GB, in --minutes, "
            "or in 10, 60 and 1440; else most of what is free.",
        ),
    ] = None,
    no_timing: Annotated[
        bool,
        typer.Option(
            "--no-timing", "--no-trial", help="Parameters and memory only; time no steps."
        ),
    ] = False,
    as_json: JsonOption = False,
    device: DeviceOption = None,
    delimiter: DelimiterOption = None,
    header: HeaderOption = None,
    columns: ColumnsOption = None,
    format: FormatOption = None,
) -> None:
    """Estimate what a model needs: parameters, memory on host and device, time.

    Estimates an experiment of any task, or the default settings on GRAPH, and for comparison a
    model with a vector of the same size for every node. With --minutes: what `nodepiece train
    GRAPH --minutes N` would choose. Times and memory are those of a few steps on this machine.
    """
    import numpy as np

    from nodepiece.tasks.open_automatic import is_automatic
    from nodepiece.tasks.plan import plan as plan_for
    from nodepiece.tasks.plan import with_lookup
    from nodepiece.tasks.timing import estimate_duration
    from nodepiece.tasks.train import choose_device
    from nodepiece.training.memory import keep_freed_memory

    keep_freed_memory()  # as `train` does
    reading = reading_overrides(read_options(delimiter, header, columns, format))
    chosen = choose_device(device)
    if minutes is not None or device_memory is not None:
        changes = [*(overrides or []), *reading]
        print_choices(source, changes, data, chosen, minutes, device_memory, as_json=as_json)
        return
    inputs = open_source(source, [*(overrides or []), *reading], data)
    plans: list[Plan] = []
    durations: list[Duration | None] = []
    is_shallow = not inputs.experiment.encoder.has_pieces
    for each in (inputs, None if is_shallow else with_lookup(inputs)):
        if each is None:
            continue
        plans.append(plan_for(each))
        if no_timing:
            continue
        if not has_memory_for(plans[-1], chosen):
            durations.append(None)
            continue
        with stage(f"a few steps: {plans[-1].kind}"):
            durations.append(estimate_duration(each, chosen, rng=np.random.default_rng(0)))
    if as_json:
        typer.echo(json.dumps(to_json(inputs, plans, durations), indent=2))
    else:
        out.print(sizes_line(inputs))
        out.print(plan_table(plans, durations))
        if is_automatic(source):
            err.print(
                f"with default settings; --minutes {PLANNED_MINUTES} says what `nodepiece train "
                f"{source}` would choose",
                soft_wrap=True,
            )


def has_memory_for(planned: "Plan", device: "torch.device") -> bool:
    """Whether a few steps fit the memory that is free; says so where they do not."""
    from nodepiece.tasks.machine import free_memory

    free = free_memory(device)
    if planned.training <= free:
        return True
    err.print(
        f"{planned.kind}: no steps were timed, as training needs about "
        f"{readable_bytes(planned.training)} and {readable_bytes(free)} are free; a smaller --set "
        "training.batch_size needs less",
        soft_wrap=True,
    )
    return False


def print_choices(
    source: str,
    overrides: list[str],
    data: Path | None,
    device: "torch.device",
    minutes: str | None,
    device_memory: str | None,
    *,
    as_json: bool,
) -> None:
    """Print what would be chosen for a graph, for each number of minutes."""
    from nodepiece.tasks.automatic_plan import plan_choices
    from nodepiece.tasks.machine import machine_of, parse_memory
    from nodepiece.tasks.open_automatic import is_automatic

    if not is_automatic(source):
        raise InputError(
            f"--minutes and --device-memory choose settings for a graph, and {source} is an "
            "experiment; leave them out, or name a file or folder of facts"
        )
    numbers = list(map(number_of_minutes, (minutes or PLANNED_MINUTES).split(",")))
    memory = None if device_memory is None else parse_memory(device_memory)
    machine = machine_of(device, memory)
    with stage(f"a few steps on {source}"):
        found = plan_choices(source, machine, numbers, data=data, overrides=overrides)
    if as_json:
        typer.echo(json.dumps([each.to_json() for each in found], indent=2))
        return
    for each in found:
        out.print(f"\n{readable_time(60 * each.minutes)}")
        for sentence in each.sentences:
            out.print(f"  {sentence}", soft_wrap=True)


def number_of_minutes(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--minutes are numbers, such as 10,60,1440; got {text!r}") from None


def open_source(source: str, overrides: list[str], data: Path | None) -> "PlanInput":
    """Open an experiment and its graph.

    For link prediction on a benchmark without local files, its known sizes are used.
    """
    from nodepiece.data.benchmarks import BENCHMARKS
    from nodepiece.recipes import experiment_names
    from nodepiece.settings import Experiment, load_experiment, with_overrides
    from nodepiece.tasks.memory_estimate import Sizes
    from nodepiece.tasks.plan import input_from_sizes, input_from_task, is_link_task
    from nodepiece.tasks.registry import task_record

    if source in experiment_names() or Path(source).suffix == ".toml":
        experiment = load_experiment(source, overrides)
    else:
        experiment = with_overrides(Experiment(name="plan", dataset=source), overrides)
    record = task_record(experiment)
    try:
        task = record.task.open(experiment, data)
    except InputError:
        known = BENCHMARKS.get(experiment.dataset)
        if not known or not known.num_nodes or not {"train", "test"} <= set(known.sizes):
            raise
        if not is_link_task(experiment):
            raise
        facts = known.sizes["train"], known.num_relations, known.sizes["test"]
        return input_from_sizes(experiment, Sizes(known.num_nodes, *facts))
    err.print(task.describe(), soft_wrap=True)
    return input_from_task(task)


def sizes_line(inputs: "PlanInput") -> str:
    from nodepiece.tasks.plan import LIKELY_DISTANCE

    sizes = inputs.sizes
    line = (
        f"{inputs.experiment.dataset}: {sizes.num_nodes:,} nodes, {sizes.num_facts:,} facts, "
        f"{sizes.num_relations:,} relations"
    )
    if inputs.is_real:
        return line
    return f"{line}; without its files, anchors are taken to be up to {LIKELY_DISTANCE} hops away"


def plan_table(plans: "list[Plan]", durations: "list[Duration | None]") -> Table:
    """A table with a column for each model; "-" where no steps were timed."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for each in plans:
        table.add_column(each.kind, justify="right")
    table.add_row("parameters", *(f"{each.parameters:,}" for each in plans))
    for name, words in (
        ("weights", "  as float32"),
        ("token_table", "tokens of all nodes, not trained"),
        ("tokenizing", "memory to tokenize, host"),
        ("training", "memory to train, estimated"),
        ("evaluating", "memory to rank, at most"),
    ):
        table.add_row(words, *(readable_bytes(getattr(each, name)) for each in plans))
    timed = [each for each in durations if each is not None]
    if not timed:
        return table

    def add_times(words: str, shown: "Callable[[Duration], str]") -> None:
        table.add_row(words, *("-" if each is None else shown(each) for each in durations))

    table.add_section()
    add_times("time to tokenize", lambda each: readable_time(each.tokenizing))
    add_times("time for a step", lambda each: f"{1000 * each.step:,.1f} ms")
    add_times("steps", lambda each: f"{each.num_steps:,}")
    add_times("time to train", lambda each: readable_time(each.training))
    if any(each.validating for each in timed):
        add_times("time to validate", lambda each: readable_time(each.validating))
    if any(each.ranking is not None for each in timed):
        add_times("time to evaluate", lambda each: readable_time(each.ranking or 0.0))
    add_times("time in all", lambda each: readable_time(each.total))
    if any(each.peak is not None for each in timed):
        add_times("memory at the peak, measured", lambda each: readable_bytes(each.peak or 0))
    return table


def readable_time(seconds: float) -> str:
    """Such as "40 s", "12 min" or "3.5 h"."""
    if seconds < 120:
        return f"{seconds:,.1f} s" if seconds < 10 else f"{seconds:,.0f} s"
    minutes = seconds / 60
    return f"{minutes:,.0f} min" if minutes < 120 else f"{minutes / 60:,.1f} h"


def to_json(
    inputs: "PlanInput", plans: "list[Plan]", durations: "list[Duration | None]"
) -> dict[str, object]:
    models = []
    for each, duration in zip(plans, durations or [None] * len(plans), strict=True):
        times = {}
        if duration is not None:
            times = {"seconds": duration.to_json(), "peak": duration.peak}
        models.append({**each.to_json(), **times})
    return {
        "experiment": inputs.experiment.name,
        "dataset": inputs.experiment.dataset,
        "sizes": dict(vars(inputs.sizes)),
        "models": models,
    }
