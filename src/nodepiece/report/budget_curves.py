"""A figure of scores over time, of several models on several datasets."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes

from nodepiece.errors import InputError
from nodepiece.report.measured import TITLES
from nodepiece.report.style import (
    COLOURS,
    INK,
    add_title,
    check_figure,
    new_figure,
    plain,
    save_figure,
)

FIRST, *OTHERS = COLOURS

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
    if not any(curves.values()):
        raise InputError("there are no curves to draw; collect the files of some runs")
    columns = min(2, len(curves))
    rows = -(-len(curves) // columns)
    figure = new_figure(4.1 * columns, 2.9 * rows + 0.9)
    top = 1 - 0.75 / figure.get_figheight()
    panels = figure.subplots(rows, columns, squeeze=False)
    figure.subplots_adjust(
        left=0.17 / columns,
        right=0.985,
        top=top,
        bottom=0.55 / figure.get_figheight(),
        hspace=0.4,
        wspace=0.2,
    )
    models = sorted({model for panel in curves.values() for model in panel} - {first})
    colours = {model: OTHERS[place % len(OTHERS)] for place, model in enumerate(models)}
    for axes, (dataset, of_models) in zip(panels.flat, curves.items(), strict=False):
        draw_curves(axes, of_models, colours | {first: FIRST}, first)
        axes.set_title(TITLES.get(dataset, dataset), fontsize=11, color=INK, loc="left")
    for axes in panels[:, 0]:
        axes.set_ylabel("MRR, a sample of valid", fontsize=9.5)
    for axes in panels.flat[len(curves) :]:
        axes.set_visible(False)
    add_title(figure, title)
    save_figure(figure, path)


def draw_curves(
    axes: Axes, curves: Mapping[str, Points], colours: Mapping[str, str], first: str
) -> None:
    """One panel; the curves are labelled in a legend, the best at the end first."""
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
    axes.set_xlabel("minutes", fontsize=9.5)
    plain(axes, grid="both")
    axes.legend(fontsize=9.5, frameon=False, loc="lower right", labelcolor=INK)
