"""The coefficients of path scorers relative to vectors, chosen by validation after training."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from nodepiece.decoders.path_scorers import (
    PathGraph,
    PathScorer,
    PathScorers,
    is_on,
    is_sparse,
)
from nodepiece.errors import InputError
from nodepiece.settings import Experiment
from nodepiece.training.distribution import current_processes
from nodepiece.training.loop import Metrics

ROUNDS = 2  # of choices with several scorers: the best coefficient of one depends on the others
MAX_REMEMBERED = 2**29  # bytes of scores of paths, while coefficients are chosen
FEW_TO_CHOOSE = 500  # facts that tell good coefficients from bad ones
# 0: vectors alone. In a graph of 2.5 million nodes validation MRR still rose from 12 to 16.
COEFFICIENTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0)


def choose_coefficients(
    scorers: PathScorers,
    metric: str,  # the name of a validation metric: the larger, the better
    validate: Callable[[], Metrics],
    *,
    log: Callable[[str], None],
    remembered_bytes: int = MAX_REMEMBERED,
) -> dict[str, Any]:
    """Set the best coefficient of each scorer, one after the other; returns it for metrics.json.

    Several are chosen in `ROUNDS` rounds; what was tried in the last one is returned. Scorers
    without `choose_coefficient` keep theirs. Scores of up to `remembered_bytes` are kept.
    """
    chosen = {
        name: scorer
        for name, scorer in scorers.items()
        if isinstance(scorer, PathScorer) and isinstance(scorer.coefficient, Tensor)
    }
    tried: dict[str, dict[float, float]] = {}
    with ExitStack() as remembered:
        for scorer in chosen.values():
            remembered.enter_context(remembering_scores(scorer, remembered_bytes // len(chosen)))
        for _ in range(ROUNDS if len(chosen) > 1 else 1):
            tried = {
                name: try_coefficients(name, scorer, metric, validate, log=log)
                for name, scorer in chosen.items()
            }
    if not tried:
        return {}
    return {
        "coefficients": {
            name: float(coefficient)
            for name in tried
            if isinstance(coefficient := scorers[name].coefficient, Tensor)
        },
        "coefficients_tried": {
            name: {f"{coefficient:g}": score for coefficient, score in scores.items()}
            for name, scores in tried.items()
        },
    }


def remembered_bytes(
    experiment: Experiment, num_facts: int, num_nodes: int, *, on_gpu: bool
) -> int:
    """The bytes of scores that are kept while coefficients are chosen by so many facts.

    Half of what evaluation may use for scores, at most. On a CPU those of sparse scorers are not
    kept.
    """
    chosen = num_chosen(experiment) - (0 if on_gpu else num_sparse(experiment))
    wanted = chosen * 4 * 2 * num_facts * num_nodes  # a float32 a query and node
    return min(wanted, MAX_REMEMBERED, experiment.evaluation.memory_budget // 2)


def facts_to_choose(experiment: Experiment, num_facts: int, *, on_gpu: bool) -> int:
    """By how many of so many validation facts coefficients are chosen.

    Fewer with sparse scorers on a CPU: they are for large graphs, where every coefficient takes as
    long as a validation.
    """
    is_short = num_sparse(experiment) > 0 and not on_gpu
    return min(num_facts, FEW_TO_CHOOSE) if is_short else num_facts


def num_chosen(experiment: Experiment) -> int:
    """The number of path scorers whose coefficient is chosen."""
    return sum(is_on(each) and each.choose_coefficient for each in experiment.scorers)


def num_sparse(experiment: Experiment) -> int:
    """The number of those that are sparse."""
    return sum(
        is_on(each) and each.choose_coefficient and is_sparse(each) for each in experiment.scorers
    )


@contextmanager
def remembering_scores(scorer: PathScorer, num_bytes: int) -> Iterator[None]:
    """Compute the scores of a query once: validations differ in coefficients only.

    Scores of up to `num_bytes` are kept, those of later queries are computed again.
    """
    compute, kept, used = scorer.scores, dict[bytes, Tensor](), 0

    def remembered(heads: Tensor, relations: Tensor, graph: PathGraph) -> Tensor:
        nonlocal used
        if graph.query_edges is not None or graph.edge_mask is not None:  # graphs may differ
            return compute(heads, relations, graph)
        key = torch.stack([heads, relations]).cpu().numpy().tobytes()
        if key in kept:
            return kept[key]
        scores = compute(heads, relations, graph)
        if used + scores.nbytes <= num_bytes:
            kept[key] = scores
            used += scores.nbytes
        return scores

    scorer.scores = remembered  # type: ignore[method-assign]
    try:
        yield
    finally:
        del scorer.scores


def try_coefficients(
    name: str,
    scorer: PathScorer,
    metric: str,
    validate: Callable[[], Metrics],
    *,
    log: Callable[[str], None],
) -> dict[float, float]:
    """Leave the best coefficient in a scorer; returns the validation metric of each one tried.

    The coefficient of the settings is tried too, and of equally good ones the nearest to it wins.
    """
    stated = scorer.settings.coefficient
    tried = sorted({*COEFFICIENTS, stated})
    log(f"choosing the coefficient of {name}: {len(tried)} validations")
    scores: dict[float, float] = {}
    coefficient = scorer.coefficient
    assert isinstance(coefficient, Tensor)
    for value in tried:
        coefficient.fill_(value)
        scores[value] = validate()[metric]
    best = max(tried, key=lambda value: (scores[value], -abs(value - stated)))
    coefficient.fill_(best)
    current_processes().broadcast([coefficient])  # processes may differ in the last digit
    log(
        f"coefficient of {name} {best:g}: validation {metric} {scores[best]:.4f}; "
        f"without {name} {scores[0]:.4f}"
    )
    return scores


def check_choice(experiment: Experiment, dataset: str, num_validation_facts: int) -> None:
    """Refuse, before training, a choice of coefficients without validation facts."""
    for settings in experiment.scorers:
        if is_on(settings) and settings.choose_coefficient and not num_validation_facts:
            name = settings.name
            raise InputError(
                f"{name}.choose_coefficient needs validation facts, and dataset {dataset} has "
                f"none; add some, or set {name}.choose_coefficient = false and {name}.coefficient "
                "by hand"
            )
