"""A decoder with weights of its own: a linear layer between head * relation and the tail."""

import torch
from torch import Tensor, nn

from nodepiece.decoders.triple_scores import (
    Decoder,
    all_relations_in_chunks,
    all_tails_in_chunks,
)
from nodepiece.encoders.parameters import linear


def make_weights(dim: int, generator: torch.Generator) -> nn.Module:
    return linear(dim, dim, generator=generator)


def score(weights: nn.Module, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
    return (weights(head * relation) * tail).sum(dim=-1)


PROJECTED = Decoder(
    score,
    all_tails_in_chunks(score),
    all_relations_in_chunks(score),
    is_distance=False,
    make_weights=make_weights,
)
