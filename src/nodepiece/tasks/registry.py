"""Every task by its name, as an experiment calls it."""

from typing import Any

from nodepiece.settings import Experiment
from nodepiece.tasks.inductive_link_prediction import InductiveLinkPrediction
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.node_classification import NodeClassification
from nodepiece.tasks.out_of_sample import OutOfSample
from nodepiece.tasks.task import Task

TASKS: dict[str, type[Task[Any]]] = {
    "link-prediction": LinkPrediction,
    "relation-prediction": LinkPrediction,
    "inductive-link-prediction": InductiveLinkPrediction,
    "node-classification": NodeClassification,
    "out-of-sample": OutOfSample,
}


def task_class(experiment: Experiment) -> type[Task[Any]]:
    """How the experiment opens its data and what it does with it."""
    return TASKS[experiment.task]
