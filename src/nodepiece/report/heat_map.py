"""Heat maps of numbers over |A|, the number of anchors, and k, the anchors of a node."""

from collections.abc import Callable, Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from nodepiece.report.style import HEAT, INK

Cells = Mapping[tuple[int, int], float]  # (|A|, k) -> a number


def draw_cells(axes: Axes, cells: Cells, *, title: str, shown: Callable[[float], str]) -> None:
    """A heat map with the number in each cell; combinations that are not there stay empty."""
    anchors = sorted({number for number, _ in cells})
    per_node = sorted({k for _, k in cells})
    values = np.full((len(anchors), len(per_node)), np.nan)
    for (number, k), value in cells.items():
        values[anchors.index(number), per_node.index(k)] = value
    low, high = np.nanmin(values), np.nanmax(values)
    if low == high:  # one colour for all
        low, high = low - 0.5, high + 0.5
    axes.imshow(values, cmap=HEAT, vmin=low, vmax=high, aspect="auto", origin="lower")
    colours = matplotlib.colormaps[HEAT]
    for row, column in np.argwhere(~np.isnan(values)).tolist():
        value = float(values[row, column])
        red, green, blue, _ = colours((value - low) / (high - low))
        axes.text(
            column,
            row,
            shown(value),
            ha="center",
            va="center",
            fontsize=10,
            color=text_colour(red, green, blue),
        )
    label_axes(axes, anchors, per_node)
    axes.set_title(title, loc="left", fontsize=11, color=INK)


def text_colour(red: float, green: float, blue: float) -> str:
    """Black or white: what has more contrast to a colour, by the definition of WCAG 2."""
    parts = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (red, green, blue)
    )
    luminance = float(np.dot(list(parts), (0.2126, 0.7152, 0.0722)))
    return "white" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "black"


def label_axes(axes: Axes, anchors: Sequence[int], per_node: Sequence[int]) -> None:
    axes.set_xticks(range(len(per_node)), [str(k) for k in per_node])
    axes.set_yticks(range(len(anchors)), [f"{number:,}" for number in anchors])
    axes.set_xlabel("k, anchors per node", color=INK)
    axes.set_ylabel("|A|, anchors", color=INK)
    axes.set_facecolor("none")
    axes.tick_params(colors=INK, length=0, labelsize=9.5)
    for spine in axes.spines.values():
        spine.set_visible(False)
