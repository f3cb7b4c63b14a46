"""A figure of the training curves of node classification, for the page of results."""

import hashlib
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nodepiece.report.class_curves import MODELS, SHARES, Curve
from nodepiece.report.compared import CLASS_TITLES
from nodepiece.report.measured import CLASS_SCORES
from nodepiece.report.style import COLOURS as PALETTE
from nodepiece.report.style import INK, new_figure, plain

COLOURS = {"paper": PALETTE[0], "paper-relations-only": PALETTE[5], "compgcn": PALETTE[1]}
# Where two curves coincide, the wider one is visible on both sides of the narrower one above it.
WIDTHS = {"compgcn": 1.7, "paper-relations-only": 2.8, "paper": 1.5}
DASHED = (0, (3.2, 1.8))
BETWEEN_TICKS = 500  # epochs
LOWEST = {"roc_auc": 0.7, "prc_auc": 0.0, "hard_accuracy": 0.0}


def draw(curves: dict[tuple[int, str], Curve]) -> Figure:
    """A row for each share of the labels, a column for each score."""
    figure = new_figure(10.4, 8.6)
    grid = figure.subplots(len(SHARES), len(CLASS_SCORES), sharex=True, sharey="col")
    figure.subplots_adjust(0.085, 0.065, 0.985, 0.86, wspace=0.24, hspace=0.16)
    last_epoch = max(curve.epochs[-1] for curve in curves.values())
    for row, share in zip(grid, SHARES, strict=True):
        row[0].set_ylabel(f"{share} % of the labels", fontsize=11.5, color=INK, labelpad=8)
        for axes, score in zip(row, CLASS_SCORES, strict=True):
            for model, width in WIDTHS.items():
                curve = curves[share, model]
                draw_curve(axes, curve, score, colour=COLOURS[model], width=width)
            style(axes, score, last_epoch)
    for axes, title in zip(grid[0], CLASS_TITLES, strict=True):
        axes.set_title(title, fontsize=12, color=INK, loc="left")
    for axes in grid[-1]:
        axes.set_xlabel("epoch", fontsize=10.5, color=INK)
    add_legends(figure)
    return figure


def draw_curve(axes: Axes, curve: Curve, score: str, *, colour: str, width: float) -> None:
    train, valid = (curve.scores[f"{part}_{score}"] for part in ("train", "valid"))
    axes.plot(curve.epochs, train, color=colour, lw=0.75 * width, ls=DASHED)
    axes.plot(curve.epochs, valid, color=colour, lw=width)
    height = curve.at(curve.best_epoch, f"valid_{score}")
    axes.plot(curve.best_epoch, height, "o", color=colour, mec="none", ms=7.5, zorder=3)


def style(axes: Axes, score: str, last_epoch: int) -> None:
    ticks = range(0, last_epoch + BETWEEN_TICKS, BETWEEN_TICKS)
    axes.set_xlim(0, ticks[-1] * 1.01)
    axes.set_ylim(LOWEST[score], 1.015)
    axes.set_xticks(ticks, [f"{epoch:,}" for epoch in ticks])
    plain(axes, grid="both")


def add_legends(figure: Figure) -> None:
    """What the colours are, and below it what the lines are."""
    models = [Line2D([], [], color=COLOURS[key], lw=3.2, label=MODELS[key]) for key in COLOURS]
    lines = [
        Line2D([], [], color=INK, lw=1.5, ls=DASHED, label="training nodes"),
        Line2D([], [], color=INK, lw=1.9, label="validation nodes"),
        Line2D([], [], color=INK, lw=0, marker="o", ms=7.5, label="the epoch chosen by validation"),
    ]
    for handles, height in ((models, 1.0), (lines, 0.962)):
        figure.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(0.075, height),
            ncols=len(handles),
            frameon=False,
            fontsize=11,
            labelcolor=INK,
        )


def digest(path: Path) -> str:
    """A hash of the numbers, which the picture contains."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
