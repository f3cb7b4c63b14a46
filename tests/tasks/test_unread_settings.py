"""Settings that a task would ignore, and metrics that it cannot compute."""

import re
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
from nodepiece.tasks.link_prediction import LinkPrediction, check_hiding
from nodepiece.tasks.node_classification import NodeClassification
from nodepiece.tasks.registry import TASKS, check_task
from nodepiece.tasks.task import Task, fields_of
from nodepiece.tasks.unread_settings import refuse_unread
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary
from nodepiece.training.settings import OneVsAllSettings, SampledSettings, TrainingSettings

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
TRAINING = {task: experiment.training for task, experiment in EXPERIMENTS.items()}
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
        ("node-classification", {"decoder": DecoderSettings("distmult")}, 'decoder.kind = "dist'),
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


@pytest.mark.parametrize(
    ("task", "changes", "name"),
    [
        (
            "relation-prediction",
            {"evaluation": EvaluationSettings(candidates="given")},
            'evaluation.candidates = "given"',
        ),
        (
            "inductive-link-prediction",
            {"decoder": DecoderSettings(start_range=0.1)},
            "decoder.start_range = 0.1",
        ),
        (
            "inductive-link-prediction",
            {"one_vs_all": OneVsAllSettings(regularization=0.1)},
            "one_vs_all.regularization = 0.1",
        ),
        (
            "inductive-link-prediction",
            {"training": replace(TRAINING["inductive-link-prediction"], shuffle_anchors=True)},
            "training.shuffle_anchors = true",
        ),
        (
            "node-classification",
            {"training": replace(TRAINING["node-classification"], batch_size=8)},
            "training.batch_size = 8",
        ),
        (
            "node-classification",
            {"one_vs_all": OneVsAllSettings(relation_weight=1.0)},
            "one_vs_all.relation_weight = 1.0",
        ),
        (
            "out-of-sample",
            {"training": replace(TRAINING["out-of-sample"], hide_targets=True)},
            "training.hide_targets = true",
        ),
    ],
)
def test_a_single_setting_that_the_task_does_not_read_is_refused(
    task: str, changes: dict[str, Any], name: str
) -> None:
    with pytest.raises(InputError, match=rf"^{name} would do nothing: {task} does not read it; "):
        check(task, **changes)


@pytest.mark.parametrize(
    ("loss", "changes", "sentence"),
    [
        (
            "softplus",
            {"one_vs_all": OneVsAllSettings(smoothing=0.1)},
            'one_vs_all.smoothing = 0.1 would do nothing: training.loss = "softplus" has sampled '
            "negatives; leave it out, or set it to 0.0",
        ),
        (
            "sampled-softmax",
            {"sampled": SampledSettings(margin=3.0)},
            'sampled.margin = 3.0 would do nothing: training.loss = "sampled-softmax" shares its '
            "negatives and has no margin; leave it out, or set it to 9.0",
        ),
        (
            "cross-entropy",
            {"sampled": SampledSettings(subsampling=True)},
            'sampled.subsampling = true would do nothing: training.loss = "cross-entropy" is '
            "against all nodes; leave it out, or set it to false",
        ),
    ],
)
def test_a_setting_of_the_other_kind_of_loss_is_refused(
    loss: str, changes: dict[str, Any], sentence: str
) -> None:
    chosen = replace(TRAINING["link-prediction"], loss=loss)
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        check("link-prediction", training=chosen, **changes)


@pytest.mark.parametrize("kind", ["mlp", "gated-sum"])
@pytest.mark.parametrize("setting", [{"heads": 2}, {"layers": 3}, {"masked": False}])
def test_a_setting_of_the_transformer_is_refused_with_another_encoder(
    kind: str, setting: dict[str, Any]
) -> None:
    encoder = replace(EXPERIMENTS["link-prediction"].encoder, kind=kind, **setting)
    sentence = f'^encoder.{next(iter(setting))} = .* would do nothing: encoder.kind = "{kind}" has'
    with pytest.raises(InputError, match=sentence):
        check("link-prediction", encoder=encoder)


def test_settings_of_tokens_and_pieces_are_accepted_with_a_lookup() -> None:
    encoder = replace(EXPERIMENTS["link-prediction"].encoder, kind="lookup", heads=2)
    check("link-prediction", encoder=encoder)


def test_a_field_that_no_group_has_cannot_be_declared() -> None:
    with pytest.raises(ValueError, match=r"\[training\] has no margin"):
        fields_of("training", without=["margin"])


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


def test_fewer_queries_for_paths_need_separate_losses() -> None:
    walks = WalkSettings(2)
    experiment = Experiment(
        name="mine",
        dataset="countries",
        walks=walks,
        training=TrainingSettings(loss="cross-entropy", hide_targets=True),
        one_vs_all=OneVsAllSettings(path_queries=8),
    )
    with pytest.raises(InputError, match=r"walks.separate_losses = true, or leave it out"):
        check_hiding(experiment)


@pytest.mark.parametrize(
    ("path_queries", "separate", "layers", "message"),
    [
        (0, True, 0, r"set walks.steps = 0, or sampled.path_queries = 32"),
        (8, False, 0, r"sampled.path_queries trains paths .* walks.separate_losses = true"),
        (8, True, 1, r"hides facts from paths, not from graph layers"),
    ],
)
def test_walks_beside_a_sample_need_facts_and_a_loss_of_their_own(
    path_queries: int, separate: bool, layers: int, message: str
) -> None:
    experiment = Experiment(
        name="mine",
        dataset="countries",
        graph=GraphLayerSettings(layers=layers),
        walks=WalkSettings(2, separate_losses=separate),
        training=TrainingSettings(loss="sampled-softmax", hide_targets=True),
        sampled=SampledSettings(path_queries=path_queries),
    )
    with pytest.raises(InputError, match=message):
        check_hiding(experiment)
