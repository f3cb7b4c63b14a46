"""The numbers and the figure of a sweep over |A| and k, beside the paper's."""

import shlex
from typing import Any

from matplotlib.figure import Figure

from nodepiece.report.heat_map import Cells, draw_cells
from nodepiece.report.measured import TITLES, format_score, training_seconds
from nodepiece.report.style import add_title, new_figure
from nodepiece.settings import load_experiment
from nodepiece.tasks.sweep import SweepSettings

SCORES = {"mrr": "MRR", "hits@10": "Hits@10"}
# The paper's figures of Hits@10 and MRR, by dataset and |A|, then k.
PAPER: dict[str, dict[str, dict[int, dict[int, float]]]] = {
    "wn18rr": {
        "hits@10": {
            25: {5: 0.0864, 10: 0.1611, 15: 0.2098, 20: 0.2594, 25: 0.265},
            50: {5: 0.1402, 10: 0.2774, 20: 0.4034, 30: 0.4371, 40: 0.4518, 50: 0.4614},
            100: {
                5: 0.2298,
                10: 0.3993,
                20: 0.4595,
                30: 0.4639,
                40: 0.482,
                50: 0.4795,
                100: 0.4903,
            },
            500: {
                5: 0.4231,
                10: 0.4682,
                20: 0.4923,
                30: 0.4988,
                40: 0.5027,
                50: 0.5063,
                100: 0.5082,
            },
            1000: {5: 0.455, 10: 0.4783, 20: 0.4926, 30: 0.4997},
        },
        "mrr": {
            25: {5: 0.043, 10: 0.0711, 15: 0.0912, 20: 0.1108, 25: 0.1205},
            50: {5: 0.0601, 10: 0.1194, 20: 0.2152, 30: 0.264, 40: 0.2986, 50: 0.3065},
            100: {5: 0.0933, 10: 0.198, 20: 0.296, 30: 0.3292, 40: 0.3582, 50: 0.361, 100: 0.3666},
            500: {
                5: 0.2243,
                10: 0.3225,
                20: 0.3642,
                30: 0.3733,
                40: 0.3885,
                50: 0.3954,
                100: 0.397,
            },
            1000: {5: 0.2653, 10: 0.3405, 20: 0.3743, 30: 0.3879},
        },
    },
    "fb15k-237": {
        "hits@10": {
            25: {5: 0.372, 10: 0.396, 15: 0.405, 20: 0.407, 25: 0.403},
            50: {5: 0.386, 10: 0.389, 20: 0.412, 30: 0.415, 40: 0.417},
            100: {5: 0.394, 10: 0.403, 20: 0.414, 30: 0.417, 40: 0.416},
            500: {5: 0.408, 10: 0.413, 20: 0.415, 30: 0.416, 40: 0.417},
            1000: {5: 0.411, 10: 0.418, 20: 0.420, 30: 0.421, 40: 0.421},
        },
        "mrr": {
            25: {5: 0.223, 10: 0.236, 15: 0.243, 20: 0.245, 25: 0.243},
            50: {5: 0.231, 10: 0.238, 20: 0.245, 30: 0.249, 40: 0.25},
            100: {5: 0.235, 10: 0.241, 20: 0.249, 30: 0.245, 40: 0.247},
            500: {5: 0.247, 10: 0.248, 20: 0.250, 30: 0.247, 40: 0.252},
            1000: {5: 0.250, 10: 0.254, 20: 0.256, 30: 0.254, 40: 0.255},
        },
    },
}


def sweep_numbers(settings: SweepSettings) -> dict[str, Any]:
    """The scores of the finished runs, with what reproduces them."""
    experiment = load_experiment(settings.experiment, settings.overrides)
    cells = []
    for cell in settings.cells:
        found = settings.metrics(cell)
        if found is not None:
            cells.append(
                {
                    "num_anchors": cell.num_anchors,
                    "anchors_per_node": cell.anchors_per_node,
                    **{key: found[key] for key in (*SCORES, "parameters", "epochs", "device")},
                    "seconds": training_seconds(found),
                    "command": found["command"],
                }
            )
    return {
        "what": "scores of an experiment over a grid of |A| and k, one seed",
        "command": command(settings),
        "experiment": experiment.name,
        "dataset": experiment.dataset,
        "overrides": list(settings.overrides),
        "seed": experiment.seed,
        "cells": cells,
    }


def command(settings: SweepSettings) -> str:
    """The command that trains the same runs."""
    words = ["nodepiece", "sweep", settings.experiment]
    words += ["--anchors", ",".join(map(str, settings.anchors))]
    words += ["--anchors-per-node", ",".join(map(str, settings.per_node))]
    words += [word for override in settings.overrides for word in ("--set", override)]
    words += [] if settings.device is None else ["--device", settings.device]
    return shlex.join([*words, "-o", str(settings.folder)])


def draw_sweep(numbers: dict[str, Any]) -> Figure:
    """Heat maps of MRR and Hits@10; below them the paper's, where it has some."""
    dataset = str(numbers["dataset"])
    paper = PAPER.get(dataset, {})
    rows = 2 if paper else 1
    height = 1.0 + 3.3 * rows
    figure = new_figure(9.6, height)
    panels = figure.subplots(rows, 2, squeeze=False)
    figure.subplots_adjust(0.09, 0.55 / height, 0.985, 1 - 1.0 / height, wspace=0.22, hspace=0.42)
    for column, (key, name) in enumerate(SCORES.items()):
        ours: Cells = {
            (cell["num_anchors"], cell["anchors_per_node"]): cell[key] for cell in numbers["cells"]
        }
        draw_cells(panels[0][column], ours, title=name, shown=format_score)
        if paper:
            theirs = {(a, k): score for a, line in paper[key].items() for k, score in line.items()}
            title = f"{name} in the paper"
            draw_cells(panels[1][column], theirs, title=title, shown=format_score)
    changed = f" with {', '.join(numbers['overrides'])}" if numbers["overrides"] else ""
    title = f"Anchors and anchors per node: {TITLES.get(dataset, dataset)}"
    add_title(figure, title, f"test facts, {numbers['experiment']}{changed}, one seed")
    return figure
