"""An experiment with other settings of training, each in the group that has it."""

from dataclasses import fields, replace

from nodepiece.settings import Experiment

GROUPS = ("training", "sampled", "one_vs_all", "out_of_sample")  # the first that has a name


def with_training(experiment: Experiment, **changes: object) -> Experiment:
    """Where two groups have a setting of that name, it is that of the loss; give it first."""
    for key, value in changes.items():
        unread = "sampled" if experiment.training.is_one_vs_all else "one_vs_all"
        groups = [
            name
            for name in GROUPS
            if key in {field.name for field in fields(getattr(experiment, name))}
        ]
        (group,) = groups if len(groups) == 1 else (name for name in groups if name != unread)
        changed = replace(getattr(experiment, group), **{key: value})
        experiment = replace(experiment, **{group: changed})
    return experiment
