"""Node classification (section 4.3): predict the classes of unlabelled nodes.

The whole graph is known, and the labels of the training nodes, or of a random share of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from nodepiece.data.dataset import SPLITS, Dataset
from nodepiece.data.labelled_graph import LabelledGraph, NodeLabels
from nodepiece.data.open import DataSource, open_labelled
from nodepiece.decoders.class_model import ClassModel
from nodepiece.errors import InputError
from nodepiece.evaluation.class_baselines import class_baselines, class_shares
from nodepiece.evaluation.classification import AREAS, ClassificationReport, classification_report
from nodepiece.evaluation.ranking import Progress
from nodepiece.evaluation.report import Report, Scores
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.settings import Experiment
from nodepiece.tasks.label_folder import read_label_folder, write_label_folder
from nodepiece.tasks.run_folder import read_facts, write_facts
from nodepiece.tasks.task import TaskRecord, fields_of
from nodepiece.tasks.tokens import build_node_embedding, refresh_tokens
from nodepiece.tokenizer.tokens import TokenTable
from nodepiece.training.classes import class_trainer
from nodepiece.training.loop import Metrics
from nodepiece.training.settings import CLASS_METRICS
from nodepiece.training.trainer import Trainer


@dataclass(frozen=True, eq=False)
class NodeClassification:
    """The task: an experiment and a labelled graph with the training labels that are used."""

    experiment: Experiment
    dataset: LabelledGraph

    @classmethod
    def open(cls, experiment: Experiment, data: DataSource) -> Self:
        dataset = open_labelled(experiment.dataset, data=data, options=experiment.reading)
        rng = np.random.default_rng(experiment.seed)
        share = experiment.classifier.label_share
        labels = dataset.labels | {"train": sample_labels(dataset.labels["train"], share, rng=rng)}
        return cls(experiment, replace(dataset, labels=labels))

    @classmethod
    def read(cls, experiment: Experiment, folder: Path) -> Self:
        graph = read_facts(folder).train
        classes, labels = read_label_folder(folder, num_nodes=graph.num_nodes)
        return cls(experiment, LabelledGraph(folder.name, graph, classes, labels))

    @property
    def graph(self) -> KnowledgeGraph:
        return self.dataset.graph

    def describe(self) -> str:
        graph, labels = self.graph, self.dataset.labels
        numbers = ", ".join(f"{len(labels[part].nodes):,} for {part}" for part in SPLITS)
        unseen = sum(part.num_unseen for part in labels.values())
        left_out = f"; {unseen:,} labelled nodes without facts are left out" if unseen else ""
        layout = f"; read as {self.dataset.layout}" if self.dataset.layout else ""
        return (
            f"{self.dataset.name}: {graph.num_nodes:,} nodes, {graph.num_triples:,} facts, "
            f"{len(self.dataset.classes):,} classes; labelled nodes: {numbers}{left_out}{layout}"
        )

    def check(self) -> None:
        check_settings(self.experiment)
        name, training = self.dataset.name, self.experiment.training
        if not len(self.dataset.labels["train"].nodes):
            raise InputError(f"{name} has no labelled training nodes; add some")
        if not self.dataset.classes:
            raise InputError(f"{name} has no classes: its labelled nodes have none; add some")
        valid = self.dataset.labels["valid"]
        if training.validate_every and not len(valid.nodes):
            raise InputError(
                f"{name} has no labelled nodes for validation; add some, or set "
                "training.validate_every = 0 to train without (and training.patience = 0)"
            )
        if training.validate_every and training.metric in AREAS and not has_both_labels(valid):
            raise InputError(
                f"{name} has no class that some nodes for validation have and others lack, so "
                f'there is no {training.metric}; set training.metric = "hard_accuracy", or add some'
            )

    def write(self, folder: Path) -> None:
        none = np.empty((0, 3), np.int32)
        write_facts(Dataset(self.dataset.name, self.graph, none, none, {}), folder)
        write_label_folder(self.dataset, folder)

    def has_data_of(self, other: Self) -> bool:
        mine, theirs = self.dataset, other.dataset
        return (
            np.array_equal(mine.graph.triples, theirs.graph.triples)
            and mine.classes == theirs.classes
            and all(
                np.array_equal(mine.labels[part].nodes, theirs.labels[part].nodes)
                and np.array_equal(mine.labels[part].classes, theirs.labels[part].classes)
                for part in SPLITS
            )
        )

    def build_model(self, table: TokenTable) -> ClassModel:
        experiment = self.experiment
        generator = torch.Generator().manual_seed(experiment.seed)
        return ClassModel(
            build_node_embedding(experiment, table, generator=generator),
            torch.tensor(with_inverses(self.graph)),
            2 * self.graph.num_relations,
            class_shares(self.dataset.labels["train"], len(self.dataset.classes)),
            experiment.classifier,
            experiment.graph,
            generator=generator,
        )

    def make_trainer(self, model: ClassModel, *, generator: torch.Generator) -> Trainer[Any]:
        labels = self.dataset.labels["train"]
        chosen = self.experiment
        return class_trainer(
            model, labels, chosen.training, one_vs_all=chosen.one_vs_all, generator=generator
        )

    def before_epoch(
        self, model: ClassModel, table: TokenTable, epoch: int, *, generator: torch.Generator
    ) -> None:
        refresh_tokens(model.nodes, self.experiment, table, epoch, generator=generator)

    def validate(self, model: ClassModel) -> Metrics:
        """Metrics of the validation nodes and, as train_..., of as many training nodes."""
        valid, train = self.dataset.labels["valid"], self.dataset.labels["train"]
        some = np.arange(min(len(train.nodes), len(valid.nodes)), dtype=np.int32)
        found, seen = self.reports(model, valid, train.only(some))
        gap = {f"train_{name}": value for name, value in seen.scores().items()}
        return {**found.scores(), **gap}

    def after_training(self, model: ClassModel, *, log: Callable[[str], None]) -> dict[str, Any]:
        return {}  # there is nothing to choose

    def evaluate(
        self, model: ClassModel, split: str, *, progress: Progress | None = None
    ) -> Report | None:
        labels = self.labels_of(split)
        if not len(labels.nodes):
            return None
        (report,) = self.reports(model, labels)
        return report.named(self.dataset.classes)

    def reports(self, model: ClassModel, *parts: NodeLabels) -> list[ClassificationReport]:
        """A report for each set of labels; node vectors are computed once."""
        model.eval()
        with torch.no_grad():
            vectors = model.node_vectors()
            return [self._report(model, vectors, labels) for labels in parts]

    def _report(
        self, model: ClassModel, vectors: torch.Tensor, labels: NodeLabels
    ) -> ClassificationReport:
        nodes = torch.tensor(labels.nodes.astype(np.int64)).to(vectors.device)
        probabilities = model.logits(nodes, vectors).sigmoid()
        return classification_report(probabilities, self.truth(labels).to(vectors.device))

    def truth(self, labels: NodeLabels) -> torch.Tensor:
        """Whether each node has each class: (num_labelled, num_classes)."""
        truth = torch.zeros(len(labels.nodes), len(self.dataset.classes), dtype=torch.bool)
        row, column = torch.tensor(labels.classes.astype(np.int64)).T
        truth[row, column] = True
        return truth

    def labels_of(self, split: str) -> NodeLabels:
        if split not in SPLITS:
            raise InputError(f"there is no split {split!r}; it is one of {', '.join(SPLITS)}")
        return self.dataset.labels[split]

    def num_evaluated(self, split: str) -> int:
        return len(self.dataset.labels[split].nodes)

    def popularity(self, split: str) -> Report | None:
        return None  # there is nothing to rank

    def compare_baselines(
        self, model: ClassModel, split: str, *, progress: Progress | None = None
    ) -> dict[str, Scores]:
        return self.evaluate_baselines(split)

    def evaluate_baselines(self, split: str) -> dict[str, Scores]:
        """The metrics of baselines by name: frequent classes, and those of neighbours."""
        labels, train = self.labels_of(split), self.dataset.labels["train"]
        truth = self.truth(labels)
        return {
            name: classification_report(probabilities, truth).scores()
            for name, probabilities in class_baselines(
                self.graph, train, len(self.dataset.classes), labels.nodes
            ).items()
        }

    def remarks(self) -> dict[str, Any]:
        """The numbers of labelled nodes and labels of each split."""
        labels, train = self.dataset.labels, self.dataset.labels["train"]
        return {
            "label_share": self.experiment.classifier.label_share,
            "labelled_nodes": {part: len(labels[part].nodes) for part in SPLITS},
            "labels": {part: len(labels[part].classes) for part in SPLITS},
            "num_classes": len(self.dataset.classes),
            "num_classes_in_training": len(np.unique(train.classes[:, 1])),
        }


def has_both_labels(labels: NodeLabels) -> bool:
    """Whether there is a class that some of the nodes have and others lack."""
    counts = np.bincount(labels.classes[:, 1])
    return bool(((counts > 0) & (counts < len(labels.nodes))).any())


def sample_labels(labels: NodeLabels, share: float, *, rng: np.random.Generator) -> NodeLabels:
    """A random share of the nodes, at least one, in the order of the file."""
    number = len(labels.nodes)
    if not number:
        return labels
    chosen = rng.choice(number, size=max(1, round(share * number)), replace=False)
    return labels.only(np.sort(chosen).astype(np.int32))


def check_settings(experiment: Experiment) -> None:
    """Refuse settings that cannot work where classes are learned, or not together."""
    training, graph = experiment.training, experiment.graph
    for is_wrong, sentence in (
        (
            training.loss != "binary-cross-entropy",
            'every class is a yes-no question; set training.loss = "binary-cross-entropy"',
        ),
        (
            graph.layers > 0 and graph.kind != "compgcn",
            'message passing is by CompGCN here; set graph.kind = "compgcn"',
        ),
        (
            experiment.classifier.unit_relations
            and not (graph.layers > 0 and graph.composition == "rotate"),
            "classifier.unit_relations goes with graph layers that compose by rotation; leave it "
            "out",
        ),
    ):
        if is_wrong:
            raise InputError(f"node classification: {sentence}")


NODE_CLASSIFICATION = TaskRecord(
    name="node-classification",
    description="which classes a node has, learned from nodes whose classes are known",
    task=NodeClassification,
    run="classes",
    example_query="--node X",
    reads=(
        *("tokenizer", "encoder", "graph", "classifier"),
        *fields_of("training", without=["batch_size", "hide_targets"]),  # a step has all nodes
        "one_vs_all.smoothing",
    ),
    metrics=CLASS_METRICS,
)
