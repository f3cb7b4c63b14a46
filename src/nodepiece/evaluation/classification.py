"""Metrics of node classification: ROC-AUC, PRC-AUC and hard accuracy (section 4.3).

Each class is a binary classification. The areas are under the exact curves through every distinct
probability: nodes that tie are one step of the curve, a straight line.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.evaluation.report import Report, Scores
from nodepiece.graph.arrays import FloatArray

AREAS = ("roc_auc", "prc_auc")  # scores that need a class with both labels
THRESHOLD = 0.5  # a class is predicted where its probability is above it
CELLS_AT_ONCE = 2**24  # nodes times classes that are sorted together


@dataclass(frozen=True, eq=False)
class ClassificationReport:
    """Areas of each class; NaN for a class that all evaluated nodes have, or none of them."""

    roc_auc: FloatArray  # (num_classes,)
    prc_auc: FloatArray  # (num_classes,)
    hard_accuracy: float  # share of nodes whose classes are all right, and no other predicted
    num_positive: FloatArray  # (num_classes,) nodes that have the class

    def scores(self) -> Scores:
        """Means over classes with both labels, as published; no areas if there is no such class."""
        has_both = self.roc_auc == self.roc_auc  # not NaN
        areas = {"roc_auc": self.roc_auc[has_both], "prc_auc": self.prc_auc[has_both]}
        means = {name: float(found.mean()) for name, found in areas.items() if len(found)}
        return {**means, "hard_accuracy": self.hard_accuracy}

    def named(self, classes: tuple[str, ...]) -> Report:
        details = {
            name: {
                "roc_auc": float(self.roc_auc[position]),
                "prc_auc": float(self.prc_auc[position]),
                "count": int(self.num_positive[position]),
            }
            for position, name in enumerate(classes)
            if self.roc_auc[position] == self.roc_auc[position]  # not NaN
        }
        return Report(self.scores(), details={"classes": details})


def classification_report(probabilities: Tensor, labels: Tensor) -> ClassificationReport:
    """Compute the metrics from probabilities in [0, 1] and bool labels.

    Both are (num_nodes, num_classes).
    """
    if probabilities.isnan().any():
        raise InputError("probabilities contain NaN: training diverged; lower the learning rate")
    num_nodes = len(labels)
    width = max(1, CELLS_AT_ONCE // max(1, num_nodes))
    parts = zip(torch.split(probabilities, width, 1), torch.split(labels, width, 1), strict=True)
    areas = [areas_under_curves(some, theirs) for some, theirs in parts]
    roc_auc, prc_auc = (torch.cat(part).cpu().numpy() for part in zip(*areas, strict=True))
    is_right = ((probabilities > THRESHOLD) == labels).all(dim=1)
    return ClassificationReport(
        roc_auc,
        prc_auc,
        float(is_right.double().mean()) if num_nodes else 0.0,
        labels.sum(dim=0).double().cpu().numpy(),
    )


def areas_under_curves(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """ROC-AUC and PRC-AUC of every column, NaN without both labels: (num_classes,) twice.

    The curves are followed from the highest score down. A point of a curve is the last of the
    nodes that tie; `before` is the point before it.
    """
    scores, order = scores.T.sort(dim=1, descending=True)  # (num_classes, num_nodes)
    hits = labels.T.gather(1, order).double().cumsum(dim=1)
    place = torch.arange(1, scores.shape[1] + 1, device=scores.device, dtype=torch.float64)
    is_point = torch.ones_like(scores, dtype=torch.bool)
    is_point[:, :-1] = scores[:, :-1] != scores[:, 1:]
    last_point = torch.where(is_point, place.long(), 0).cummax(dim=1).values  # 0: the start
    before = torch.nn.functional.pad(last_point[:, :-1], (1, 0))
    num_positive, num_negative = hits[:, -1:], len(place) - hits[:, -1:]
    recall, false_share = hits / num_positive, (place - hits) / num_negative
    roc_auc = _area(false_share, recall, before, is_point, first=0.0)
    prc_auc = _area(recall, hits / place, before, is_point, first=1.0)
    has_both = (num_positive * num_negative)[:, 0] > 0
    return torch.where(has_both, roc_auc, torch.nan), torch.where(has_both, prc_auc, torch.nan)


def _area(x: Tensor, y: Tensor, before: Tensor, is_point: Tensor, *, first: float) -> Tensor:
    """The area under the line through the points (x, y), which starts at (0, first)."""
    last_x = torch.nn.functional.pad(x, (1, 0)).gather(1, before)
    last_y = torch.nn.functional.pad(y, (1, 0), value=first).gather(1, before)
    return torch.where(is_point, (x - last_x) * (y + last_y) / 2, 0.0).sum(dim=1)
