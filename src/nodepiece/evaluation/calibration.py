"""Calibration: from the score of a fact to the probability that it is true.

The logit is slope * score + intercept (Platt, 1999). Slope and intercept are those of the group of
a fact, its relation, shrunk towards those of all facts: a group with many facts has values of its
own, one with few nearly the common ones. Features of a fact that are no score add to the logit. An
isotonic regression on top of it is kept where it validates better (Zadrozny and Elkan, 2002).
A slope is never negative, so a higher score never gets a lower probability.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression, minimize
from scipy.special import expit, log_expit, logit

from nodepiece.errors import InputError
from nodepiece.graph.arrays import FloatArray, LongArray

INTERCEPT_PENALTY, SLOPE_PENALTY = 0.3, 3.0  # squared, of a group; the data has weight 1 a fact
FEATURE_PENALTY = 1.0
NUM_PARTS = 5  # of cross-validation
MIN_FACTS = 10  # true ones, and false ones, that a calibration needs
MIN_PROBABILITY = 1e-3  # of isotonic regression, whose steps may be 0 or 1


@dataclass(frozen=True, eq=False)
class Calibration:
    """A monotone function from scores, groups and features to probabilities."""

    mean: float  # of scores, which are standardized first
    spread: float
    slopes: FloatArray  # (num_groups + 1,) of standardized scores; the last: of other groups
    intercepts: FloatArray  # (num_groups + 1,)
    features: FloatArray  # (num_features,) weights
    steps: FloatArray | None = None  # (2, num_steps) logit and probability; None: no isotonic step
    log_losses: tuple[float, float] = (np.nan, np.nan)  # cross-validated: Platt, isotonic

    def __post_init__(self) -> None:
        numbers = [np.array([self.mean, self.spread]), self.slopes, self.intercepts, self.features]
        if not all(np.isfinite(part).all() for part in numbers):
            raise InputError("a calibration has a value that is not finite")
        if self.spread <= 0 or (self.slopes < 0).any():
            raise InputError("a calibration has a negative slope, which would change the order")
        if self.slopes.shape != self.intercepts.shape or self.features.ndim != 1:
            raise InputError("the slopes and intercepts of a calibration differ in number")
        if self.steps is not None and not (
            self.steps.ndim == 2
            and len(self.steps) == 2
            and (np.diff(self.steps, axis=1) >= 0).all()
        ):
            raise InputError("the isotonic steps of a calibration do not ascend")

    @property
    def kind(self) -> str:
        return "platt" if self.steps is None else "isotonic"

    def logits(self, scores: FloatArray, groups: LongArray, features: FloatArray) -> FloatArray:
        """(num_facts,), (num_facts,), (num_facts, num_features) -> (num_facts,).

        A group that is not known, such as -1, has the common slope and intercept.
        """
        last = len(self.slopes) - 1
        group = np.where((groups < 0) | (groups >= last), last, groups)
        standard = (scores - self.mean) / self.spread
        return self.slopes[group] * standard + self.intercepts[group] + features @ self.features

    def probabilities(
        self, scores: FloatArray, groups: LongArray, features: FloatArray
    ) -> FloatArray:
        """The probability of each fact: (num_facts,) from the same as `logits`."""
        logits = self.logits(scores, groups, features)
        return expit(logits) if self.steps is None else np.interp(logits, *self.steps)

    def to_json(self) -> dict[str, Any]:
        platt, isotonic = self.log_losses
        return {
            "kind": self.kind,
            "log_loss": {"platt": platt, "isotonic": isotonic},
            "mean": self.mean,
            "spread": self.spread,
            "slopes": self.slopes.tolist(),
            "intercepts": self.intercepts.tolist(),
            "features": self.features.tolist(),
            "steps": None if self.steps is None else self.steps.tolist(),
        }

    @staticmethod
    def from_json(content: dict[str, Any]) -> "Calibration":
        def array(name: str) -> FloatArray:
            return np.array(content[name], np.float64)

        log_losses = content["log_loss"]
        return Calibration(
            float(content["mean"]),
            float(content["spread"]),
            array("slopes"),
            array("intercepts"),
            array("features"),
            None if content["steps"] is None else array("steps"),
            (float(log_losses["platt"]), float(log_losses["isotonic"])),
        )


def calibrate(
    scores: FloatArray,
    groups: LongArray,
    features: FloatArray,
    is_true: NDArray[np.bool_],
    *,
    num_groups: int,
    parts: LongArray,
) -> Calibration:
    """Fit a calibration to scored facts; Platt or isotonic by cross-validated log-loss.

    scores, groups, is_true, parts: (num_facts,); features: (num_facts, num_features). `parts` has
    the part of cross-validation of each fact, from `random_parts`.
    """
    least = min(int(is_true.sum()), int((~is_true).sum()))
    if least < MIN_FACTS:
        raise InputError(
            f"a calibration needs at least {MIN_FACTS} true and {MIN_FACTS} false facts, got "
            f"{is_true.sum():,} and {(~is_true).sum():,}; give more"
        )
    if not np.isfinite(scores).all():
        raise InputError("scores are not finite: training diverged; lower the learning rate")
    held_out = np.empty(len(scores))  # logits of each fact by a fit without its part
    for each in range(NUM_PARTS):
        rest, mine = parts != each, parts == each
        fitted = fit_platt(scores[rest], groups[rest], features[rest], is_true[rest], num_groups)
        held_out[mine] = fitted.logits(scores[mine], groups[mine], features[mine])
    stepped = np.empty(len(scores))
    for each in range(NUM_PARTS):
        rest, mine = parts != each, parts == each
        stepped[mine] = np.interp(held_out[mine], *isotonic_steps(held_out[rest], is_true[rest]))
    log_losses = (log_loss(expit(held_out), is_true), log_loss(stepped, is_true))
    steps = isotonic_steps(held_out, is_true) if log_losses[1] < log_losses[0] else None
    whole = fit_platt(scores, groups, features, is_true, num_groups)
    return Calibration(
        whole.mean,
        whole.spread,
        whole.slopes,
        whole.intercepts,
        whole.features,
        steps,
        log_losses,
    )


def random_parts(num_facts: int, *, rng: np.random.Generator) -> LongArray:
    """Parts of cross-validation, of equal sizes: (num_facts,)."""
    return rng.permutation(num_facts) % NUM_PARTS


def fit_platt(
    scores: FloatArray,
    groups: LongArray,
    features: FloatArray,
    is_true: NDArray[np.bool_],
    num_groups: int,
) -> Calibration:
    """The most likely logits under normal priors on what groups and features add."""
    mean, spread = float(scores.mean()), float(scores.std()) or 1.0
    standard, num_features = (scores - mean) / spread, features.shape[1]
    sign = np.where(is_true, 1.0, -1.0)
    cuts = np.cumsum([1, 1, num_features, num_groups])

    def loss(values: FloatArray) -> tuple[float, FloatArray]:
        log_slope, intercept, weights, own, own_slope = np.split(values, cuts)
        slope = np.exp(log_slope + own_slope[groups])
        logit = slope * standard + intercept + own[groups] + features @ weights
        gradient = -sign * expit(-sign * logit)
        by_slope = gradient * slope * standard
        penalties = (
            (FEATURE_PENALTY, weights),
            (INTERCEPT_PENALTY, own),
            (SLOPE_PENALTY, own_slope),
        )
        total = -log_expit(sign * logit).sum()
        total += sum(penalty / 2 * (part**2).sum() for penalty, part in penalties)
        return float(total), np.concatenate(
            [
                [by_slope.sum(), gradient.sum()],
                gradient @ features + FEATURE_PENALTY * weights,
                np.bincount(groups, gradient, num_groups) + INTERCEPT_PENALTY * own,
                np.bincount(groups, by_slope, num_groups) + SLOPE_PENALTY * own_slope,
            ]
        )

    start = np.zeros(2 + num_features + 2 * num_groups)
    found = minimize(loss, start, jac=True, method="L-BFGS-B").x
    log_slope, intercept, weights, own, own_slope = np.split(found, cuts)
    return Calibration(
        mean,
        spread,
        np.exp(log_slope + np.append(own_slope, 0.0)),
        intercept + np.append(own, 0.0),
        weights,
    )


def isotonic_steps(logits: FloatArray, is_true: NDArray[np.bool_]) -> FloatArray:
    """Logits, ascending, and the probabilities there, not descending: (2, num_steps)."""
    distinct, inverse, count = np.unique(logits, return_inverse=True, return_counts=True)
    share = np.bincount(inverse, is_true) / count
    found = isotonic_regression(share, weights=count).x
    is_corner = np.ones(len(found), np.bool_)  # between two equal neighbours a point is not needed
    is_corner[1:-1] = (found[1:-1] != found[:-2]) | (found[1:-1] != found[2:])
    probabilities = found.clip(MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    return np.stack([distinct[is_corner], probabilities[is_corner]])


def both_ways(of_tails: FloatArray, of_heads: FloatArray) -> FloatArray:
    """The probability of each fact from that of its tail and that of its head: (num_facts,) each.

    The mean of the two logits. Each query has errors of its own, which partly cancel out.
    """
    least = MIN_PROBABILITY**2
    logits = [logit(part.clip(least, 1 - least)) for part in (of_tails, of_heads)]
    return expit((logits[0] + logits[1]) / 2).astype(np.float64)


def log_loss(probabilities: FloatArray, is_true: NDArray[np.bool_]) -> float:
    """The mean negative log-likelihood."""
    return float(-np.log(np.where(is_true, probabilities, 1 - probabilities).clip(1e-12)).mean())
