"""How much walks count for beside vectors, chosen by validation when training is done."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from nodepiece.decoders.walks import Walks
from nodepiece.errors import InputError
from nodepiece.settings import Experiment
from nodepiece.training.distribution import current_processes
from nodepiece.training.loop import Metrics

WEIGHTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)  # 0: vectors alone


def choose_walk_weight(
    walks: Walks | None,
    experiment: Experiment,
    validate: Callable[[], Metrics],
    *,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Leave the best weight by `training.metric` in `walks`; returns what metrics.json says of it.

    Nothing happens without `walks.choose_weight`. A try is a validation. The weight of the settings
    is tried too, and of equally good ones the nearest to it is chosen.
    """
    settings, metric = experiment.walks, experiment.training.metric
    if walks is None or not isinstance(walks.weight, Tensor):
        return {}
    tried = sorted({*WEIGHTS, settings.weight})
    say(f"choosing how much walks count: {len(tried)} validations")
    scores: dict[float, float] = {}
    for weight in tried:
        walks.weight.fill_(weight)
        scores[weight] = validate()[metric]
    best = max(tried, key=lambda weight: (scores[weight], -abs(weight - settings.weight)))
    walks.weight.fill_(best)
    current_processes().copy_from_first([walks.weight])  # who may differ in the last digit
    say(
        f"walks count {best:g} times: validation {metric} {scores[best]:.4f}; "
        f"{settings.weight:g} times: {scores[settings.weight]:.4f}; vectors alone: {scores[0]:.4f}"
    )
    return {
        "walk_weight": best,
        "walk_weights": {f"{weight:g}": score for weight, score in scores.items()},
    }


def check_choice(experiment: Experiment, dataset: str, num_validation_facts: int) -> None:
    """Refuse what would only be found out when training is done."""
    if not (experiment.walks.steps and experiment.walks.choose_weight):
        return
    if not num_validation_facts:
        raise InputError(
            f"walks.choose_weight asks validation facts, and dataset {dataset} has none; add some, "
            "or set walks.choose_weight = false and walks.weight by hand"
        )
