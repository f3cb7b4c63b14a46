"""A figure of the time of a training step over the size of the graph."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from nodepiece.errors import InputError
from nodepiece.report.style import (
    COLOURS,
    INK,
    add_title,
    check_figure,
    new_figure,
    plain,
    save_figure,
)

WHOLE = ", whole"  # the end of the name of a model whose optimizer updates all rows

Lines = Mapping[str, Sequence[tuple[int, float]]]  # model -> nodes and seconds


def plot_step_cost(lines: Lines, path: Path) -> None:
    """Save the figure as a picture; the ending of `path` gives the format."""
    check_figure(path)
    save_figure(draw_step_cost(lines), path)


def draw_step_cost(lines: Lines) -> Figure:
    """One line for each model; the axis of nodes is logarithmic.

    A name that ends in ", whole" is drawn dashed, in the colour of the model without it.
    """
    if not any(lines.values()):
        raise InputError("there is nothing to draw; measure a step first")
    figure = new_figure(7.2, 5.2)
    axes = figure.add_axes((0.11, 0.27, 0.86, 0.58))
    names = list(dict.fromkeys(name.removesuffix(WHOLE) for name in lines))
    colours = dict(zip(names, COLOURS, strict=False))
    for name, points in lines.items():
        if points:
            nodes, seconds = zip(*points, strict=True)
            axes.plot(
                nodes,
                [1000 * each for each in seconds],
                color=colours[name.removesuffix(WHOLE)],
                linestyle="--" if name.endswith(WHOLE) else "-",
                linewidth=1.2 if name.endswith(WHOLE) else 2,
                marker="o",
                markersize=4,
                label=name.replace(WHOLE, "; all of them updated"),
            )
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("nodes")
    axes.set_ylabel("milliseconds a step")
    plain(axes, grid="both")
    axes.tick_params(which="minor", length=0)
    figure.legend(loc="lower left", ncols=2, fontsize=9, frameon=False, labelcolor=INK)
    subtitle = "sampled softmax, the same settings for all sizes"
    add_title(figure, "The cost of a training step over the size of the graph", subtitle)
    return figure
