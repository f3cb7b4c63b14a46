"""nodepiece sweep: train over a grid of |A| and k, and draw the scores."""

from pathlib import Path
from typing import Annotated

import typer

from nodepiece.commands.console import count, err, log
from nodepiece.commands.figures import DEFAULT_ANCHORS, DEFAULT_PER_NODE, parse_numbers
from nodepiece.commands.graphs import DataOption
from nodepiece.commands.progress import counted
from nodepiece.commands.train import DeviceOption
from nodepiece.errors import InputError

NUMBERS, FIGURE = "sweep.json", "sweep.svg"


def sweep(
    experiment: Annotated[
        str,
        typer.Argument(metavar="EXPERIMENT", show_default=False, help="A TOML file, or a name."),
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FOLDER", help="The folder of all runs."),
    ] = Path("sweep"),
    anchors: Annotated[
        str, typer.Option("--anchors", metavar="N,N,...", help="|A|, the numbers of anchors.")
    ] = DEFAULT_ANCHORS,
    anchors_per_node: Annotated[
        str, typer.Option("--anchors-per-node", metavar="K,K,...", help="k; at most |A|.")
    ] = DEFAULT_PER_NODE,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of all runs."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", min=1, metavar="N", help="Runs side by side on the device.")
    ] = 1,
    device: DeviceOption = None,
    data: DataOption = None,
) -> None:
    """Train an experiment over a grid of |A| and k, and draw MRR and Hits@10 as heat maps.

    Each run has a folder of its own, and a log beside it. Ctrl-C stops the runs, which save; the
    same command continues: finished runs are kept, others resume.
    """
    from nodepiece.files import write_json
    from nodepiece.report.style import save_figure
    from nodepiece.report.sweep import draw_sweep, sweep_numbers
    from nodepiece.tasks.sweep import SweepCell, SweepSettings, run_sweep

    settings = SweepSettings(
        experiment,
        output,
        parse_numbers(anchors, "--anchors"),
        parse_numbers(anchors_per_node, "--anchors-per-node"),
        tuple(overrides or ()),
        device,
        data,
        jobs,
    )
    settings.check()
    total = len(settings.cells)
    with counted("training", "runs") as advance:
        done = [sum(settings.metrics(cell) is not None for cell in settings.cells)]

        def on_done(cell: SweepCell, succeeded: bool) -> None:
            done[0] += 1
            advance(done[0], total)
            found = settings.metrics(cell)
            if succeeded and found is not None:
                words = f"MRR {found['mrr']:.4f}, Hits@10 {found['hits@10']:.4f}"
                err.print(
                    f"{cell.num_anchors} anchors, {cell.anchors_per_node} per node: {words} "
                    f"({done[0]}/{total})",
                    soft_wrap=True,
                )
                write_json(output / NUMBERS, sweep_numbers(settings))

        failed = run_sweep(settings, on_done=on_done)
    numbers = sweep_numbers(settings)
    if not numbers["cells"]:
        raise InputError(f"no run succeeded; the first log is {output / (failed[0].name + '.log')}")
    write_json(output / NUMBERS, numbers)
    save_figure(draw_sweep(numbers), output / FIGURE)
    log(f"wrote {output / NUMBERS} and {FIGURE}: {count(len(numbers['cells']), 'run')}")
    if failed:
        raise InputError(
            f"{count(len(failed), 'run')} failed, such as {failed[0].name}; read "
            f"{output / (failed[0].name + '.log')} and repeat the command"
        )
