"""Refuses settings that a task does not read, and metrics that it does not compute."""

from collections.abc import Collection

from nodepiece.decoders.path_scorers import is_on
from nodepiece.errors import InputError
from nodepiece.settings import (
    Experiment,
    changed_settings,
    default_settings,
    switches,
    to_literal,
)
from nodepiece.tasks.task import TaskRecord
from nodepiece.training.losses import SAMPLED_SOFTMAX

OF_SOFTMAX = ("sampled.group_size", "sampled.path_queries")
NOT_OF_SOFTMAX = (
    *("sampled.margin", "sampled.temperature"),
    *("sampled.shared_negatives", "sampled.separate_masks"),
)
OF_HIDDEN_TARGETS = ("one_vs_all.hide_pairs", "one_vs_all.target_degree")
OF_EVERY_TASK = "reading"  # how the files of its dataset are read
OF_TRANSFORMER = ("encoder.layers", "encoder.heads", "encoder.masked")
NOT_READING_THEM = ("mlp", "gated-sum")  # encoders; one that was added may read them


def refuse_unread(experiment: Experiment, task: TaskRecord) -> None:
    """Refuse a changed setting that does nothing, and a `training.metric` that is not computed.

    The settings of a group that is switched off are accepted, and so are those of tokens and
    pieces with a lookup encoder: a recipe may inherit them.
    """
    changed, defaults = changed_settings(experiment), default_settings()
    for name, value in changed.items():
        if reason := why_unread(name, experiment, task, changed):
            raise InputError(
                f"{name} = {to_literal(value)} would do nothing: {reason}; leave it out, or set it "
                f"to {to_literal(defaults[name])}"
            )
    training = experiment.training
    is_asked_for = training.validate_every or training.metric != defaults["training.metric"]
    if is_asked_for and training.metric not in task.metrics:
        raise InputError(
            f"{experiment.task} has no training.metric = {training.metric!r}; it is one of "
            f"{', '.join(task.metrics)}"
        )


def why_unread(
    name: str, experiment: Experiment, task: TaskRecord, changed: Collection[str]
) -> str | None:
    """The reason why the task does not read a setting; None where it does, or may inherit it."""
    group, dot, _ = name.rpartition(".")
    switch = switches().get(group)
    is_off = switch is not None and f"{group}.{switch}" not in changed
    if not dot or group == OF_EVERY_TASK or is_off:
        return None
    if not task.reads_setting(name):
        is_group = task.reads_group(group)
        return f"{experiment.task} does not read {'it' if is_group else f'[{group}]'}"
    kind, training = experiment.encoder.kind, experiment.training
    if name in OF_TRANSFORMER and kind in NOT_READING_THEM:
        return f'encoder.kind = "{kind}" has no attention'
    if group == "one_vs_all" and not training.is_one_vs_all:
        return f'training.loss = "{training.loss}" has sampled negatives'
    if name == "one_vs_all.smoothing" and training.loss == "filtered-cross-entropy":
        return f'training.loss = "{training.loss}" has no smoothing'
    if name.endswith(".path_queries") and not any(map(is_on, experiment.scorers)):
        return "no path scorer is switched on"
    if name in OF_HIDDEN_TARGETS and not training.hide_targets:
        return "training.hide_targets is false"
    if group == "sampled" and training.is_one_vs_all:
        return f'training.loss = "{training.loss}" is against all nodes'
    if name == "sampled.lazy_rows" and experiment.task == "inductive-link-prediction":
        return f"{experiment.task} updates all rows"
    if training.loss != SAMPLED_SOFTMAX and name in OF_SOFTMAX:
        return f'only training.loss = "{SAMPLED_SOFTMAX}" has it'
    if training.loss == SAMPLED_SOFTMAX and name in NOT_OF_SOFTMAX:
        return f'training.loss = "{SAMPLED_SOFTMAX}" shares its negatives and has no margin'
    return None
