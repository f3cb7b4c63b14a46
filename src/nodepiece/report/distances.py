"""A figure of the distances between nodes and their anchors."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

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
from nodepiece.tokenizer.statistics import TokenStatistics


def plot_distances(statistics: TokenStatistics, path: Path, *, name: str) -> None:
    """Save the distribution of distances as a picture; the ending of `path` gives the format."""
    check_figure(path)
    if not statistics.distance_histogram:
        raise InputError(f"{name} keeps no distances, so there is nothing to plot")
    figure = new_figure(7.2, 4.5)
    draw_bars(figure.add_axes((0.1, 0.14, 0.86, 0.66)), statistics)
    add_title(figure, f"How far nodes are from their anchors: {name}", subtitle(statistics))
    save_figure(figure, path)


def subtitle(statistics: TokenStatistics) -> str:
    return (
        f"{statistics.num_nodes:,} nodes, {statistics.num_anchors:,} anchors, "
        f"{statistics.anchors_per_node} anchors per node: {statistics.mean_distance:.2f} hops on "
        f"average, {statistics.mean_nearest_distance:.2f} to the nearest"
    )


def draw_bars(axes: Axes, statistics: TokenStatistics) -> None:
    hops = list(statistics.distance_histogram)
    total = sum(statistics.distance_histogram.values())
    shares = [number / total for number in statistics.distance_histogram.values()]
    axes.bar(hops, shares, width=0.78, color=COLOURS[0], zorder=2)
    if len(hops) <= 20:
        axes.set_xticks(hops)
    for hop, share in zip(hops, shares, strict=True):
        if share >= 0.001 and (share >= 0.005 or len(hops) <= 10):  # else too low to be seen
            axes.annotate(
                f"{100 * share:.1f}",
                (hop, share),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=8.5,
                color=INK,
            )
    axes.set_xlabel("distance from a node to one of its anchors, in hops")
    axes.set_ylabel("share of all anchor slots")
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    axes.set_ylim(0, 1.1 * max(shares))
    plain(axes)
