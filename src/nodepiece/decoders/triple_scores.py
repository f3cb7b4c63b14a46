"""Scores of facts from the vectors of head, relation and tail: higher is more plausible.

Every formula broadcasts: (..., dim) three times -> (...). Complex vectors have their real half
first. The score of a distance is its negative, so 0 is the best there. Heads are predicted as tails
of the inverse relation, so there is no second set of formulas for them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from nodepiece.decoders.pairwise_distances import in_chunks, negative_distances, products
from nodepiece.encoders.complex_numbers import (
    conjugate,
    moduli,
    multiply,
    product,
    safe_root,
    to_unit_modulus,
)
from nodepiece.errors import InputError

Score = Callable[..., Tensor]  # of three tensors; with weights, they are the first argument
MakeWeights = Callable[[int, torch.Generator], nn.Module]  # from dim, and a source of randomness


@dataclass(frozen=True)
class Decoder:
    """One scoring function and its two fast forms, which agree with it.

    A decoder may have weights of its own (the core tensor of TuckER, the filters of ConvE):
    `make_weights` makes a module of them, and the three functions get it as their first argument.
    It is trained and saved with the model. Its dropout is that of `encoders/parameters.py`, which
    draws from the generator of the run. It has no weight of a single node, such as a bias, because
    nodes that arrive after training would lack it.
    """

    score: Score  # head, relation, tail: (..., dim), (..., relation_dim), (..., dim) -> (...)
    # head, relation, nodes: (batch, dim), (batch, relation_dim), (num_nodes, dim)
    score_all_tails: Score  # -> (batch, num_nodes)
    # head, tail, relations: (batch, dim), (batch, dim), (num_relations, relation_dim)
    score_all_relations: Score  # -> (batch, num_relations)
    is_distance: bool  # scores are 0 or less
    num_parts: int = 1  # dim must be a multiple of it
    relation_parts: int = 1  # a relation has this many vectors of size dim
    is_complex: bool = False  # whether vectors are complex numbers, real halves first
    relation_start: Literal["xavier", "phases"] = "xavier"  # phases: rotations by uniform angles
    make_weights: MakeWeights | None = None  # None: a formula without weights
    # head, relation -> a vector (..., dim) whose product with the tail is the score, or whose
    # negative distance (L2) to it, if `is_distance`; None: the score is neither
    tail_query: Score | None = None

    def relation_dim(self, dim: int) -> int:
        """The size of a relation vector where nodes have `dim` numbers."""
        if dim < 1 or dim % self.num_parts:
            raise InputError(f"dim is {dim}; this decoder needs a multiple of {self.num_parts}")
        return dim * self.relation_parts

    def new_weights(self, dim: int, generator: torch.Generator) -> nn.Module | None:
        """The initial weights of the decoder itself; None if it has none."""
        if self.make_weights is None:
            return None
        weights = self.make_weights(dim, generator)
        for part in weights.modules():
            if isinstance(part, nn.modules.dropout._DropoutNd):
                raise InputError(
                    f"the weights of the decoder have {part}, which draws from PyTorch's global "
                    "generator; use Dropout of nodepiece.encoders.parameters, which draws from "
                    "that of the run"
                )
        return weights

    def with_weights(self, weights: nn.Module | None) -> "Decoder":
        """The decoder as functions of three tensors, whether or not it has weights."""
        if weights is None:
            return self
        return replace(
            self,
            score=partial(self.score, weights),
            score_all_tails=partial(self.score_all_tails, weights),
            score_all_relations=partial(self.score_all_relations, weights),
            tail_query=None if self.tail_query is None else partial(self.tail_query, weights),
        )

    def __reduce__(self) -> tuple[Any, ...] | str:
        """Pickle a decoder of DECODERS by its name, as lambdas cannot be pickled."""
        for name, decoder in DECODERS.items():
            if decoder is self:
                return decoder_named, (name,)
        return super().__reduce_ex__(2)


@dataclass(frozen=True, eq=False)
class VectorScores:
    """Vectors and decoder of scores that are those of a decoder alone."""

    nodes: Tensor  # (num_nodes, dim)
    relations: Tensor  # (num_relations, relation_dim), inverses included
    decoder: Decoder  # with `tail_query`


def transe(head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
    """TransE (Bordes et al., 2013), with the L2 norm."""
    return -torch.linalg.vector_norm(head + relation - tail, dim=-1)


def transe_l1(head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
    """TransE (Bordes et al., 2013), with the L1 norm."""
    return -(head + relation - tail).abs().sum(dim=-1)


def distmult(head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
    """DistMult (Yang et al., 2015). Symmetric in head and tail."""
    return (head * relation * tail).sum(dim=-1)


def complex_score(head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
    """ComplEx (Trouillon et al., 2016): the real part of head * relation * conjugate of tail."""
    return (multiply(head, relation) * tail).sum(dim=-1)


def rotate(head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
    """RotatE (Sun et al., 2019), with the L2 norm of the whole difference, as in NodePiece's code.

    The relation is normalized to unit modulus here, so any vector is a rotation.
    """
    return _RotationScore.apply(head, to_unit_modulus(relation), tail)  # type: ignore[no-untyped-call]


def rotate_and_scale(head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
    """RotatE without the normalization of relations, which may then also scale.

    As published on top of graph layers, after which relations no longer have unit modulus.
    """
    return _RotationScore.apply(head, relation, tail)  # type: ignore[no-untyped-call]


class _RotationScore(torch.autograd.Function):
    """-|head * rotation - tail| with an explicit gradient, in half the passes over memory."""

    @staticmethod
    def forward(ctx: Any, head: Tensor, rotation: Tensor, tail: Tensor) -> Tensor:
        shape = torch.broadcast_shapes(head.shape, rotation.shape, tail.shape)  # type: ignore[no-untyped-call]
        dtype = torch.promote_types(torch.promote_types(head.dtype, rotation.dtype), tail.dtype)
        difference = product(head.to(dtype).expand(shape), rotation, sign=1).sub_(tail)
        distance = torch.linalg.vector_norm(difference, dim=-1)
        ctx.save_for_backward(head, rotation, difference, distance)
        ctx.like_tail = tail.shape, tail.dtype
        return -distance

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        head, rotation, difference, distance = ctx.saved_tensors
        slope = (-gradient / distance).masked_fill(distance == 0, 0.0)
        of_difference = difference * slope[..., None]
        of_head = product(of_difference, rotation, sign=-1)
        of_rotation = product(of_difference, head, sign=-1)
        shape, dtype = ctx.like_tail
        return (
            of_head.sum_to_size(head.shape).to(head.dtype),
            of_rotation.sum_to_size(rotation.shape).to(rotation.dtype),
            of_difference.sum_to_size(shape).neg().to(dtype),
        )


def rotate_moduli(head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
    """RotatE (Sun et al., 2019), with the sum of the moduli of the difference, as in its code."""
    return -moduli(multiply(head, to_unit_modulus(relation)) - tail).sum(dim=-1)


def pairre(head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
    """PairRE (Chao et al., 2021). The relation (..., 2 * dim) scales head and tail of length 1."""
    for_head, for_tail = relation.chunk(2, dim=-1)
    head, tail = functional.normalize(head, dim=-1), functional.normalize(tail, dim=-1)
    return -(head * for_head - tail * for_tail).abs().sum(dim=-1)


def autosf(head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
    """AutoSF (Zhang et al., 2020): the structure found for WikiKG2, on four chunks of a vector."""
    return (_autosf_tail_query(head, relation) * tail).sum(dim=-1)


def _autosf_tail_query(head: Tensor, relation: Tensor) -> Tensor:
    h0, h1, h2, h3 = head.chunk(4, dim=-1)
    r0, r1, r2, r3 = relation.chunk(4, dim=-1)
    return torch.cat([h0 * r0, (h1 - h3) * r1, h2 * r0 + h3 * r3, (h1 + h2) * r2], dim=-1)


def _autosf_relation_query(head: Tensor, tail: Tensor) -> Tensor:
    h0, h1, h2, h3 = head.chunk(4, dim=-1)
    t0, t1, t2, t3 = tail.chunk(4, dim=-1)
    return torch.cat([h0 * t0 + h2 * t2, (h1 - h3) * t1, (h1 + h2) * t3, h3 * t2], dim=-1)


def _rotate_all_relations(head: Tensor, tail: Tensor, relations: Tensor) -> Tensor:
    """RotatE's scores of all relations, by one matrix product: |head * rotation| = |head|."""
    squared_lengths = head.square().sum(dim=-1) + tail.square().sum(dim=-1)  # (batch,)
    products = multiply(conjugate(head), tail) @ to_unit_modulus(relations).T
    return -safe_root(squared_lengths[:, None] - 2 * products)


