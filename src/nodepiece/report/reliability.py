"""The reliability diagram: how often facts of a given probability are true."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from nodepiece.evaluation.triple_classification import Reliability
from nodepiece.report.style import (
    COLOURS,
    INK,
    add_title,
    check_figure,
    new_figure,
    plain,
    save_figure,
)


def plot_reliability(bins: Reliability, path: Path, *, name: str) -> None:
    """Save the diagram as a picture; the ending of `path` gives the format."""
    check_figure(path)
    save_figure(draw_reliability(bins, name=name), path)


def draw_reliability(bins: Reliability, *, name: str) -> Figure:
    """The diagram, and below it how many facts have each probability."""
    figure = new_figure(5.6, 5.6)
    axes = figure.add_axes((0.13, 0.28, 0.8, 0.58))
    counts = figure.add_axes((0.13, 0.1, 0.8, 0.12))
    is_filled = bins.count > 0
    axes.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle="--", zorder=1)
    axes.plot(
        bins.probability[is_filled],
        bins.share_true[is_filled],
        color=COLOURS[0],
        marker="o",
        markersize=5,
        zorder=2,
    )
    middles = (np.arange(len(bins.count)) + 0.5) / len(bins.count)
    counts.bar(middles, bins.count, width=0.85 / len(bins.count), color=COLOURS[0], zorder=2)
    for each in (axes, counts):
        each.set_xlim(0, 1)
        each.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
        plain(each, grid="both")
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    axes.set_ylabel("share that is true")
    counts.set_ylabel("facts")
    counts.set_xlabel("probability")
    subtitle = f"{bins.count.sum():,} facts; expected calibration error {bins.error:.3f}"
    add_title(figure, f"Reliability of probabilities: {name}", subtitle)
    return figure
