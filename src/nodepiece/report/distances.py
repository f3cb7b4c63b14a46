"""A figure of the distances between nodes and their anchors."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from nodepiece.errors import InputError
from nodepiece.files import atomic_file
from nodepiece.tokenizer.statistics import TokenStatistics

FIGURE_FORMATS = ("png", "svg", "pdf")

BLUE, INK, GREY, FAINT = "#3b6fb6", "#20242c", "#6b7280", "#e5e7eb"


def plot_distances(statistics: TokenStatistics, path: Path, *, name: str) -> None:
    """Save the distribution of distances as a picture; the ending of `path` gives the format."""
    suffix = path.suffix.removeprefix(".").lower()
    if suffix not in FIGURE_FORMATS:
        raise InputError(f"{path} should end in {', '.join('.' + end for end in FIGURE_FORMATS)}")
    if not statistics.distance_histogram:
        raise InputError(f"{name} keeps no distances, so there is nothing to plot")
    figure = Figure(figsize=(7.2, 4.5), dpi=160, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.1, 0.14, 0.86, 0.66))
    draw_bars(axes, statistics)
    figure.text(0.02, 0.93, f"How far nodes are from their anchors: {name}", fontsize=13, color=INK)
    figure.text(0.02, 0.875, subtitle(statistics), fontsize=9.5, color=GREY)
    with atomic_file(path) as partial:
        figure.savefig(partial, format=suffix)


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
    axes.bar(hops, shares, width=0.78, color=BLUE, zorder=2)
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
    axes.set_xlabel("distance from a node to one of its anchors, in hops", color=INK)
    axes.set_ylabel("share of all anchor slots", color=INK)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    axes.set_ylim(0, 1.1 * max(shares))
    axes.grid(axis="y", color=FAINT, zorder=0)
    axes.tick_params(colors=GREY, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GREY)
