"""A decoder with weights of its own: a linear layer between head * relation and the tail.

BatchNorm and dropout follow the layer, as in ConvE. The dropout is that of nodepiece, which draws
from the generator of the run.
"""

import torch
from torch import Tensor, nn

from nodepiece.decoders.triple_scores import (
    Decoder,
    all_relations_in_chunks,
    all_tails_in_chunks,
)
from nodepiece.encoders.parameters import Dropout, linear


class Projection(nn.Module):
    def __init__(self, dim: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.linear = linear(dim, dim, generator=generator)
        self.norm = nn.BatchNorm1d(dim)
        self.dropout = Dropout(0.2)

    def forward(self, queries: Tensor) -> Tensor:
        """(..., dim) -> (..., dim)."""
        rows = self.linear(queries).flatten(end_dim=-2)
        return self.dropout(self.norm(rows)).view(queries.shape)


def make_weights(dim: int, generator: torch.Generator) -> nn.Module:
    return Projection(dim, generator=generator)


def score(weights: nn.Module, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
    return (weights(head * relation) * tail).sum(dim=-1)


PROJECTED = Decoder(
    score,
    all_tails_in_chunks(score),
    all_relations_in_chunks(score),
    is_distance=False,
    make_weights=make_weights,
)
