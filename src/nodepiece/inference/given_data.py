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
from nodepiece.settings import Experiment, load_experiment
from nodepiece.training.checkpoint import Progress

log = logging.getLogger("nodepiece")


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
    experiment: Any, data: Any, parts: Parts, overrides: Sequence[str]
) -> tuple[str | Path | Experiment | None, DataSource]:
    """Settings, and the dataset in memory or the folder of benchmarks.

    Facts are `data`, or stand in place of `experiment`. The settings of an experiment on facts are
    a record, with the overrides in it; None: they are chosen for the facts.
    """
    if isinstance(experiment, str | Path | Experiment):
        if data is None or isinstance(data, str | Path):
            parts.refuse_without_facts()
            return experiment, None if data is None else Path(data)
        dataset = parts.dataset(data)
        return on_dataset(experiment, dataset, overrides), dataset
    if data is not None:
        raise InputError("facts were given twice, as the first argument and as data; give one")
    return None, parts.dataset(experiment)


def reading_columns(columns: Sequence[Column] | str | None) -> list[str]:
    """The columns of a file as a setting of an experiment."""
    if columns is None:
        return []
    return [f"reading.columns={json.dumps(parse_columns(columns), ensure_ascii=False)}"]


def on_dataset(
    experiment: str | Path | Experiment, dataset: Dataset, overrides: Sequence[str]
) -> Experiment:
    """The settings of an experiment on a dataset in memory."""
    if not isinstance(experiment, Experiment):
        experiment = load_experiment(experiment, overrides)
    return replace(experiment, dataset=dataset.name)


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
