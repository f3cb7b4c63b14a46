"""The reliability diagram: how often facts of a given probability are true."""

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from nodepiece.errors import InputError
from nodepiece.evaluation.triple_classification import Reliability
from nodepiece.files import atomic_file
from nodepiece.report.distances import BLUE, FAINT, FIGURE_FORMATS, GREY, INK


def check_figure(path: Path) -> None:
    """Refuse a file name whose ending is no format of figures."""
    if path.suffix.removeprefix(".").lower() not in FIGURE_FORMATS:
        raise InputError(f"{path} should end in {', '.join('.' + end for end in FIGURE_FORMATS)}")


def plot_reliability(bins: Reliability, path: Path, *, name: str) -> None:
    """Save the diagram as a picture; the ending of `path` gives the format."""
    check_figure(path)
    figure = Figure(figsize=(5.6, 5.6), dpi=160, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.13, 0.28, 0.8, 0.58))
    counts = figure.add_axes((0.13, 0.1, 0.8, 0.12))
    is_filled = bins.count > 0
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", zorder=1)
    axes.plot(
        bins.probability[is_filled],
        bins.share_true[is_filled],
        color=BLUE,
        marker="o",
        markersize=5,
        zorder=2,
    )
    middles = (np.arange(len(bins.count)) + 0.5) / len(bins.count)
    counts.bar(middles, bins.count, width=0.85 / len(bins.count), color=BLUE, zorder=2)
    for each in (axes, counts):
        each.set_xlim(0, 1)
        each.grid(color=FAINT, zorder=0)
        each.tick_params(colors=GREY, length=0)
        each.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
        for side in ("top", "right"):
            each.spines[side].set_visible(False)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    axes.set_ylabel("share that is true", color=INK)
    counts.set_ylabel("facts", color=INK)
    counts.set_xlabel("probability", color=INK)
    figure.text(0.02, 0.945, f"Reliability of probabilities: {name}", fontsize=12, color=INK)
    subtitle = f"{bins.count.sum():,} facts; expected calibration error {bins.error:.3f}"
    figure.text(0.02, 0.9, subtitle, fontsize=9.5, color=GREY)
    with atomic_file(path) as partial:
        figure.savefig(partial, format=path.suffix.removeprefix(".").lower())
