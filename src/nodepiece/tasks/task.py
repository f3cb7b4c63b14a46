"""The interface of tasks, which the runner calls, and the record of a task in the registry."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import nn

from nodepiece.data.open import DataSource
from nodepiece.evaluation.ranking import Progress
from nodepiece.evaluation.report import Report, Scores
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.settings import Experiment, scorer_groups
from nodepiece.tokenizer.tokens import TokenTable
from nodepiece.training.loop import Metrics
from nodepiece.training.trainer import Trainer

Model = TypeVar("Model", bound=nn.Module)
SCORERS = "scorers"  # in `TaskRecord.reads`: the groups of all path scorers
RANKING = ("evaluation.memory_gigabytes", "evaluation.test_facts", "evaluation.validation_facts")


class Task(Protocol[Model]):
    """An experiment with its opened data. The runner calls the methods in the order below."""

    @classmethod
    def open(cls, experiment: Experiment, data: DataSource) -> Self:
        """The data by the name or path in the experiment; `data` is searched before the usual.

        `data` may also be a dataset in memory, which is taken instead.
        """

    @classmethod
    def read(cls, experiment: Experiment, folder: Path) -> Self:
        """Read the data that `write` wrote to a run folder."""

    @property
    def experiment(self) -> Experiment: ...

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph that is tokenized and trained on."""

    def describe(self) -> str:
        """A sentence about the data: sizes, and what was left out."""

    def check(self) -> None:
        """Refuse settings that do not fit the data, before anything is written."""

    def write(self, folder: Path) -> None:
        """Write the data that a run needs to its folder."""

    def has_data_of(self, other: Self) -> bool:
        """Whether two opened tasks have the same data; called before a run is resumed."""

    def build_model(self, table: TokenTable) -> Model:
        """A new model, on the CPU; its initial weights depend on the seed of the experiment."""

    def make_trainer(self, model: Model, *, generator: torch.Generator) -> Trainer[Any]:
        """A trainer of a model that is on the device of `generator`."""

    def before_epoch(
        self, model: Model, table: TokenTable, epoch: int, *, generator: torch.Generator
    ) -> None:
        """Prepare an epoch, counted from 0: for example, set new tokens."""

    def validate(self, model: Model) -> Metrics:
        """The metrics on the validation split; a larger `training.metric` is better."""

    def after_training(self, model: Model, *, log: Callable[[str], None]) -> dict[str, Any]:
        """Choose values that depend on the trained weights; returns entries of metrics.json.

        Called before the model is saved, and again if a run is resumed after its last epoch.
        """

    def evaluate(
        self, model: Model, split: str, *, progress: Progress | None = None
    ) -> Report | None:
        """The report of the model on a split; None if the split is empty."""

    def num_evaluated(self, split: str) -> int:
        """How many facts, or nodes, "valid" or "test" has."""

    def popularity(self, split: str) -> Report | None:
        """What popularity, a baseline without training, makes of the same facts.

        None where the task has no such baseline, or the split is empty.
        """

    def compare_baselines(
        self, model: Model, split: str, *, progress: Progress | None = None
    ) -> dict[str, Scores]:
        """The metrics of baselines on a split by name, and of the model with and without shortcuts.

        Nodes have no shortcuts to their classes.
        """

    def remarks(self) -> dict[str, Any]:
        """Additional entries of metrics.json about the data."""


@dataclass(frozen=True)
class TaskRecord:
    """A task and what other parts need to know of it: an entry of `tasks/registry.py`."""

    name: str  # as an experiment calls it
    description: str  # half a sentence
    task: type[Task[Any]]
    run: str  # what a finished run answers: a name in RUNS of `inference/run.py`
    example_query: str  # options of `nodepiece predict`
    reads: tuple[str, ...]  # groups, "decoder", fields, "training.loss", and SCORERS
    metrics: tuple[str, ...]  # that `validate` computes: values of `training.metric`
    new_facts: str = ""  # more options, for runs whose encoder knows new nodes by their facts

    def reads_setting(self, name: str) -> bool:
        """Whether a setting, such as "training.loss", matters for the task."""
        group = name.partition(".")[0]
        return name in self.reads or group in self.reads or self._reads_scorer(group)

    def reads_group(self, group: str) -> bool:
        """Whether some setting of a group matters for the task."""
        groups = {each.partition(".")[0] for each in self.reads}
        return group in groups or self._reads_scorer(group)

    def _reads_scorer(self, group: str) -> bool:
        return SCORERS in self.reads and group in scorer_groups()


def fields_of(group: str, *, without: Collection[str]) -> tuple[str, ...]:
    """The names of the settings of a group, such as "training.loss", but for some."""
    names = [key.name for key in fields(getattr(Experiment(name="", dataset=""), group))]
    if unknown := set(without) - set(names):
        raise ValueError(f"[{group}] has no {', '.join(sorted(unknown))}")
    return tuple(f"{group}.{name}" for name in names if name not in without)
