"""One style for all figures: on a transparent ground, legible on light and dark pages."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from nodepiece.errors import InputError
from nodepiece.files import atomic_file
from nodepiece.graph.short_text import plural
from nodepiece.report.fonts import use_installed_fonts

log = logging.getLogger("nodepiece")

FIGURE_FORMATS = ("png", "svg", "pdf")

# A grey with a contrast of 4.3 to white and to black, for all text and lines of axes.
INK = "#72798a"
GRID = "#8a91a040"  # the last two digits: a quarter opaque
# The palette of Okabe and Ito, which colour-blind people can tell apart; instead of its yellow and
# black, which white or dark pages hide, two of Tol's colours.
COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#aa4499",
    "#999933",
)
OTHER_COLOUR = "#9aa0aa"  # what belongs to no group
HEAT = "cividis"  # looks the same with all kinds of colour vision


def check_figure(path: Path) -> None:
    """Refuse a file name whose ending is no format of figures."""
    if path.suffix.removeprefix(".").lower() not in FIGURE_FORMATS:
        raise InputError(f"{path} should end in {', '.join('.' + end for end in FIGURE_FORMATS)}")


def new_figure(width: float, height: float) -> Figure:
    """An empty transparent figure; sizes in inches."""
    figure = Figure(figsize=(width, height), dpi=160, facecolor="none")
    FigureCanvasAgg(figure)
    return figure


def add_title(figure: Figure, title: str, subtitle: str = "", *, left: float = 0.02) -> None:
    """The title and a line below it, at the top left; each has a fixed height in inches."""
    height = float(figure.get_figheight())
    figure.text(left, 1 - 0.3 / height, title, fontsize=13, color=INK, parse_math=False)
    if subtitle:
        figure.text(left, 1 - 0.55 / height, subtitle, fontsize=9.5, color=INK, parse_math=False)


def plain(axes: Axes, *, grid: str = "y") -> None:
    """Thin grid lines, no frame: grid is "x", "y", "both" or ""."""
    axes.set_facecolor("none")
    if grid:
        axes.grid(axis=grid, color=GRID, linewidth=0.8, zorder=0)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, length=0, labelsize=9.5)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    for label in (axes.xaxis.label, axes.yaxis.label, axes.title):
        label.set_color(INK)


@contextmanager
def drawing() -> Iterator[None]:
    """Settings of matplotlib while a figure is written: the same bytes every time, text as text.

    Matplotlib's warnings of missing glyphs, one a letter, are left out; `save_figure` has one.
    """
    chosen: dict[Any, Any] = {"svg.hashsalt": "nodepiece", "svg.fonttype": "none"}
    with matplotlib.rc_context(chosen), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from")
        yield


def save_figure(figure: Figure, path: Path, *, about: str = "") -> None:
    """Write a figure; the ending of `path` gives the format. `about` is kept in SVG and PNG."""
    check_figure(path)
    format = path.suffix.removeprefix(".").lower()
    metadata: dict[str, Any] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[
        format
    ]
    if about and format != "pdf":
        metadata["Description"] = about
    if format != "svg":  # its text is drawn with the fonts of who looks at it
        warn_of_missing(use_installed_fonts(figure), path)
    with drawing(), atomic_file(path) as partial:
        figure.savefig(partial, format=format, metadata=metadata)


def warn_of_missing(letters: str, path: Path) -> None:
    if letters:
        log.warning(
            "%s has boxes in place of %s, such as %s, which no installed font has; install a font "
            "with them, or write .svg, which is drawn with the fonts of the viewer",
            *(path, plural(len(letters), "letter"), letters[0]),
        )
