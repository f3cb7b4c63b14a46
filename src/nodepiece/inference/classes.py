"""A run of node classification: predicts the classes of a node."""

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.data.dataset import SPLITS
from nodepiece.decoders.class_model import ClassModel
from nodepiece.errors import InputError
from nodepiece.inference.computed_once import computed_once
from nodepiece.inference.forked import refuse_after_fork
from nodepiece.inference.named_vectors import NamedVectors, named_relations
from nodepiece.inference.opened_run import Opened, Prediction, Run, node_list
from nodepiece.inference.patched_vectors import PatchedVectors
from nodepiece.inference.similar import NodeVectors
from nodepiece.tasks.node_classification import NodeClassification


class ClassRun(Run):
    """Predicts classes; node vectors are computed once, at the first query."""

    model: ClassModel
    task: NodeClassification

    def __init__(self, opened: Opened, task: NodeClassification, model: ClassModel) -> None:
        super().__init__(opened, task, model)

    @computed_once
    def node_vectors(self) -> Tensor:
        """(num_nodes, dim), in the order of the node names."""
        with torch.no_grad():
            return self.model.node_vectors()

    def classify(self, node: str, *, top: int = 10) -> list[Prediction]:
        """The likeliest classes of a node, best first; scores are probabilities.

        Known classes of the node are in the list too, and marked.
        """
        refuse_after_fork()
        if top < 1:
            raise InputError(f"top must be at least 1, got {top}")
        if not isinstance(node, str):
            raise InputError(f"node must be one name, got {node!r}; classify one at a time")
        node_id = self.task.dataset.names.node_id(node)
        vectors = self.node_vectors
        asked = torch.tensor([node_id], device=vectors.device)
        with torch.no_grad():
            found = self.model.logits(asked, vectors)[0].sigmoid().double().cpu().numpy()
        known, classes = self._known(node_id), self.task.dataset.classes
        order = np.argsort(-found, kind="stable")[:top]
        return [
            Prediction(classes[label], float(found[label]), label in known)
            for label in order.tolist()
        ]

    def node_table(self) -> NodeVectors:
        names, vectors = self.task.dataset.names.nodes, self.node_vectors
        return NodeVectors(PatchedVectors.of(vectors), names, np.ones(len(vectors), np.bool_))

    def node_names(self) -> list[str]:
        return self.task.dataset.names.nodes.to_pylist()

    def embed(self, nodes: Sequence[str] | None = None) -> NDArray[np.float32]:
        """Node vectors after the graph layers, the input of the classifier."""
        refuse_after_fork()
        if nodes is None:
            return self.node_vectors.cpu().numpy()
        return self.node_vectors.cpu().numpy()[self.task.dataset.names.node_ids(node_list(nodes))]

    def relation_vectors(self) -> NamedVectors:
        """The vectors of relations in the first graph layer, and of their inverses."""
        refuse_after_fork()
        vectors: Tensor | None = self.model.relation_vectors()
        if vectors is None:
            raise InputError(
                f"{self.folder} has no graph layers and no pieces: no relation vectors"
            )
        return named_relations(self.task.dataset.names, vectors)

    def to(self, device: torch.device | str) -> Self:
        self.__dict__.pop("node_vectors", None)
        return super().to(device)

    def _known(self, node_id: int) -> set[int]:
        """The classes that labels of the run state, of any split."""
        known: set[int] = set()
        for part in SPLITS:
            labels = self.task.dataset.labels[part]
            nodes = labels.nodes[labels.classes[:, 0]]
            known |= set(labels.classes[nodes == node_id, 1].tolist())
        return known
