"""Draws docs/pieces.svg, the picture in the README: a graph, a node's pieces, a vector.

python -m scripts.draw_pieces docs/pieces.svg
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

from nodepiece.report.style import COLOURS, INK, OTHER_COLOUR, new_figure, save_figure

BLUE, ORANGE, GREEN = COLOURS[0], COLOURS[1], "#00805e"  # the palette's green, under white text
PALE = "#8a91a070"
LETTER_WIDTH, HALF_HEIGHT = 0.06, 0.13  # of labels on edges

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
NAME_PLACES = {  # from the node; others have their name to the upper right
    "Uruguay": (0.17, -0.36),
    "Spanish": (0.17, -0.36),
    "Brazil": (0.2, -0.14),
}
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
        middle, gap = start + 0.55 * (end - start), gap_for(relation, end - start)
        lines = [(start, middle - gap), (middle + gap, end)] if relation else [(start, end)]
        for line in lines:
            colour = COLOURS[2] if is_own else PALE
            axes.plot(*zip(*line, strict=True), color=colour, lw=1.6, zorder=1)
        if relation:
            x, y = middle
            axes.text(x, y, relation, color=COLOURS[2], fontsize=10, ha="center", va="center")
    for name, (x, y) in PLACES.items():
        colour = BLUE if name in ANCHORS else ORANGE if name == "Uruguay" else OTHER_COLOUR
        axes.add_patch(Circle((x, y), 0.13, color=colour, zorder=3))
        strong = name in ANCHORS or name == "Uruguay"
        right, up = NAME_PLACES.get(name, (0.17, 0.17))
        axes.text(
            x + right,
            y + up,
            name,
            fontsize=11,
            color=INK,
            weight="bold" if strong else "normal",
            zorder=4,
        )


def gap_for(label: str, direction: np.ndarray) -> np.ndarray:
    """How much of an edge a label hides, to each side of its middle."""
    across, up = np.abs(direction)
    length = min(LETTER_WIDTH * len(label) / max(across, 1e-9), HALF_HEIGHT / max(up, 1e-9))
    return direction * min(length, 0.4)


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
        axes.text(6.475, y + 0.155, name, color="white", fontsize=11, ha="center", va="center")
        if hops:
            label = f"{hops} hop" if hops == "1" else f"{hops} hops"
            axes.text(7.32, y + 0.155, label, color=INK, fontsize=10, va="center")
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
                edgecolor=INK,
                linewidth=0.6,
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
    figure = new_figure(10.4, 4.8)
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
        axes.text(x, 4.78, subtitle, fontsize=10, color=INK)
    draw_graph(axes)
    axes.add_patch(
        FancyArrowPatch((4.85, 2.6), (5.5, 2.6), arrowstyle="-|>", mutation_scale=16, color=INK)
    )
    draw_vector(axes, draw_pieces(axes))
    save_figure(figure, Path(path))


if __name__ == "__main__":
    draw(sys.argv[1])
