"""How much walks count for beside vectors, chosen by validation when training is done."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from nodepiece.decoders.walks import Walks
from nodepiece.errors import InputError
from nodepiece.settings import Experiment
from nodepiece.training.distribution import current_processes
from nodepiece.training.loop import Metrics

COEFFICIENTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)  # 0: vectors alone


def choose_walk_coefficient(
    walks: Walks | None,
    experiment: Experiment,
    validate: Callable[[], Metrics],
    *,
    log: Callable[[str], None],
) -> dict[str, Any]:
    """Set the best coefficient by `training.metric`; returns its entries of metrics.json.

    Nothing happens without `walks.choose_coefficient`. The coefficient of the settings
    is tried too, and of equally good ones the nearest to it is chosen.
    """
    settings, metric = experiment.walks, experiment.training.metric
    if walks is None or not isinstance(walks.coefficient, Tensor):
        return {}
    tried = sorted({*COEFFICIENTS, settings.coefficient})
    log(f"choosing the coefficient of walks: {len(tried)} validations")
    scores: dict[float, float] = {}
    for coefficient in tried:
        walks.coefficient.fill_(coefficient)
        scores[coefficient] = validate()[metric]
    best = max(
        tried,
        key=lambda coefficient: (scores[coefficient], -abs(coefficient - settings.coefficient)),
    )
    walks.coefficient.fill_(best)
    current_processes().broadcast([walks.coefficient])  # who may differ in the last digit
    log(
        f"coefficient of walks {best:g}: validation {metric} {scores[best]:.4f}; "
        f"without walks {scores[0]:.4f}"
    )
    return {
        "walk_coefficient": best,
        "walk_coefficients": {f"{coefficient:g}": score for coefficient, score in scores.items()},
    }


def check_choice(experiment: Experiment, dataset: str, num_validation_facts: int) -> None:
    """Refuse what would only be found out when training is done."""
    if not (experiment.walks.steps and experiment.walks.choose_coefficient):
        return
    if not num_validation_facts:
        raise InputError(
            f"walks.choose_coefficient needs validation facts, and dataset {dataset} has none; "
            "add some, or set walks.choose_coefficient = false and walks.coefficient by hand"
        )
