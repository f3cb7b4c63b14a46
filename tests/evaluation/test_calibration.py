"""Calibrated probabilities, and metrics of triple classification."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from nodepiece.errors import InputError
from nodepiece.evaluation.calibration import (
    Calibration,
    calibrate,
    fit_platt,
    isotonic_steps,
    log_loss,
    random_parts,
)
from nodepiece.evaluation.triple_classification import (
    best_threshold,
    decision_scores,
    probability_scores,
    reliability,
    thresholds_by_group,
)
from nodepiece.graph.arrays import FloatArray

ONE_GROUP = np.zeros(4000, np.int64)
NO_FEATURES = np.empty((4000, 0))
PARTS = random_parts(4000, rng=np.random.default_rng(0))


def drawn(logits: FloatArray, seed: int = 1) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
    return np.random.default_rng(seed).random(len(logits)) < expit(logits)


def test_the_probabilities_of_logistic_data_are_found() -> None:
    scores = np.random.default_rng(0).normal(5, 3, 4000)
    is_true = drawn(0.7 * scores - 3)

    found = calibrate(scores, ONE_GROUP, NO_FEATURES, is_true, num_groups=1, parts=PARTS)

    probabilities = found.probabilities(scores, ONE_GROUP, NO_FEATURES)
    assert np.abs(probabilities - expit(0.7 * scores - 3)).max() < 0.04


def test_one_group_is_fitted_like_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    scores = np.random.default_rng(0).normal(0, 1, 500)
    is_true = drawn(2 * scores - 1)
    ungrouped = np.zeros(500, np.int64)

    found = fit_platt(scores, ungrouped, np.empty((500, 0)), is_true, 1)
    expected = linear_model.LogisticRegression(C=np.inf).fit(scores[:, None], is_true)

    logits = found.logits(scores, ungrouped, np.empty((500, 0)))
    np.testing.assert_allclose(logits, expected.decision_function(scores[:, None]), atol=0.02)


def test_isotonic_steps_are_those_of_scikit_learn() -> None:
    isotonic = pytest.importorskip("sklearn.isotonic")
    logits = np.random.default_rng(0).normal(0, 1, 300).round(1)  # with ties
    is_true = drawn(logits)
    probe = np.linspace(-2, 2, 50)

    expected = isotonic.IsotonicRegression(out_of_bounds="clip").fit(logits, is_true)

    found = np.interp(probe, *isotonic_steps(logits, is_true))
    np.testing.assert_allclose(found, expected.predict(probe).clip(1e-3, 1 - 1e-3), atol=1e-6)


def test_isotonic_is_kept_where_scores_are_not_logistic() -> None:
    scores = np.random.default_rng(0).uniform(0, 1, 4000)
    is_true = np.random.default_rng(1).random(4000) < np.where(scores > 0.5, 0.9, 0.4)

    found = calibrate(scores, ONE_GROUP, NO_FEATURES, is_true, num_groups=1, parts=PARTS)

    assert found.kind == "isotonic" and found.log_losses[1] < found.log_losses[0]
    probe = found.probabilities(np.array([0.1, 0.4, 0.6, 0.9]), ONE_GROUP[:4], NO_FEATURES[:4])
    assert np.abs(probe - [0.4, 0.4, 0.9, 0.9]).max() < 0.06


def test_only_a_group_with_many_facts_has_its_own_probabilities() -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.normal(0, 1, 4000), np.repeat([0, 1], 2000)
    groups[0] = 2  # a single fact
    is_true = drawn(scores + np.where(groups == 0, 3, -3))

    found = fit_platt(scores, groups, NO_FEATURES, is_true, 3)
    probe = found.probabilities(np.zeros(4), np.array([0, 1, 2, -1]), NO_FEATURES[:4])

    assert probe[0] > 0.9 and probe[1] < 0.1
    assert 0.15 < probe[2] < 0.85 and 0.4 < probe[3] < 0.6


def test_features_change_probabilities() -> None:
    rng = np.random.default_rng(0)
    scores, features = rng.normal(0, 1, 4000), rng.integers(0, 2, (4000, 1)).astype(float)
    is_true = drawn(scores + 2 * features[:, 0] - 1)

    found = fit_platt(scores, ONE_GROUP, features, is_true, 1)

    low, high = found.probabilities(np.zeros(2), ONE_GROUP[:2], np.array([[0.0], [1.0]]))
    assert low == pytest.approx(expit(-1), abs=0.05) and high == pytest.approx(expit(1), abs=0.05)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000))
def test_a_higher_score_never_gets_a_lower_probability(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, groups = rng.normal(0, 1, 60), rng.integers(0, 3, 60)
    features, is_true = rng.normal(0, 1, (60, 2)), rng.permutation(np.arange(60) % 2 == 0)

    parts = random_parts(60, rng=rng)
    found = calibrate(scores, groups, features, is_true, num_groups=3, parts=parts)

    for group in (0, 1, 2, -1):
        probe = np.sort(rng.normal(0, 2, 40))
        same = np.full(40, group), np.repeat(features[:1], 40, axis=0)
        assert (np.diff(found.probabilities(probe, *same)) >= 0).all()


def test_a_calibration_is_written_and_read_as_json() -> None:
    steps = np.array([[-1.0, 2.0], [0.1, 0.7]])
    one = Calibration(1.0, 2.0, np.ones(2), np.zeros(2), np.ones(1), steps, (0.5, 0.4))

    again = Calibration.from_json(one.to_json())

    probe = np.array([0.0, 3.0]), np.array([0, 1]), np.ones((2, 1))
    assert np.array_equal(one.probabilities(*probe), again.probabilities(*probe))
    assert again.kind == "isotonic" and again.log_losses == (0.5, 0.4)


@pytest.mark.parametrize(
    ("slope", "steps", "message"),
    [
        (-1.0, None, "negative slope"),
        (float("nan"), None, "not finite"),
        (1.0, np.array([[0.0, 1.0], [0.9, 0.1]]), "do not ascend"),
    ],
)
def test_a_calibration_that_would_change_the_order_is_refused(
    slope: float, steps: FloatArray | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Calibration(0.0, 1.0, np.array([slope]), np.zeros(1), np.empty(0), steps)


def test_too_few_facts_are_refused() -> None:
    few = np.arange(12.0)

    with pytest.raises(InputError, match="at least 10 true and 10 false facts, got 3 and 9"):
        calibrate(
            few,
            np.zeros(12, np.int64),
            np.empty((12, 0)),
            few < 3,
            num_groups=1,
            parts=PARTS[:12],
        )


def test_metrics_worked_out_by_hand() -> None:
    """Four facts: 0.9 true, 0.8 false, 0.3 true, 0.1 false."""
    probabilities = np.array([0.9, 0.8, 0.3, 0.1])
    is_true = np.array([True, False, True, False])

    found = probability_scores(probabilities, is_true)

    assert found["accuracy"] == 0.5 and found["f1"] == 0.5 and found["count"] == 4
    assert found["roc_auc"] == 0.75  # of four pairs, three are in the right order
    assert found["brier"] == pytest.approx((0.01 + 0.64 + 0.49 + 0.01) / 4)
    assert found["calibration_error"] == pytest.approx((0.1 + 0.8 + 0.7 + 0.1) / 4)
    assert log_loss(probabilities[:1], is_true[:1]) == pytest.approx(-np.log(0.9))


def test_bins_of_equal_width_have_what_was_said_and_what_was_true() -> None:
    found = reliability(np.array([0.1, 0.3, 1.0]), np.array([False, True, True]), 2)

    assert found.count.tolist() == [2, 1]
    assert found.probability.tolist() == [0.2, 1.0] and found.share_true.tolist() == [0.5, 1.0]
    assert found.error == pytest.approx(0.3 * 2 / 3)


def test_perfect_probabilities_have_a_small_calibration_error() -> None:
    said = np.random.default_rng(0).random(20_000)

    assert reliability(said, np.random.default_rng(1).random(20_000) < said).error < 0.02


def test_a_threshold_lies_where_mistakes_are_fewest() -> None:
    scores = np.array([1.0, 2.0, 3.0, 4.0])

    assert best_threshold(scores, np.array([False, False, True, True])) == 2.5
    assert best_threshold(scores, np.array([False, True, False, True])) == 3.5
    assert best_threshold(scores, np.zeros(4, np.bool_)) == float("inf")
    assert best_threshold(scores, np.ones(4, np.bool_)) == float("-inf")
    assert best_threshold(np.ones(3), np.array([True, False, False])) == float("inf")
    assert best_threshold(scores[:0], np.empty(0, np.bool_)) == float("inf")


def test_groups_have_thresholds_of_their_own() -> None:
    scores, groups = np.array([1.0, 2.0, 5.0, 6.0]), np.array([0, 0, 1, 1])
    is_true = np.array([False, True, False, True])

    assert thresholds_by_group(scores, groups, is_true, 3).tolist() == [1.5, 5.5, 5.5]


def test_nothing_accepted_and_nothing_true_has_no_f1() -> None:
    none = np.zeros(2, np.bool_)

    assert decision_scores(none, none) == {"accuracy": 1.0, "f1": 0.0}
