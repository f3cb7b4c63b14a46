"""Settings that a task would ignore, or could not compute: refused before anything is trained."""

from nodepiece.errors import InputError
from nodepiece.settings import Experiment, changed_settings, default_settings
from nodepiece.tasks.task import TaskRecord

OF_EVERY_TASK = "reading"  # how the files of its dataset are read
SWITCHES = {"graph": "layers", "walks": "steps"}  # 0 switches a group off, whatever else is set


def refuse_unread(experiment: Experiment, task: TaskRecord) -> None:
    """Refuse a changed setting of another group, and a `training.metric` that is not computed.

    The settings of a group that is switched off are accepted: a recipe may inherit them.
    """
    changed = changed_settings(experiment)
    is_off = {group for group, switch in SWITCHES.items() if f"{group}.{switch}" not in changed}
    for name, value in changed.items():
        group, dot, _ = name.rpartition(".")
        if dot and group not in {*task.reads, *is_off, OF_EVERY_TASK}:
            raise InputError(
                f"{name} = {value!r} would do nothing: {experiment.task} does not read [{group}]; "
                "leave it out"
            )
    training = experiment.training
    is_asked_for = (
        training.validate_every or training.metric != default_settings()["training.metric"]
    )
    if is_asked_for and training.metric not in task.metrics:
        raise InputError(
            f"{experiment.task} has no training.metric = {training.metric!r}; it is one of "
            f"{', '.join(task.metrics)}"
        )
