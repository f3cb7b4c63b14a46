"""Settings that a task would ignore, and metrics that it cannot compute."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.tasks import citizens, couples, newcomers, professions

from nodepiece.decoders.class_model import ClassifierSettings
from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.errors import InputError
from nodepiece.evaluation.settings import EvaluationSettings
from nodepiece.recipes import experiment_names
from nodepiece.settings import Experiment, load_experiment
from nodepiece.tasks.inductive_link_prediction import InductiveLinkPrediction
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.node_classification import NodeClassification
from nodepiece.tasks.registry import TASKS, check_task
from nodepiece.tasks.task import Task
from nodepiece.tasks.unread_settings import refuse_unread
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary

EXPERIMENTS = {
    "link-prediction": couples.experiment(),
    "relation-prediction": couples.experiment(task="relation-prediction"),
    "inductive-link-prediction": citizens.experiment(),
    "node-classification": professions.experiment(),
    "out-of-sample": newcomers.settings(),
}
OPENED: dict[str, Callable[[Experiment], Task[Any]]] = {
    "link-prediction": lambda chosen: LinkPrediction(chosen, couples.couples()),
    "relation-prediction": lambda chosen: LinkPrediction(chosen, couples.couples()),
    "inductive-link-prediction": lambda chosen: InductiveLinkPrediction(
        chosen, citizens.two_worlds()
    ),
    "node-classification": lambda chosen: NodeClassification(chosen, professions.professions()),
    "out-of-sample": newcomers.task,
}
CLASSIFIER = {"classifier": ClassifierSettings(dropout=0.5)}


def check(task: str, **changes: Any) -> None:
    check_task(OPENED[task](replace(EXPERIMENTS[task], **changes)))


@pytest.mark.parametrize("task", TASKS)
def test_settings_that_a_task_reads_are_accepted(task: str) -> None:
    check(task)


def test_settings_of_a_group_that_is_switched_off_are_accepted() -> None:
    check("out-of-sample", graph=GraphLayerSettings(layers=0, edge_dropout=0.3))


@pytest.mark.parametrize(
    ("task", "changes", "name"),
    [
        ("link-prediction", CLASSIFIER, "classifier.dropout = 0.5"),
        ("relation-prediction", CLASSIFIER, "classifier.dropout = 0.5"),
        ("inductive-link-prediction", CLASSIFIER, "classifier.dropout = 0.5"),
        ("out-of-sample", CLASSIFIER, "classifier.dropout = 0.5"),
        ("node-classification", {"decoder": DecoderSettings("distmult")}, "decoder.kind = 'dist"),
        ("node-classification", {"walks": WalkSettings(steps=2)}, "walks.steps = 2"),
        (
            "node-classification",
            {"evaluation": EvaluationSettings(test_facts=9)},
            "evaluation.test_facts = 9",
        ),
    ],
)
def test_a_setting_of_a_group_that_the_task_does_not_read_is_refused(
    task: str, changes: dict[str, Any], name: str
) -> None:
    group = name.partition(".")[0]
    with pytest.raises(InputError, match=rf"^{name}.* {task} does not read \[{group}\]; leave it"):
        check(task, **changes)


@pytest.mark.parametrize("validate_every", [0, 1])
@pytest.mark.parametrize("task", TASKS)
def test_a_metric_that_the_task_cannot_compute_is_refused(task: str, validate_every: int) -> None:
    metric = "hits@1" if task == "node-classification" else "roc_auc"
    chosen = replace(EXPERIMENTS[task].training, metric=metric, validate_every=validate_every)
    with pytest.raises(InputError, match=f"{task} has no training.metric = '{metric}'; it is one"):
        check(task, training=chosen)


@pytest.mark.parametrize("task", TASKS)
def test_every_metric_that_a_task_accepts_is_computed_in_validation(task: str) -> None:
    opened = OPENED[task](EXPERIMENTS[task])
    rng = np.random.default_rng(0)
    vocabulary = fit_vocabulary(opened.graph, opened.experiment.tokenizer, rng=rng)
    model = opened.build_model(tokenize(opened.graph, vocabulary, rng=rng))
    assert set(TASKS[task].metrics) <= set(opened.validate(model))


@pytest.mark.parametrize("name", experiment_names())
def test_an_experiment_that_comes_along_has_no_setting_that_its_task_ignores(name: str) -> None:
    chosen = load_experiment(name)
    refuse_unread(chosen, TASKS[chosen.task])
