"""A figure of scores over time, of several models on several datasets."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
<<<<<<< HEAD
=======
from matplotlib.figure import Figure
>>>>>>> a066a9f (Only the anchors or nodes that a step uses are updated, where there are many; benchmark of the cost of a step over the size of the graph)

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
<<<<<<< HEAD

FIRST, *OTHERS = COLOURS
=======
>>>>>>> a066a9f (Only the anchors or nodes that a step uses are updated, where there are many; benchmark of the cost of a step over the size of the graph)

Points = Sequence[tuple[float, float]]  # minutes and MRR


def plot_budget(
    curves: Mapping[str, Mapping[str, Points]],  # dataset -> model -> its curve
    path: Path,
    *,
    first: str,  # the model that is drawn the strongest
    title: str,
) -> None:
    """Save a panel of curves for each dataset; the ending of `path` gives the format."""
    check_figure(path)
    save_figure(draw_budget(curves, first=first, title=title), path)


def draw_budget(curves: Mapping[str, Mapping[str, Points]], *, first: str, title: str) -> Figure:
    """A panel for each dataset, a curve for each model, in one colour in all panels."""
    if not any(curves.values()):
        raise InputError("there are no curves to draw; collect the files of some runs")
    columns = min(3, len(curves))
    rows = -(-len(curves) // columns)
<<<<<<< HEAD
    figure = new_figure(4 * columns, 3.1 * rows + 0.9)
    top = 1 - 0.75 / figure.get_figheight()
=======
    height = 3.1 * rows + 0.9
    figure = new_figure(4 * columns, height)
>>>>>>> a066a9f (Only the anchors or nodes that a step uses are updated, where there are many; benchmark of the cost of a step over the size of the graph)
    panels = figure.subplots(rows, columns, squeeze=False)
    figure.subplots_adjust(
        left=0.07, right=0.985, top=1 - 0.8 / height, bottom=0.55 / height, hspace=0.45
    )
    models = [first, *sorted({model for panel in curves.values() for model in panel} - {first})]
    colours = {model: COLOURS[place % len(COLOURS)] for place, model in enumerate(models)}
    for axes, (dataset, of_models) in zip(panels.flat, curves.items(), strict=False):
<<<<<<< HEAD
        draw_curves(axes, of_models, colours | {first: FIRST}, first)
        axes.set_title(dataset, fontsize=10.5, color=INK, loc="left")
    for axes in panels.flat[len(curves) :]:
        axes.set_visible(False)
    add_title(figure, title)
    save_figure(figure, path)
=======
        draw_curves(axes, of_models, colours, first)
        axes.set_title(dataset, fontsize=10.5, loc="left", color=INK)
    for axes in panels.flat[len(curves) :]:
        axes.set_visible(False)
    add_title(figure, title)
    return figure
>>>>>>> a066a9f (Only the anchors or nodes that a step uses are updated, where there are many; benchmark of the cost of a step over the size of the graph)


def draw_curves(
    axes: Axes, curves: Mapping[str, Points], colours: Mapping[str, str], first: str
) -> None:
    """One panel; the legend names the curves, the best at the end first."""
    for model in sorted(curves, key=lambda name: -curves[name][-1][1]):
        minutes, scores = zip(*curves[model], strict=True)
        is_first = model == first
        axes.plot(
            minutes,
            scores,
            color=colours[model],
            linewidth=2.2 if is_first else 1.3,
            marker="o",
            markersize=3.5 if is_first else 2.5,
            zorder=3 if is_first else 2,
            label=model,
        )
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
<<<<<<< HEAD
    axes.set_xlabel("minutes", fontsize=9)
    axes.set_ylabel("MRR, a sample of valid", fontsize=9)
=======
    axes.set_xlabel("minutes")
    axes.set_ylabel("MRR, a sample of valid")
>>>>>>> a066a9f (Only the anchors or nodes that a step uses are updated, where there are many; benchmark of the cost of a step over the size of the graph)
    plain(axes, grid="both")
    axes.legend(fontsize=7, frameon=False, loc="lower right", labelcolor=INK)
