"""Metrics of triple classification: whether facts are true or false."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from nodepiece.evaluation.classification import areas_under_curves
from nodepiece.evaluation.report import Scores
from nodepiece.graph.arrays import FloatArray, LongArray

NUM_BINS = 15  # of expected calibration error and the reliability diagram, of equal width


@dataclass(frozen=True, eq=False)
class Reliability:
    """Facts in bins of probability: the mean probability, and the share of true facts."""

    count: LongArray  # (num_bins,) facts
    probability: FloatArray  # (num_bins,) mean; NaN: the bin is empty
    share_true: FloatArray  # (num_bins,) NaN: the bin is empty

    @property
    def error(self) -> float:
        """The expected calibration error: the mean gap over facts (Guo et al., 2017)."""
        gap = np.abs(self.probability - self.share_true)
        return float(np.nansum(gap * self.count) / max(1, self.count.sum()))


def reliability(
    probabilities: FloatArray, is_true: NDArray[np.bool_], num_bins: int = NUM_BINS
) -> Reliability:
    """Facts by probability in bins of equal width; (num_facts,) twice."""
    place = np.minimum((probabilities * num_bins).astype(np.int64), num_bins - 1)
    count = np.bincount(place, minlength=num_bins)
    sums = [np.bincount(place, values, num_bins) for values in (probabilities, is_true)]
    with np.errstate(invalid="ignore"):
        return Reliability(count, sums[0] / count, sums[1] / count)


def probability_scores(probabilities: FloatArray, is_true: NDArray[np.bool_]) -> Scores:
    """Accuracy and F1 at a probability of 0.5, ROC-AUC, Brier score, calibration error."""
    area = areas_under_curves(
        torch.from_numpy(probabilities)[:, None], torch.from_numpy(is_true)[:, None]
    )[0]
    return {
        **decision_scores(probabilities > 0.5, is_true),
        "roc_auc": float(area),
        "brier": float(((probabilities - is_true) ** 2).mean()),
        "calibration_error": reliability(probabilities, is_true).error,
        "count": len(is_true),
    }


def decision_scores(is_accepted: NDArray[np.bool_], is_true: NDArray[np.bool_]) -> Scores:
    """Accuracy, and F1 of the true facts; 0 if none is accepted and none is true."""
    hits = (is_accepted & is_true).sum()
    f1 = 2 * hits / max(1, is_accepted.sum() + is_true.sum())
    return {"accuracy": float((is_accepted == is_true).mean()), "f1": float(f1)}


def best_threshold(scores: FloatArray, is_true: NDArray[np.bool_]) -> float:
    """A score above which facts are taken for true with the fewest mistakes.

    It lies between two scores; the highest of equally good ones is taken. It is inf without facts.
    """
    if not len(scores):
        return float("inf")
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    gain = np.cumsum(np.where(is_true[order], 1, -1))  # of accepting this fact and all before it
    is_end = np.append(ordered[1:] != ordered[:-1], True)  # equal scores are accepted together
    gain = np.where(is_end, gain, -len(scores) - 1)
    best = int(gain.argmax())
    if gain[best] <= 0:
        return float("inf")
    if best == len(scores) - 1:
        return float("-inf")
    return float((ordered[best] + ordered[best + 1]) / 2)


def thresholds_by_group(
    scores: FloatArray, groups: LongArray, is_true: NDArray[np.bool_], num_groups: int
) -> FloatArray:
    """The best threshold of each group, (num_groups,); that of all for a group without facts."""
    common = best_threshold(scores, is_true)
    found = np.full(num_groups, common)
    for group in np.unique(groups).tolist():
        mine = groups == group
        found[group] = best_threshold(scores[mine], is_true[mine])
    return found
