"""A trained run that answers by name, whatever its task."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress
from nodepiece.evaluation.report import Report
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.settings import Experiment
from nodepiece.tasks.run_folder import SPLITS
from nodepiece.tasks.task import Task
from nodepiece.tokenizer.changing_graph import NamedFacts


@dataclass(frozen=True)
class Prediction:
    """One possible answer. Higher scores are more plausible; only their order has a meaning."""

    name: str
    score: float
    is_known: bool  # stated in the training, validation or test facts

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "score": self.score, "known": self.is_known}


class Run:
    """A run folder opened for questions. Which can be asked depends on its task."""

    def __init__(self, folder: Path, task: Task[Any], model: nn.Module) -> None:
        self.folder, self.task, self.model = folder, task, model

    @property
    def experiment(self) -> Experiment:
        return self.task.experiment

    def predict(
        self,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        top: int = 10,
        include_known: bool = False,
    ) -> list[Prediction]:
        """The likeliest answers to a fact with one part left out, best first, by name."""
        raise InputError(
            f"{self.folder} is a run of {self.experiment.task}: it predicts no facts; ask for the "
            "classes of a node"
        )

    def known(
        self,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        splits: Sequence[str] = SPLITS,
    ) -> list[str]:
        """The answers that facts of the run state, by name: what `predict` leaves out."""
        return []

    def classify(self, node: str, *, top: int = 10) -> list[Prediction]:
        """The likeliest classes of a node, best first, by name."""
        raise InputError(
            f"{self.folder} is a run of {self.experiment.task}: it knows no classes of nodes; "
            "give two of head, relation and tail"
        )

    def with_facts(self, facts: NamedFacts) -> "Run":
        """The same run, asked as if these facts, by name, were in its graph too."""
        raise InputError(
            f"{self.folder} is a run of {self.experiment.task} and takes no more facts; a run of "
            "link prediction does"
        )

    def node_names(self) -> list[str]:
        """The nodes that the run has vectors of, in the order of ids."""
        raise InputError(f"{self.folder} is a run of {self.experiment.task}: it gives no vectors")

    def embed(self, nodes: Sequence[str] | None = None) -> NDArray[np.float32]:
        """The vectors of some nodes by name, or of all of them: (num_nodes, dim)."""
        raise InputError(f"{self.folder} is a run of {self.experiment.task}: it gives no vectors")

    def on_graph(self, graph: KnowledgeGraph, *, unseen_relations: str = "refuse") -> "Run":
        """The same weights, asked about another graph over the relations of training.

        Relations that training did not have are refused, or get the "mean" of all.
        """
        raise InputError(
            f"{self.folder} is a run of {self.experiment.task} and answers for its own graph only; "
            "a run of inductive-link-prediction answers for others"
        )

    def evaluate(self, split: str = "test", *, progress: Progress | None = None) -> Report:
        """How well the model does on a split, as when the run was trained."""
        report = self.task.evaluate(self.model, split, progress=progress)
        if report is None:
            raise InputError(f"{self.folder} has no {split} facts; choose another split")
        return report

    def evaluate_baseline(self, split: str = "test") -> Report:
        """The same of a simple method that has learned nothing, where the task has one."""
        raise InputError(f"there is no baseline for {self.experiment.task}; leave it out")

    def to(self, device: torch.device | str) -> Self:
        """The same run on another device."""
        self.model.to(device)
        return self
