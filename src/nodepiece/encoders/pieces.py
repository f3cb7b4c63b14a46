"""The tokens of nodes as tensors, and the vectors of the pieces they name."""

import warnings
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import embedding

from nodepiece.encoders.parameters import phases, xavier
from nodepiece.tokenizer.tokens import NO_DISTANCE, TokenTable


@dataclass(frozen=True)
class Tokens:
    """The tokens of some nodes, as indices into the tables of anchors, distances and relations."""

    anchors: Tensor  # (batch, k) in [0, num_anchors + 2): anchors, [PAD], [DISCONNECTED]
    distances: Tensor | None  # (batch, k) in [0, num_distances): hops, the last: none
    relations: Tensor  # (batch, m) in [0, num_relations + 1): relations, [PAD]

    def of(self, nodes: Tensor | slice) -> "Tokens":
        distances = None if self.distances is None else rows_of(self.distances, nodes)
        return Tokens(rows_of(self.anchors, nodes), distances, rows_of(self.relations, nodes))

    def clone(self) -> "Tokens":
        distances = None if self.distances is None else self.distances.clone()
        return Tokens(self.anchors.clone(), distances, self.relations.clone())

    def copy_from(self, other: "Tokens") -> None:
        """Copy tokens of as many nodes in place, at the addresses of a captured CUDA graph."""
        self.anchors.copy_(other.anchors)
        self.relations.copy_(other.relations)
        if self.distances is not None and other.distances is not None:
            self.distances.copy_(other.distances)


@dataclass(frozen=True)
class PieceVectors:
    """The tables that Tokens index: (num_anchors + 2, dim), (num_distances, dim), ..."""

    anchors: Tensor
    distances: Tensor | None
    relations: Tensor  # (num_relations + 1, dim)

    def of(self, tokens: Tokens) -> Tensor:
        """The vectors of pieces, anchors plus distances, then relations: (batch, k + m, dim)."""
        anchors = embedding(tokens.anchors, self.anchors)
        if self.distances is not None and tokens.distances is not None:
            anchors = anchors + embedding(tokens.distances, self.distances)
        return torch.cat([anchors, embedding(tokens.relations, self.relations)], dim=1)


@dataclass(frozen=True)
class PieceCounts:
    """Sizes of the vocabulary and of a node's tokens: all that an encoder needs to know."""

    num_nodes: int
    num_anchors: int  # without [PAD] and [DISCONNECTED]
    num_distances: int  # 0: the ablation without distances; else hops 0..max, and one for none
    num_relations: int  # direct and inverse, without [PAD]
    anchors_per_node: int  # k
    relations_per_node: int  # m

    @property
    def num_pieces(self) -> int:
        return self.anchors_per_node + self.relations_per_node


def count_pieces(table: TokenTable) -> PieceCounts:
    vocabulary = table.vocabulary
    has_distances = vocabulary.settings.distances and table.anchors_per_node > 0
    return PieceCounts(
        table.num_nodes,
        vocabulary.num_anchors,
        table.max_distance + 2 if has_distances else 0,
        vocabulary.num_relations,
        table.anchors_per_node,
        table.relations_per_node,
    )


