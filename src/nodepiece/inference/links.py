"""A run of link or relation prediction, which completes facts of the graph it was trained on."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from nodepiece.decoders.link_model import LinkModel
from nodepiece.graph.arrays import FloatArray
from nodepiece.inference.facts import FactRun, Question
from nodepiece.tasks.link_prediction import LinkPrediction


class LinkRun(FactRun):
    """Node vectors are computed once, at the first question."""

    model: LinkModel

    def __init__(self, folder: Path, task: LinkPrediction, model: LinkModel) -> None:
        super().__init__(folder, task, model)
        self.dataset = task.dataset

    @cached_property
    def vectors(self) -> Tensor:
        """(num_nodes, dim), in the order of the node names."""
        with torch.no_grad():
            return self.model.node_vectors()

    def to(self, device: torch.device | str) -> Self:
        self.__dict__.pop("vectors", None)
        return super().to(device)

    def scores(self, question: Question) -> FloatArray:
        score_all: Callable[[Tensor, Tensor, Tensor], Tensor] = (
            self.model.score_all_relations if question.asks_relation else self.model.score_all_tails
        )
        first, second = torch.tensor(
            [[question.first], [question.second]], device=self.vectors.device
        )
        with torch.no_grad():
            return score_all(first, second, self.vectors)[0].double().cpu().numpy()
