"""No leakage: training uses only the training split, validation only the validation split."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.tasks import citizens, couples, newcomers, professions

from nodepiece.data.dataset import Dataset
from nodepiece.data.labelled_graph import NodeLabels
from nodepiece.tasks.inductive_link_prediction import InductiveLinkPrediction
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.node_classification import NodeClassification
from nodepiece.tasks.out_of_sample import OutOfSample
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tasks.task import Task

EVERY_EPOCH = {"epochs": 3, "validate_every": 1}


def with_more_facts(dataset: Dataset, split: str, facts: list[list[int]]) -> Dataset:
    """A dataset with more facts in a split, of a relation that its queries do not have.

    So the other split has the queries that it had, and leaves out the same known answers.
    """
    every = np.concatenate([dataset.part(split), np.array(facts, np.int32)])
    return replace(dataset, **{split: every})  # type: ignore[arg-type]


def links(changed: str | None, task: str = "link-prediction") -> Task[Any]:
    dataset = couples.couples()
    if changed:
        homes = [[n, 1, 40 + n % 4] for n in range(20, 29)]
        dataset = with_more_facts(dataset, changed, homes)
    return LinkPrediction(couples.experiment(task, **EVERY_EPOCH), dataset)


def relations(changed: str | None) -> Task[Any]:
    return links(changed, "relation-prediction")


def inductive(changed: str | None) -> Task[Any]:
    worlds = citizens.two_worlds()
    if changed:
        friends = [[n, citizens.FRIEND, (n + 5) % 60] for n in range(20)]
        worlds = replace(worlds, inference=with_more_facts(worlds.inference, changed, friends))
    return InductiveLinkPrediction(citizens.experiment(**EVERY_EPOCH, metric="hits@10"), worlds)


def out_of_sample(changed: str | None) -> Task[Any]:
    opened = newcomers.task(newcomers.settings(training=EVERY_EPOCH))
    if changed is None:
        return opened
    edges = opened.unseen[changed]
    other = replace(edges, neighbours=(edges.neighbours + 9) % 40)
    return OutOfSample(
        opened.experiment, opened.name, opened.graph, opened.unseen | {changed: other}
    )


def classes(changed: str | None) -> Task[Any]:
    dataset = professions.professions()
    if changed:
        part = dataset.labels[changed]
        position = (part.classes[:, 0] + 1) % len(part.nodes)  # each has those of another
        pairs = np.stack([position, part.classes[:, 1]], axis=1)
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
        dataset = replace(dataset, labels=dataset.labels | {changed: NodeLabels(part.nodes, pairs)})
    return NodeClassification(professions.experiment(**EVERY_EPOCH), dataset)


TASKS: tuple[Callable[[str | None], Task[Any]], ...] = (
    links,
    relations,
    inductive,
    out_of_sample,
    classes,
)


class Outcome(NamedTuple):
    losses: list[float]  # of the epochs
    validations: list[dict[str, float]]  # of the epochs
    weights: dict[str, torch.Tensor]  # of the best epoch
    valid: dict[str, float]
    test: dict[str, float]


def outcome(opened: Task[Any], folder: Path) -> Outcome:
    metrics = run_experiment(opened, RunOptions(folder, torch.device("cpu")))
    assert metrics is not None
    records = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    return Outcome(
        [record["loss"] for record in records],
        [{k: v for k, v in record.items() if k.startswith("valid_")} for record in records],
        load_file(folder / "model.safetensors"),
        metrics["valid"],
        {name: metrics[name] for name in metrics["valid"]},
    )


@pytest.fixture(scope="module", params=TASKS, ids=lambda make: make.__name__)
def as_it_is(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Callable[[str | None], Task[Any]], Outcome]:
    return request.param, outcome(request.param(None), tmp_path_factory.mktemp("leakage") / "run")


def test_other_test_data_changes_the_score_of_the_test_alone(
    as_it_is: tuple[Callable[[str | None], Task[Any]], Outcome], tmp_path: Path
) -> None:
    make, before = as_it_is
    after = outcome(make("test"), tmp_path / "run")
    assert after.test != before.test
    assert (after.losses, after.validations) == (before.losses, before.validations)
    assert after.valid == before.valid
    torch.testing.assert_close(after.weights, before.weights, rtol=0, atol=0)


def test_other_validation_data_changes_validation_and_no_epoch_of_training(
    as_it_is: tuple[Callable[[str | None], Task[Any]], Outcome], tmp_path: Path
) -> None:
    make, before = as_it_is
    after = outcome(make("valid"), tmp_path / "run")
    assert after.losses == before.losses
    assert all(
        one != other for one, other in zip(after.validations, before.validations, strict=True)
    )
    assert after.valid != before.valid