class TokenTensors(nn.Module):
    """A token table on the device of the model; not trained, not part of its saved state.

    The rows share the memory of the table and are converted to indices on use. So on the CPU
    nothing is copied, and only the rows in use are read from a table that is mapped from disk.
    """

    anchors: Tensor
    distances: Tensor | None
    relations: Tensor

    def __init__(self, table: TokenTable) -> None:
        super().__init__()
        table.check()  # kernels use the values as indices
        self.counts = count_pieces(table)
        has_distances = self.counts.num_distances > 0
        for name, rows in (
            ("anchors", shared_memory(table.anchors)),
            ("distances", shared_memory(table.distances) if has_distances else None),
            ("relations", shared_memory(table.relations)),
        ):
            self.register_buffer(name, rows, persistent=False)

    def without_rows(self) -> "TokenTensors":
        """An empty table with the same counts, for `of_rows`."""
        empty = copy(self)
        empty._buffers = {
            name: None if rows is None else rows[:0].clone() for name, rows in self._buffers.items()
        }
        return empty

    def tokens(self) -> Tokens:
        """The tokens of all nodes."""
        return self._indices(self.anchors, self.distances, self.relations)

    def of(self, nodes: Tensor | slice) -> Tokens:
        """The tokens of some nodes, by their ids or from one id to another."""
        distances = None if self.distances is None else rows_of(self.distances, nodes)
        return self._indices(
            rows_of(self.anchors, nodes), distances, rows_of(self.relations, nodes)
        )

    def of_rows(self, anchors: Tensor, distances: Tensor, relations: Tensor) -> Tokens:
        """The tokens of nodes that are not in the table, from their token rows.

        A distance above the largest one in training is replaced by that one.
        """
        largest = self.counts.num_distances - 2
        return self._indices(
            anchors, None if self.distances is None else distances.clamp(max=largest), relations
        )

    def _indices(self, anchors: Tensor, distances: Tensor | None, relations: Tensor) -> Tokens:
        """Convert token ids, one numbering for all pieces, to indices of each kind of piece."""
        num_anchors, none = self.counts.num_anchors, self.counts.num_distances - 1
        anchors = torch.where(anchors < num_anchors, anchors, anchors - self.counts.num_relations)
        if distances is not None:
            distances = distances.int()
            distances = torch.where(distances == NO_DISTANCE, none, distances)
        return Tokens(anchors, distances, relations - num_anchors)


def rows_of(rows: Tensor, nodes: Tensor | slice) -> Tensor:
    """Some rows of a table, by ids or from one id to another.

    A negative id is an error; on a GPU a device assertion, as in nn.Embedding.
    """
    return rows[nodes] if isinstance(nodes, slice) else rows.index_select(0, nodes)


def shared_memory(rows: NDArray[Any]) -> Tensor:
    """A tensor that shares the memory of an array; it must not be written to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns that it has no read-only tensors
        return torch.from_numpy(rows)


def shuffle_equidistant(tokens: Tokens, *, generator: torch.Generator) -> Tokens:
    """Anchors at equal distances in a new random order (the paper's pi-SGD), nearest first."""
    if tokens.distances is None:
        return tokens
    shape, device = tokens.distances.shape, tokens.distances.device
    # Less than one half, so that rounding never lifts a key to that of the next distance.
    key = tokens.distances + torch.rand(shape, generator=generator, device=device) / 2
    anchors = tokens.anchors.gather(1, key.argsort(dim=1))
    return Tokens(anchors, tokens.distances, tokens.relations)


def resample_relations(tokens: Tokens, table: TokenTable, *, rng: np.random.Generator) -> Tokens:
    """A new sample of every node's relational context."""
    vocabulary = table.vocabulary
    table.relation_sets.check(vocabulary.num_relations)
    sample = table.relation_sets.sample(
        table.relations_per_node,
        vocabulary.num_relations,
        rng=rng,
        ascending=vocabulary.settings.relation_order == "ascending",
    )
    relations = torch.tensor(sample, dtype=torch.int32).to(tokens.relations.device)
    return Tokens(tokens.anchors, tokens.distances, relations)


class PieceTables(nn.Module):
    """The trained vectors of anchors, distances and relations: the vocabulary of the model."""

    def __init__(
        self,
        counts: PieceCounts,
        dim: int,
        *,
        zero_padding: bool = False,  # of relations: a zero vector in place of a trained one
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        num_anchor_rows = counts.num_anchors + 2 if counts.anchors_per_node else 0
        self.anchors = xavier(num_anchor_rows, dim, generator=generator)
        self.distances = xavier(counts.num_distances, dim, generator=generator)
        self.relations = phases(counts.num_relations, dim, generator=generator)
        num_padding = 1 if counts.relations_per_node else 0
        self.relation_padding = xavier(num_padding, dim, generator=generator)
        if zero_padding:
            self.relation_padding = nn.Parameter(torch.zeros(num_padding, dim), requires_grad=False)

    def vectors(self) -> PieceVectors:
        distances = self.distances if len(self.distances) else None
        relations = torch.cat([self.relations, self.relation_padding])
        return PieceVectors(self.anchors, distances, relations)
