"""What evaluation is asked for: defaults, and values that are refused."""

from typing import Any

import pytest

from nodepiece.errors import InputError
from nodepiece.evaluation.settings import EvaluationSettings


def test_the_defaults_are_the_published_protocols() -> None:
    assert vars(EvaluationSettings()) == {
        "memory_gigabytes": 1.0,
        "candidates": "all",
        "test_facts": 0,
        "validation_facts": 0,
        "num_negatives": 50,
        "num_draws": 10,
        "draws_known": False,
        "held_out_share": 0.05,
        "unseen_relations": "refuse",
        "direct_relations": False,
    }


def test_a_gigabyte_is_2_to_the_30_bytes() -> None:
    assert EvaluationSettings(memory_gigabytes=0.5).memory_budget == 536_870_912


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"memory_gigabytes": 0.0}, "memory_gigabytes must be above 0, .* got 0.0, 0, 0"),
        ({"memory_gigabytes": float("nan")}, "memory_gigabytes must be above 0"),
        ({"validation_facts": -1}, "validation_facts and test_facts 0 or more, got 1.0, -1, 0"),
        ({"test_facts": -1}, "validation_facts and test_facts 0 or more, got 1.0, 0, -1"),
        ({"num_negatives": 0}, "must be at least 1, got 0, 10"),
        ({"num_draws": 0}, "must be at least 1, got 50, 0"),
        ({"candidates": "some"}, "candidates = 'some' is not known; it is one of all, given"),
        ({"unseen_relations": "keep"}, "'keep' is not known; it is one of refuse, drop, mean"),
    ],
)
def test_each_wrong_value_is_refused_by_itself(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        EvaluationSettings(**wrong)


def test_the_smallest_values_are_accepted() -> None:
    settings = EvaluationSettings(num_negatives=1, num_draws=1, test_facts=1, validation_facts=1)
    assert settings.num_negatives == settings.num_draws == 1
