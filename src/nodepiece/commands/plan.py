"""nodepiece plan: parameters, memory and time, before anything is run."""

import json
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

if TYPE_CHECKING:
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
    model with a vector of the same size for every node. Times are extrapolated from a few steps on
    this machine.
    """
    import numpy as np

    from nodepiece.tasks.plan import plan as plan_for
    from nodepiece.tasks.plan import with_lookup
    from nodepiece.tasks.timing import estimate_duration
    from nodepiece.tasks.train import choose_device

    reading = reading_overrides(read_options(delimiter, header, columns, format))
    inputs = open_source(source, [*(overrides or []), *reading], data)
    chosen = choose_device(device)
    plans, durations = [], []
    is_shallow = not inputs.experiment.encoder.has_pieces
    for each in (inputs, None if is_shallow else with_lookup(inputs)):
        if each is None:
            continue
        plans.append(plan_for(each))
        if not no_timing:
            with stage(f"a few steps: {plans[-1].kind}"):
                durations.append(estimate_duration(each, chosen, rng=np.random.default_rng(0)))
    if as_json:
        typer.echo(json.dumps(to_json(inputs, plans, durations), indent=2))
    else:
        out.print(sizes_line(inputs))
        out.print(plan_table(plans, durations))


def open_source(source: str, overrides: list[str], data: Path | None) -> "PlanInput":
    """Open an experiment and its graph.

    For link prediction on a benchmark without local files, its known sizes are used.
    """
    from nodepiece.data.benchmarks import BENCHMARKS
    from nodepiece.recipes import experiment_names
    from nodepiece.settings import Experiment, load_experiment, with_overrides
    from nodepiece.tasks.plan import Sizes, input_from_sizes, input_from_task, is_link_task
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


def plan_table(plans: "list[Plan]", durations: "list[Duration]") -> Table:
    """A table with a column for each model."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for each in plans:
        table.add_column(each.kind, justify="right")
    table.add_row("parameters", *(f"{each.parameters:,}" for each in plans))
    for name, words in (
        ("weights", "  as float32"),
        ("token_table", "tokens of all nodes, not trained"),
        ("tokenizing", "memory to tokenize, host"),
        ("training", "memory to train, device"),
        ("evaluating", "memory to rank, device"),
    ):
        table.add_row(words, *(readable_bytes(getattr(each, name)) for each in plans))
    if durations:
        table.add_section()
        table.add_row("time to tokenize", *(readable_time(each.tokenizing) for each in durations))
        table.add_row("time for a step", *(f"{1000 * each.step:,.1f} ms" for each in durations))
        table.add_row("steps", *(f"{each.num_steps:,}" for each in durations))
        table.add_row("time to train", *(readable_time(each.training) for each in durations))
        ranking = [each.ranking for each in durations if each.ranking is not None]
        if ranking:
            table.add_row("time to rank the test facts", *map(readable_time, ranking))
    return table


def readable_time(seconds: float) -> str:
    """Such as "40 s", "12 min" or "3.5 h"."""
    if seconds < 120:
        return f"{seconds:,.1f} s" if seconds < 10 else f"{seconds:,.0f} s"
    minutes = seconds / 60
    return f"{minutes:,.0f} min" if minutes < 120 else f"{minutes / 60:,.1f} h"


def to_json(
    inputs: "PlanInput", plans: "list[Plan]", durations: "list[Duration]"
) -> dict[str, object]:
    models = []
    for number, each in enumerate(plans):
        times = {"seconds": durations[number].to_json()} if durations else {}
        models.append({**each.to_json(), **times})
    return {
        "experiment": inputs.experiment.name,
        "dataset": inputs.experiment.dataset,
        "sizes": dict(vars(inputs.sizes)),
        "models": models,
    }
