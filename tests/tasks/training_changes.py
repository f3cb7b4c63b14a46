"""An experiment with other settings of training, each in the group that has it."""

from dataclasses import fields, replace

from nodepiece.settings import Experiment

GROUPS = ("training", "sampled", "one_vs_all", "out_of_sample")  # the first that has a name


def with_training(experiment: Experiment, **changes: object) -> Experiment:
    for key, value in changes.items():
        group = next(
            name
            for name in GROUPS
            if key in {field.name for field in fields(getattr(experiment, name))}
        )
        changed = replace(getattr(experiment, group), **{key: value})
        experiment = replace(experiment, **{group: changed})
    return experiment
