"""Draws docs/pieces.svg, the picture in the README: a graph, a node's pieces, a vector.

python scripts/draw_pieces.py docs/pieces.svg
"""

import sys

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

BLUE, ORANGE, GREEN = "#3b6fb6", "#d9822b", "#4d8f5b"
INK, GREY, PALE = "#20242c", "#6b7280", "#d6dae1"

# Facts of the embedded graph of countries: where each node is drawn, and what joins them.
PLACES = {
    "Uruguay": (2.15, 2.3),
    "Brazil": (2.75, 3.6),
    "Argentina": (0.95, 3.15),
    "Spanish": (0.7, 1.55),
    "Montevideo": (2.35, 0.85),
    "Americas": (3.75, 2.45),
    "Bolivia": (1.45, 4.25),
    "Portuguese": (4.1, 4.05),
}
NAME_BELOW = ("Uruguay", "Spanish")
EDGES = [
    ("Uruguay", "Brazil", "borders"),
    ("Uruguay", "Argentina", "borders"),
    ("Uruguay", "Spanish", "has language"),
    ("Uruguay", "Montevideo", "has capital"),
    ("Uruguay", "Americas", "in region"),
    ("Brazil", "Bolivia", ""),
    ("Brazil", "Americas", ""),
    ("Brazil", "Portuguese", ""),
    ("Argentina", "Bolivia", ""),
    ("Argentina", "Spanish", ""),
]
ANCHORS = {"Brazil": 1, "Spanish": 1, "Americas": 1, "Bolivia": 2}  # hops from Uruguay
RELATIONS = ("borders", "has capital", "has language", "in region")


def draw_graph(axes: Axes) -> None:
    for head, tail, relation in EDGES:
        is_own = head == "Uruguay"
        start, end = np.array(PLACES[head]), np.array(PLACES[tail])
        axes.plot(*zip(start, end, strict=True), color=GREEN if is_own else PALE, lw=1.6, zorder=1)
        if relation:
            x, y = start + 0.55 * (end - start)
            axes.text(
                x,
                y,
                relation,
                color=GREEN,
                fontsize=8,
                ha="center",
                va="center",
                zorder=2,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
            )
    for name, (x, y) in PLACES.items():
        colour = BLUE if name in ANCHORS else ORANGE if name == "Uruguay" else "#9aa3b0"
        axes.add_patch(Circle((x, y), 0.13, color=colour, zorder=3))
        strong = name in ANCHORS or name == "Uruguay"
        axes.text(
            *((x + 0.17, y - 0.36) if name in NAME_BELOW else (x + 0.17, y + 0.17)),
            name,
            fontsize=10,
            color=INK if strong else GREY,
            zorder=4,
        )


def draw_pieces(axes: Axes) -> list[float]:
    """Boxes for the pieces of Uruguay; returns the height of each."""
    rows = [(name, BLUE, str(hops)) for name, hops in ANCHORS.items()]
    rows += [(name, GREEN, "") for name in RELATIONS]
    heights = []
    for row, (name, colour, hops) in enumerate(rows):
        y = 4.2 - 0.44 * row - (0.24 if row >= len(ANCHORS) else 0)
        heights.append(y + 0.16)
        box = FancyBboxPatch(
            (5.75, y), 1.45, 0.32, boxstyle="round,pad=0.02", facecolor=colour, edgecolor="none"
        )
        axes.add_patch(box)
        axes.text(6.475, y + 0.155, name, color="white", fontsize=10, ha="center", va="center")
        if hops:
            label = f"{hops} hop" if hops == "1" else f"{hops} hops"
            axes.text(7.32, y + 0.155, label, color=GREY, fontsize=9, va="center")
    return heights


def draw_vector(axes: Axes, heights: list[float]) -> None:
    values = np.random.default_rng(4).uniform(0.12, 0.95, 12)
    top, bottom = max(heights) - 0.35, min(heights) + 0.35
    size = (top - bottom) / len(values)
    for cell, value in enumerate(values):
        axes.add_patch(
            Rectangle(
                (9.35, bottom + cell * size),
                0.42,
                size,
                facecolor=ORANGE,
                alpha=value,
                edgecolor="white",
                linewidth=1.2,
            )
        )
    centre = (top + bottom) / 2
    for height in heights:
        axes.add_patch(
            FancyArrowPatch(
                (8.0, height),
                (9.25, centre + (height - centre) * 0.35),
                arrowstyle="-|>",
                mutation_scale=8,
                color=PALE,
                linewidth=1.2,
                connectionstyle="arc3,rad=0",
            )
        )


def draw(path: str) -> None:
    matplotlib.rcParams["svg.hashsalt"] = "nodepiece"  # the same bytes every time
    figure = Figure(figsize=(10.4, 4.8), dpi=130, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0.1, 10.5)
    axes.set_ylim(0.5, 5.3)
    axes.set_aspect("equal")
    axes.axis("off")
    for x, title, subtitle in (
        (0.45, "A graph", "some nodes are anchors (blue)"),
        (5.75, "A node as pieces", "nearest anchors, distances, relations"),
        (9.05, "A vector", "made by an encoder"),
    ):
        axes.text(x, 5.05, title, fontsize=13, weight="bold", color=INK)
        axes.text(x, 4.8, subtitle, fontsize=9, color=GREY)
    draw_graph(axes)
    axes.add_patch(
        FancyArrowPatch((4.85, 2.6), (5.5, 2.6), arrowstyle="-|>", mutation_scale=16, color=GREY)
    )
    draw_vector(axes, draw_pieces(axes))
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


if __name__ == "__main__":
    draw(sys.argv[1])
