"""A map of nodes as a page to look around in, or as a picture."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nodepiece.errors import InputError
from nodepiece.files import atomic_file
from nodepiece.graph.short_text import plural
from nodepiece.report.groups import OTHER
from nodepiece.report.map import NodeMap
from nodepiece.report.map_names import LETTER_POINTS, MAX_LETTERS, place_names
from nodepiece.report.page import fill
from nodepiece.report.style import (
    COLOURS,
    FIGURE_FORMATS,
    INK,
    OTHER_COLOUR,
    add_title,
    new_figure,
    save_figure,
)

PAGE = ".html"
WIDTH, TITLE_HEIGHT = 7.6, 0.7  # inches
MARGIN = 0.08  # around the nodes, whose positions are between -1 and 1


def check_map_file(path: Path) -> None:
    """Refuse a file name whose ending is neither a page nor a picture."""
    endings = (PAGE, *(f".{each}" for each in FIGURE_FORMATS))
    if path.suffix.lower() not in endings:
        raise InputError(f"{path} should end in {', '.join(endings)}")


def write_map(found: NodeMap, path: Path, *, title: str, grouping: str) -> None:
    """Write a map; the ending of `path` says whether it is a page or a picture."""
    check_map_file(path)
    if path.suffix.lower() != PAGE:
        save_figure(draw_map(found, title=title), path)
        return
    with atomic_file(path) as partial:
        partial.write_text(map_page(found, title=title, grouping=grouping), encoding="utf-8")


def map_page(found: NodeMap, *, title: str, grouping: str) -> str:
    """A page with everything in it: names on hover, search, groups to switch on and off."""
    data = found.to_json()
    del data["groups"]
    data |= {
        "group": found.group.tolist(),
        "about": about(found),
        "colours": list(COLOURS),
        "other": OTHER,
        "other_colour": OTHER_COLOUR,
    }
    return fill("map.html", {"title": title, "grouping": grouping, "data": data})


def about(found: NodeMap) -> str:
    shown, every = len(found.names), found.num_nodes_in_run
    nodes = plural(every, "node") if shown == every else f"{shown:,} of {plural(every, 'node')}"
    return f"{found.method} of the vectors of {nodes}: near each other if they are similar."


def draw_map(found: NodeMap, *, title: str) -> Figure:
    """A picture with the names of the commonest anchors that do not overlap."""
    wide, high = np.ptp(found.positions, axis=0) + MARGIN if len(found.names) else (2.0, 2.0)
    legend_height = 0.15 + 0.23 * -(-len(found.group_names) // 3)  # inches
    height = float(np.clip(WIDTH * high / wide, 3.0, 1.3 * WIDTH))
    figure = new_figure(WIDTH, TITLE_HEIGHT + height + legend_height)
    total = TITLE_HEIGHT + height + legend_height
    axes = figure.add_axes((0.02, legend_height / total, 0.96, height / total))
    size = float(np.clip(20_000 / max(1, len(found.names)), 1.2, 22))
    for group in reversed(range(len(found.group_names))):
        x, y = found.positions[found.group == group].T
        axes.scatter(x, y, s=size, c=colour_of(found, group), linewidths=0, rasterized=True)
    anchors = np.flatnonzero(found.is_anchor)
    x, y = found.positions[anchors].T
    axes.scatter(x, y, s=2.2 * size + 8, facecolors="none", edgecolors=INK, linewidths=0.9)
    units = max(wide / (0.96 * WIDTH), high / height)  # of the map, in an inch
    for label in place_names(
        found.names, found.positions, anchors.tolist(), units=units, ground=(wide, high)
    ):
        axes.text(
            *label.centre,
            label.text,
            ha="center",
            va="center",
            fontsize=LETTER_POINTS,
            color=INK,
            parse_math=False,
        )
    axes.set_xlim(-wide / 2, wide / 2)
    axes.set_ylim(-high / 2, high / 2)
    axes.set_aspect("equal")
    axes.axis("off")
    rings = f" Rings: {len(anchors)} common anchors." if len(anchors) else ""
    add_title(figure, title, about(found) + rings)
    handles = [
        Line2D([], [], lw=0, marker="o", ms=6, color=colour_of(found, group), label=short(name))
        for group, name in enumerate(found.group_names)
        if (found.group == group).any()
    ]
    legend = figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.01, 0.005),
        ncols=3,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        handletextpad=0.2,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def short(name: str) -> str:
    """A name as a legend has room for: its end, which says more of a path than its beginning."""
    return name if len(name) <= MAX_LETTERS + 4 else "…" + name[-MAX_LETTERS - 3 :]


def colour_of(found: NodeMap, group: int) -> str:
    return OTHER_COLOUR if found.group_names[group] == OTHER else COLOURS[group]
