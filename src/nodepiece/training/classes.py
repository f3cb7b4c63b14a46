"""The trainer of a class model: labelled nodes and the loss."""

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodepiece.data.labelled_graph import NodeLabels
from nodepiece.decoders.class_model import ClassModel
from nodepiece.training.losses import binary_cross_entropy_all
from nodepiece.training.settings import OneVsAllSettings, TrainingSettings
from nodepiece.training.trainer import Trainer


class LabelBatch(NamedTuple):
    """Labelled nodes and all their classes."""

    nodes: Tensor  # (num_labelled,)
    classes: Tensor  # (2, num_labels) rows of the batch and class ids


class LabelBatches:
    """All labelled nodes in one batch, the same in every epoch: message passing needs all nodes."""

    num_batches = 1
    capacity = 0

    def __init__(self, labels: NodeLabels, device: torch.device) -> None:
        nodes = torch.tensor(labels.nodes.astype(np.int64)).to(device)
        classes = torch.tensor(labels.classes.T.astype(np.int64)).to(device)
        self.batch = LabelBatch(nodes, classes)
        self.facts_per_step = len(nodes)

    def reserve(self, capacity: int) -> None:
        pass

    def start_epoch(self, *, generator: torch.Generator) -> bool:
        return False

    def take(self, step: Tensor) -> LabelBatch:
        return self.batch


def class_trainer(
    model: ClassModel,
    labels: NodeLabels,
    training: TrainingSettings,
    *,
    one_vs_all: OneVsAllSettings = OneVsAllSettings(),
    generator: torch.Generator,
) -> Trainer[LabelBatch]:
    """A trainer with one step per epoch, over all labelled nodes, as published."""
    return Trainer(
        model,
        LabelBatches(labels, generator.device),
        partial(loss_of_labels, model, smoothing=one_vs_all.smoothing),
        training,
        generator=generator,
        after_step=model.after_step,
    )


def loss_of_labels(model: ClassModel, batch: LabelBatch, *, smoothing: float) -> Tensor:
    """Binary cross-entropy over nodes and classes."""
    scores = model.logits(batch.nodes, model.node_vectors()).float()
    return binary_cross_entropy_all(scores, batch.classes, smoothing=smoothing)
