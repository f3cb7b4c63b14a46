"""Learning curves of runs: the loss and the scores of validation by epoch."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nodepiece.errors import InputError
from nodepiece.report.style import COLOURS, INK, OTHER_COLOUR, new_figure, plain

DASHED = (0, (3.2, 1.8))
NAMES = {"mrr": "MRR", "hits@10": "Hits@10", "roc_auc": "ROC-AUC", "prc_auc": "PRC-AUC"}


@dataclass(frozen=True)
class History:
    """What a run recorded of its epochs."""

    name: str
    epochs: list[dict[str, float]]
    best_epoch: int | None = None  # chosen by validation

    def points(self, key: str) -> tuple[list[float], list[float]]:
        """The epochs that have the value, and their values."""
        found = [each for each in self.epochs if isinstance(each.get(key), int | float)]
        return [each["epoch"] for each in found], [each[key] for each in found]


def read_history(folder: Path, name: str, best_epoch: int | None) -> History:
    """The history of a run folder; lines that a killed run left incomplete are an InputError."""
    path = folder / "history.jsonl"
    if not path.is_file():
        return History(name, [], best_epoch)
    epochs: list[dict[str, Any]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            epochs.append(json.loads(line))
        except ValueError as error:
            raise InputError(f"{path}, line {number}: this is not JSON; resume the run") from error
    return History(name, [each for each in epochs if "epoch" in each], best_epoch)


def draw_histories(histories: Sequence[History], metric: str) -> Figure:
    """The loss, and the metric on validation facts (solid) and training facts (dashed)."""
    figure = new_figure(9.6, 3.9 + 0.2 * ((len(histories) - 1) // 3))
    loss, score = figure.subplots(1, 2)
    bottom = 0.62 + 0.2 * ((len(histories) - 1) // 3)
    height = figure.get_figheight()
    figure.subplots_adjust(0.07, (bottom + 0.35) / height, 0.985, 1 - 0.35 / height, wspace=0.16)
    for number, history in enumerate(histories):
        colour = COLOURS[number] if number < len(COLOURS) else OTHER_COLOUR
        loss.plot(*history.points("loss"), color=colour, lw=1.6)
        score.plot(*history.points(f"train_{metric}"), color=colour, lw=1.2, ls=DASHED)
        epochs, values = history.points(f"valid_{metric}")
        score.plot(epochs, values, color=colour, lw=1.6, marker="o", ms=3)
        if history.best_epoch in epochs:
            best = values[epochs.index(history.best_epoch)]
            score.plot(history.best_epoch, best, "o", color=colour, ms=8)
    loss.set_title("loss", loc="left", fontsize=11, color=INK)
    score.set_title(f"validation {NAMES.get(metric, metric)}", loc="left", fontsize=11, color=INK)
    for axes in (loss, score):
        axes.set_xlabel("epoch")
        plain(axes, grid="both")
    add_names(figure, score, [history.name for history in histories])
    return figure


def add_names(figure: Figure, score: Axes, names: Sequence[str]) -> None:
    handles = [
        Line2D([], [], color=COLOURS[n] if n < len(COLOURS) else OTHER_COLOUR, lw=3, label=name)
        for n, name in enumerate(names)
    ]
    if any(line.get_linestyle() == "--" and len(line.get_xdata()) for line in score.lines):  # type: ignore[arg-type]
        handles.append(Line2D([], [], color=INK, lw=1.2, ls=DASHED, label="training facts"))
    legend = figure.legend(
        handles=handles,
        loc="lower left",
        ncols=3,
        frameon=False,
        fontsize=9.5,
        labelcolor=INK,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
