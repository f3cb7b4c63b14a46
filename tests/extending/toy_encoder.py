"""An encoder of pieces: the mean of their vectors, through a linear layer."""

import torch
from torch import Tensor, nn

from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.encoders.parameters import linear
from nodepiece.encoders.pieces import PieceCounts, PieceVectors, Tokens


class MeanEncoder(nn.Module):
    def __init__(self, dim: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.output = linear(dim, dim, generator=generator)

    def forward(self, vectors: PieceVectors, tokens: Tokens) -> Tensor:
        """(batch, dim)."""
        return self.output(vectors.of(tokens).mean(dim=1))


def make_mean(
    counts: PieceCounts, settings: EncoderSettings, generator: torch.Generator
) -> MeanEncoder:
    return MeanEncoder(settings.dim, generator=generator)
