"""Figures of a study of anchors: distributions of distances, and the grid of |A| and k."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from nodepiece.report.anchor_study import SELECTIONS, AnchorStudy, Tokenization
from nodepiece.report.heat_map import draw_cells
from nodepiece.report.style import COLOURS, INK, add_title, new_figure, plain

MAX_HOPS = 14  # more distant slots are in the last bar
CLOSE_TICKS = 10  # with more hops, every other one has a number


def draw_strategies(study: AnchorStudy) -> Figure:
    """A row for each strategy, nearest anchors on the left, random ones on the right."""
    rows = dict.fromkeys(each.strategy for each in study.by_strategy)
    settings = study.settings
    size = f"|A| = {settings.num_anchors:,}, k = {settings.anchors_per_node}"
    return draw_rows(
        [(name, [e for e in study.by_strategy if e.strategy == name]) for name in rows],
        f"Distances to anchors by how anchors are selected: {study.graph}",
        f"{study.num_nodes:,} nodes, {size}. Dashed: the mean.",
    )


def draw_numbers(study: AnchorStudy) -> Figure:
    """A row for each number of anchors."""
    rows = dict.fromkeys(each.num_anchors for each in study.by_number)
    return draw_rows(
        [(f"|A| = {n:,}", [e for e in study.by_number if e.num_anchors == n]) for n in rows],
        f"Distances to anchors by their number: {study.graph}",
        f"{study.num_nodes:,} nodes, the mix of strategies, k = "
        f"{study.settings.anchors_per_node}. Dashed: the mean.",
    )


def draw_rows(
    rows: Sequence[tuple[str, Sequence[Tokenization]]], title: str, subtitle: str
) -> Figure:
    height = 1.45 * len(rows) + 1.5
    figure = new_figure(8.2, height)
    every = [each for _, line in rows for each in line]
    last = min(MAX_HOPS, max(max(each.histogram, default=0) for each in every))
    grid = figure.subplots(len(rows), len(SELECTIONS), sharex=True, sharey=True, squeeze=False)
    figure.subplots_adjust(0.12, 0.55 / height, 0.985, 1 - 0.95 / height, wspace=0.06, hspace=0.22)
    for line, (name, found) in zip(grid, rows, strict=True):
        line[0].set_ylabel(name, fontsize=10.5)
        for axes, each in zip(line, found, strict=True):
            draw_histogram(axes, each, last)
    for axes, select in zip(grid[0], SELECTIONS, strict=True):
        axes.set_title(f"k {select} anchors", loc="left", fontsize=11, color=INK)
    for axes in grid[-1]:
        axes.set_xlabel("distance in hops")
    add_title(figure, title, subtitle)
    return figure


def draw_histogram(axes: Axes, found: Tokenization, last: int) -> None:
    total = sum(found.histogram.values()) or 1
    shares = [0.0] * (last + 1)
    for hops, slots in found.histogram.items():
        shares[min(hops, last)] += slots / total
    axes.bar(range(last + 1), shares, width=0.8, color=COLOURS[0], zorder=2)
    if found.mean_distance is not None:
        axes.axvline(found.mean_distance, color=COLOURS[1], lw=1.6, ls="--", zorder=3)
        axes.text(
            0.985,
            0.86,
            f"mean {found.mean_distance:.2f}",
            transform=axes.transAxes,
            ha="right",
            fontsize=9,
            color=COLOURS[1],
        )
    axes.set_xticks(range(0, last + 1, 1 if last <= CLOSE_TICKS else 2))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    plain(axes)


def draw_grid(study: AnchorStudy) -> Figure:
    """Mean distances, and the share of different hashes, over |A| and k."""
    figure = new_figure(9.6, 4.3)
    left, right = figure.subplots(1, 2)
    figure.subplots_adjust(0.09, 0.13, 0.985, 0.76, wspace=0.22)
    cells = {(each.num_anchors, each.anchors_per_node): each for each in study.grid}
    far = {key: each.mean_distance for key, each in cells.items() if each.mean_distance is not None}
    draw_cells(left, far, title="mean distance in hops", shown=lambda value: f"{value:.2f}")
    distinct = {key: each.distinct_hashes for key, each in cells.items()}
    draw_cells(
        right,
        distinct,
        title="different hashes, % of the number of nodes",
        shown=lambda value: f"{100 * value:.1f}",
    )
    words = (
        f"{study.num_nodes:,} nodes, the mix of strategies, the k nearest anchors, up to "
        f"{study.settings.relations_per_node} relations in a hash"
    )
    add_title(figure, f"Anchors and anchors per node: {study.graph}", words)
    return figure