def all_tails_in_chunks(score: Score) -> Score:
    """`score_all_tails` by a formula without a faster form, in chunks of nodes.

    Weights in training mode are called once, with all nodes: a chunk is computed again in the
    backward pass, where dropout would draw another mask and BatchNorm would update its statistics
    a second time. This takes batch * num_nodes * dim numbers.
    """

    def score_all_tails(*tensors: Any) -> Tensor:
        *weights, head, relation, nodes = tensors

        def score_chunk(chunk: Tensor) -> Tensor:
            return score(*weights, head[:, None], relation[:, None], chunk)

        if _are_trained(weights):
            return score_chunk(nodes)
        return in_chunks(score_chunk, nodes, cells_each=head.numel())

    return score_all_tails


def all_relations_in_chunks(score: Score) -> Score:
    """`score_all_relations` by a formula without a faster form, in chunks of relations.

    Weights in training mode are called once, with all relations, as in `all_tails_in_chunks`.
    """

    def score_all_relations(*tensors: Any) -> Tensor:
        *weights, head, tail, relations = tensors

        def score_chunk(chunk: Tensor) -> Tensor:
            return score(*weights, head[:, None], chunk, tail[:, None])

        if _are_trained(weights):
            return score_chunk(relations)
        return in_chunks(score_chunk, relations, cells_each=head.numel())

    return score_all_relations


