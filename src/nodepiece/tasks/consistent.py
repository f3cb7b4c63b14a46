"""Chosen settings beside settings that the user gave: what no longer goes with them is dropped."""

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Any, cast

from nodepiece.decoders.path_scorers import is_on
from nodepiece.settings import (
    Experiment,
    changed_settings,
    default_settings,
    to_literal,
    with_overrides,
)
from nodepiece.tasks.registry import task_record
from nodepiece.tasks.unread_settings import why_unread
from nodepiece.training.distribution import current_processes
from nodepiece.training.losses import SAMPLED_SOFTMAX

PATH_QUERIES = 32  # of a batch, on which paths beside a sample are trained


def consistent(experiment: Experiment, given: Collection[str]) -> Experiment:
    """The experiment with what goes with the settings in `given`, which are kept.

    An automatic choice has settings for walks and a loss, for example; if the user switches walks
    off or gives another loss, these would be refused as settings that do nothing.
    """
    experiment = with_group_that_fits(with_paths_that_fit(experiment, given), given)
    if "training.hide_targets" not in given:
        training = replace(experiment.training, hide_targets=can_hide(experiment))
        experiment = replace(experiment, training=training)
    return without_unread(experiment, given)


def with_paths_that_fit(experiment: Experiment, given: Collection[str]) -> Experiment:
    """Path scorers with what the loss needs; those that were not given are off if it has none."""
    training, sampled = experiment.training, experiment.sampled
    is_softmax = training.loss == SAMPLED_SOFTMAX
    changes: dict[str, Any] = {}
    for scorer in filter(is_on, experiment.scorers):
        is_given = f"{scorer.name}.{scorer.switch}" in given
        if not is_given and not can_have_paths(experiment, scorer.name, given):
            changes[scorer.name] = type(scorer)()
        elif not (training.is_one_vs_all or is_softmax):
            continue
        elif f"{scorer.name}.separate_losses" not in given and (
            is_softmax or experiment.one_vs_all.path_queries
        ):
            changes[scorer.name] = replace(cast(Any, scorer), separate_losses=True)
    has_paths = any(map(is_on, replace(experiment, **changes).scorers))
    if is_softmax and has_paths and "sampled.path_queries" not in given:
        changes["sampled"] = replace(sampled, path_queries=sampled.path_queries or PATH_QUERIES)
    return replace(experiment, **changes)


def with_group_that_fits(experiment: Experiment, given: Collection[str]) -> Experiment:
    """Groups of facts that divide what each of several processes has of a batch."""
    sampled, size = experiment.sampled, experiment.training.batch_size
    count = current_processes().count
    if count == 1 or "sampled.group_size" in given or not sampled.group_size or size % count:
        return experiment
    group_size = math.gcd(sampled.group_size, size // count)
    return replace(experiment, sampled=replace(sampled, group_size=group_size))


def can_have_paths(experiment: Experiment, name: str, given: Collection[str]) -> bool:
    """Whether the scorer of this name, which was not asked for, goes with what was given."""
    if experiment.evaluation.candidates == "given":
        return False
    if "training.hide_targets" in given and not experiment.training.hide_targets:
        return False
    if experiment.training.is_one_vs_all:
        return True
    is_softmax = experiment.training.loss == SAMPLED_SOFTMAX and current_processes().count == 1
    is_untrained = "sampled.path_queries" in given and not experiment.sampled.path_queries
    has_one_loss = (
        f"{name}.separate_losses" in given and not getattr(experiment, name).separate_losses
    )
    return is_softmax and not (experiment.graph.layers or is_untrained or has_one_loss)


def can_hide(experiment: Experiment) -> bool:
    """Whether there is something that the facts of a batch can be hidden from."""
    has_paths = any(map(is_on, experiment.scorers))
    if experiment.training.is_one_vs_all:
        return has_paths or experiment.graph.layers > 0
    return has_paths and experiment.training.loss == SAMPLED_SOFTMAX


def without_unread(experiment: Experiment, given: Collection[str]) -> Experiment:
    """The experiment with the defaults of settings that would do nothing, but for the given."""
    record, defaults = task_record(experiment), default_settings()
    changed = changed_settings(experiment)
    unread = [
        name
        for name in changed
        if name not in given and why_unread(name, experiment, record, changed)
    ]
    return with_overrides(experiment, [f"{name}={to_literal(defaults[name])}" for name in unread])
