"""Training on data in memory: which settings, and which facts."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nodepiece.data.any_graph import make_dataset
from nodepiece.data.blocks import Column, parse_columns
from nodepiece.data.dataset import Dataset
from nodepiece.data.open import DataSource
from nodepiece.errors import InputError
from nodepiece.settings import Experiment, load_experiment, with_overrides
from nodepiece.training.checkpoint import Progress

log = logging.getLogger("nodepiece")

RECIPE = "countries"  # of a graph that is given without settings: small, quick and robust
FEW_FACTS = 200  # of which none are held out for validation


@dataclass(frozen=True)
class Parts:
    """What may be given beside facts in memory to train on."""

    valid: Any = None
    test: Any = None
    columns: Sequence[Column] | str | None = None
    relation: str | None = None  # the edge attribute of a networkx graph

    def dataset(self, train: Any) -> Dataset:
        return make_dataset(
            train,
            valid=self.valid,
            test=self.test,
            columns=self.columns,
            relation=self.relation,
        )

    def refuse_without_facts(self) -> None:
        for field in ("valid", "test", "relation"):
            if getattr(self, field) is not None:
                raise InputError(
                    f"{field} goes with facts in memory; give these as the first argument or as "
                    "data, or leave it out"
                )


def with_data(
    experiment: Any,
    data: Any,
    parts: Parts,
    overrides: Sequence[str],
    *,
    is_chosen: bool = False,
) -> tuple[str | Path | Experiment | None, DataSource]:
    """Settings, and the dataset in memory or the folder of benchmarks.

    Facts are `data`, or stand in place of `experiment`. The settings are a record if there are
    facts, with the overrides in it; None with `is_chosen`, if they are chosen for facts alone.
    """
    if isinstance(experiment, str | Path | Experiment):
        if data is None or isinstance(data, str | Path):
            parts.refuse_without_facts()
            return experiment, None if data is None else Path(data)
        dataset = parts.dataset(data)
        return on_dataset(experiment, dataset, overrides), dataset
    if data is not None:
        raise InputError("facts were given twice, as the first argument and as data; give one")
    dataset = parts.dataset(experiment)
    return None if is_chosen else on_dataset(None, dataset, overrides), dataset


def reading_columns(columns: Sequence[Column] | str | None) -> list[str]:
    """The columns of a file as a setting of an experiment."""
    if columns is None:
        return []
    return [f"reading.columns={json.dumps(parse_columns(columns), ensure_ascii=False)}"]


def on_dataset(
    experiment: str | Path | Experiment | None, dataset: Dataset, overrides: Sequence[str]
) -> Experiment:
    """The settings of an experiment, or those for any graph, on a dataset in memory."""
    if experiment is None:
        settings = with_overrides(default_experiment(dataset), overrides)
    elif isinstance(experiment, Experiment):
        settings = experiment
    else:
        settings = load_experiment(experiment, overrides)
    return replace(settings, dataset=dataset.name)


def default_experiment(dataset: Dataset) -> Experiment:
    """Settings for a graph of up to some 100,000 nodes, trained against all nodes.

    Without validation facts some are held out, unless there are few.
    """
    recipe = load_experiment(RECIPE)
    tokenizer = replace(
        recipe.tokenizer,
        num_anchors=None,
        anchor_share=0.05,
        anchors_per_node=min(recipe.tokenizer.anchors_per_node, dataset.num_nodes),
    )
    training = recipe.training
    if not len(dataset.valid) and dataset.train.num_triples < FEW_FACTS:
        training = replace(training, validate_every=0, patience=0)
    return replace(recipe, name=dataset.name, tokenizer=tokenizer, training=training)


class LoggedEpochs:
    """A callback that logs the loss and the validation of every epoch."""

    is_under_way = False  # between the first step and the end of training

    def on_step(self, epoch: int, done: int, total: int) -> None:
        self.is_under_way = True

    def log(self, sentence: str) -> None:
        """Log a sentence before training or after it."""
        self.is_under_way = False
        log.info(sentence)

    def on_epoch(self, record: dict[str, Any], progress: Progress) -> None:
        scores = {key: value for key, value in record.items() if key not in ("epoch", "seconds")}
        text = ", ".join(f"{key} {value:.4g}" for key, value in scores.items())
        log.info("epoch %d: %s; %.1f s", record["epoch"], text, record["seconds"])