def _are_trained(weights: list[nn.Module]) -> bool:
    """Whether the decoder has weights in training mode; the list is empty or has one module."""
    return torch.is_grad_enabled() and any(module.training for module in weights)


def decoder_named(name: str) -> Decoder:
    return DECODERS[name]


DECODERS: dict[str, Decoder] = {
    "transe": Decoder(
        transe,
        lambda head, relation, nodes: negative_distances(head + relation, nodes),
        lambda head, tail, relations: negative_distances(tail - head, relations),
        is_distance=True,
        tail_query=lambda head, relation: head + relation,
    ),
    "transe-l1": Decoder(
        transe_l1,
        all_tails_in_chunks(transe_l1),
        all_relations_in_chunks(transe_l1),
        is_distance=True,
    ),
    "distmult": Decoder(
        distmult,
        lambda head, relation, nodes: products(head * relation, nodes),
        lambda head, tail, relations: (head * tail) @ relations.T,
        is_distance=False,
        tail_query=lambda head, relation: head * relation,
    ),
    "complex": Decoder(
        complex_score,
        lambda head, relation, nodes: products(multiply(head, relation), nodes),
        lambda head, tail, relations: multiply(conjugate(head), tail) @ relations.T,
        is_distance=False,
        num_parts=2,
        is_complex=True,
        tail_query=multiply,
    ),
    "rotate": Decoder(
        rotate,
        lambda head, relation, nodes: negative_distances(
            multiply(head, to_unit_modulus(relation)), nodes
        ),
        _rotate_all_relations,
        is_distance=True,
        num_parts=2,
        is_complex=True,
        relation_start="phases",
        tail_query=lambda head, relation: multiply(head, to_unit_modulus(relation)),
    ),
    "rotate-and-scale": Decoder(
        rotate_and_scale,
        lambda head, relation, nodes: negative_distances(multiply(head, relation), nodes),
        all_relations_in_chunks(rotate_and_scale),
        is_distance=True,
        num_parts=2,
        is_complex=True,
        relation_start="phases",
        tail_query=multiply,
    ),
    "rotate-moduli": Decoder(
        rotate_moduli,
        all_tails_in_chunks(rotate_moduli),
        all_relations_in_chunks(rotate_moduli),
        is_distance=True,
        num_parts=2,
        is_complex=True,
        relation_start="phases",
    ),
    "pairre": Decoder(
        pairre,
        all_tails_in_chunks(pairre),
        all_relations_in_chunks(pairre),
        is_distance=True,
        relation_parts=2,
    ),
    "autosf": Decoder(
        autosf,
        lambda head, relation, nodes: products(_autosf_tail_query(head, relation), nodes),
        lambda head, tail, relations: _autosf_relation_query(head, tail) @ relations.T,
        is_distance=False,
        num_parts=4,
        tail_query=_autosf_tail_query,
    ),
}
