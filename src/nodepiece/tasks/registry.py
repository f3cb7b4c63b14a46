"""The registry of tasks: commands, runs, checks and pages are made from these records."""

from typing import Any

from nodepiece.errors import InputError
from nodepiece.settings import Experiment
from nodepiece.tasks.inductive_link_prediction import INDUCTIVE_LINK_PREDICTION
from nodepiece.tasks.link_prediction import LINK_PREDICTION, RELATION_PREDICTION
from nodepiece.tasks.node_classification import NODE_CLASSIFICATION
from nodepiece.tasks.out_of_sample import OUT_OF_SAMPLE
from nodepiece.tasks.task import Task, TaskRecord
from nodepiece.tasks.unread_settings import refuse_unread

TASKS: dict[str, TaskRecord] = {
    "link-prediction": LINK_PREDICTION,
    "relation-prediction": RELATION_PREDICTION,
    "inductive-link-prediction": INDUCTIVE_LINK_PREDICTION,
    "node-classification": NODE_CLASSIFICATION,
    "out-of-sample": OUT_OF_SAMPLE,
}


def task_record(experiment: Experiment) -> TaskRecord:
    """The record of the task that an experiment names; a name that is not known is refused."""
    if experiment.task not in TASKS:
        raise InputError(
            f"task = {experiment.task!r} is not known; it is one of {', '.join(TASKS)}"
        )
    return TASKS[experiment.task]


def check_task(task: Task[Any]) -> None:
    """Refuse settings that the task does not read, and those that the data cannot serve."""
    refuse_unread(task.experiment, task_record(task.experiment))
    task.check()
