"""The edges of a graph for message passing: one record for all layers, walks and propagation."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from nodepiece.encoders.compressed_rows import places_by_source, rows_by_source
from nodepiece.encoders.edge_rows import EdgeRows
from nodepiece.encoders.segments import EdgeGroups, group_edges
from nodepiece.graph.arrays import IntArray, LongArray

CHUNK = 512  # edges of a target that one GPU program of `message_moments` goes through
NUM_BLOCKS = 64  # of targets; more than any number of CPU threads needs


@dataclass(frozen=True)
class RelationSourcePairs:
    """The distinct (relation, source) pairs of some edges, in ascending order.

    A message that depends on the two alone is computed once for a pair. Wikidata's graph has 2.7
    times fewer pairs than edges.
    """

    of_edges: EdgeGroups  # num_edges edges, num_pairs rows
    relations: EdgeGroups  # of pairs: num_pairs edges, num_relations rows
    sources: EdgeGroups  # of pairs: num_pairs edges, num_nodes rows

    @cached_property
    def num_direct(self) -> int:
        """The number of pairs with a direct relation, which come first."""
        return int((self.relations.rows < self.relations.num_rows // 2).sum())


@dataclass(frozen=True)
class TargetRelationPairs:
    """The distinct (target, relation) pairs of some edges, in ascending order."""

    of_edges: EdgeGroups  # num_edges edges, num_pairs rows
    key: Tensor  # (num_pairs,) int64: target * (num_relations + 1) + relation
    num_nodes: int
    num_relations: int

    @cached_property
    def targets(self) -> EdgeGroups:
        """Of pairs: num_pairs edges, num_nodes rows."""
        rows = self.key // (self.num_relations + 1)
        return EdgeGroups(rows, self.num_nodes, is_sorted=True)


@dataclass(frozen=True)
class EdgeIndex:
    """Edges, inverses included, in the order of the caller or sorted.

    A message goes along the relation of an edge from its source, the tail, to its target, the head.
    The groupings below are computed on first use, so that one which is not used costs neither time
    nor memory. A step that is captured in a CUDA graph computes them in its warm-up.
    """

    edges: Tensor  # (num_edges, 3) integers in the caller's order: target, relation, source
    num_nodes: int
    num_relations: int  # direct and inverse; the second half of the ids are the inverses
    sorted_by: Literal["target", "direction"] | None = None  # direction: direct first; then target
    is_sorted: bool = False  # whether the caller's order is this order

    @property
    def num_edges(self) -> int:
        return len(self.edges)

    @property
    def device(self) -> torch.device:
        return self.edges.device

    @cached_property
    def order(self) -> Tensor:
        """(num_edges,) int64: the position of each edge in the caller's order."""
        if self.sorted_by is None:
            return torch.arange(self.num_edges, device=self.device)
        return self._sorted[1]

    @cached_property
    def target(self) -> EdgeGroups:
        if self.sorted_by == "target":
            return EdgeGroups(self._sorted[0], self.num_nodes, is_sorted=True)
        return group_edges(self._column(0), self.num_nodes)

    @cached_property
    def relation(self) -> EdgeGroups:
        return group_edges(self._column(1), self.num_relations)

    @cached_property
    def source(self) -> EdgeGroups:
        return group_edges(self._column(2), self.num_nodes)

    @cached_property
    def compressed_rows(self) -> tuple[Tensor, Tensor, Tensor]:
        """Edges in compressed rows (CSR), one row for each target, for CPU kernels.

        int32: where the rows start, (num_nodes + 1,); the source and the relation of every edge.
        """
        self._check_sorted_by("target")
        return self.target.edges.offsets, self.source.rows.int(), self.relation.rows.int()

    @cached_property
    def rows_by_source(self) -> tuple[LongArray, IntArray, IntArray]:
        """Edges in compressed rows, one row for each source, in the caller's order, for a CPU.

        Where the rows start, (num_nodes + 1,); the target and the relation of every edge.
        """
        return rows_by_source(self.edges.cpu().numpy(), self.num_nodes)

    @cached_property
    def edge_rows(self) -> EdgeRows:
        """`rows_by_source`, with the memory that training uses again in every step."""
        return EdgeRows.of(self.rows_by_source)

    @cached_property
    def edges_by_source(self) -> IntArray:
        """(num_edges,): where each edge of `rows_by_source` is in the order of this index."""
        places = places_by_source(self.edges.cpu().numpy(), self.rows_by_source[0])
        if self.sorted_by is None or self.is_sorted:
            return places
        place = np.empty_like(places)
        place[self.order.cpu().numpy()] = np.arange(len(places), dtype=np.int32)
        return place[places]

    def given(self, edges: LongArray) -> LongArray:
        """The positions of some edges of this index in the caller's order."""
        if self.sorted_by is None or self.is_sorted:
            return edges
        return self.order[torch.from_numpy(edges).to(self.device)].cpu().numpy()

    @cached_property
    def directed_target(self) -> EdgeGroups:
        """Edges grouped by direction and target: 2 * num_nodes rows.

        Row n is node n as the target of direct relations, row num_nodes + n of inverse ones.
        """
        self._check_sorted_by("direction")
        return EdgeGroups(self._sorted[0], 2 * self.num_nodes, is_sorted=True)

    @cached_property
    def num_direct_edges(self) -> int:
        """The number of edges along direct relations, which come first."""
        return int((self.directed_target.rows < self.num_nodes).sum())

    def directed_source(self) -> Tensor:
        """(num_edges,): the source of every edge, as a target in the other direction."""
        pairs = self.pairs
        source = pairs.sources.rows.index_select(0, pairs.of_edges.rows)
        return source + (self.directed_target.rows < self.num_nodes) * self.num_nodes

    @cached_property
    def pairs(self) -> RelationSourcePairs:
        """The distinct (relation, source) pairs. Costs a sort."""
        key, pair = torch.unique(
            self._column(1) * self.num_nodes + self._column(2), return_inverse=True
        )
        relation = key // max(1, self.num_nodes)
        return RelationSourcePairs(
            group_edges(pair, len(key)),
            EdgeGroups(relation, self.num_relations, is_sorted=True),
            group_edges(key % max(1, self.num_nodes), self.num_nodes),
        )

    @cached_property
    def target_relations(self) -> TargetRelationPairs:
        """The distinct (target, relation) pairs. Costs a sort."""
        key, pair = torch.unique(
            self._column(0) * (self.num_relations + 1) + self._column(1), return_inverse=True
        )
        of_edges = group_edges(pair, len(key))
        return TargetRelationPairs(of_edges, key, self.num_nodes, self.num_relations)

    @cached_property
    def by_target(self) -> "tuple[EdgeIndex, Tensor]":
        """These edges sorted by target, and the place of each in the order of this index."""
        if self.sorted_by == "target":
            return self, torch.arange(self.num_edges, device=self.device)
        index = replace(self, sorted_by="target")
        place = torch.empty_like(self.order)
        place[self.order] = torch.arange(self.num_edges, device=self.device)
        return index, place[index.order]

    def insert(self, more: Tensor) -> "tuple[EdgeIndex, Tensor]":
        """These edges, sorted by target, with a few more at their places; not all are sorted again.

        more: (num_more, 3). Also returns the place of every edge among these and then `more`.
        """
        self._check_sorted_by("target")
        target, order = torch.sort(more[:, 0].long(), stable=True)
        at = torch.searchsorted(self.target.rows, target, right=True)
        at = at + torch.arange(len(more), device=self.device)
        place = at.new_ones(self.num_edges + len(more)).index_fill_(0, at, 0).cumsum(0) - 1
        place = place.index_copy_(0, at, order + self.num_edges)
        columns = (self.target.rows, self.relation.rows, self.source.rows)
        edges = [
            torch.cat([rows, new.long()]).index_select(0, place)
            for rows, new in zip(columns, more.T, strict=True)
        ]
        return replace(self, edges=torch.stack(edges, dim=1), is_sorted=True), place

    @cached_property
    def chunks(self) -> tuple[Tensor, Tensor]:
        """What each GPU program of `message_moments` goes through, and which results it combines.

        (num_chunks, 4) int32: target, first edge, end, slot for a partial result, or -1; and of
        targets with several chunks, (num_split, 3) int32: target, first slot, end.
        """
        self._check_sorted_by("target")
        return cut_targets(self.target.edges.offsets.long())

    @cached_property
    def target_blocks(self) -> LongArray:
        """(NUM_BLOCKS + 1,) the first targets of blocks with about equally many edges and targets.

        The threads of `message_moments` on a CPU take one block after the other.
        """
        offsets = self.compressed_rows[0].numpy()
        work = offsets[:-1] + np.arange(len(offsets) - 1)  # before each target
        ends = np.linspace(0, offsets[-1] + len(offsets) - 1, NUM_BLOCKS + 1)
        return np.searchsorted(work, ends).astype(np.int64)

    @cached_property
    def _sorted(self) -> tuple[Tensor, Tensor]:
        """Targets, or directed targets, in ascending order, and the position of each edge."""
        target = self.edges[:, 0].long()
        if self.sorted_by == "direction":
            is_inverse = self.edges[:, 1] >= self.num_relations // 2
            target = target + is_inverse * self.num_nodes
        if self.is_sorted:
            return target.contiguous(), torch.arange(self.num_edges, device=self.device)
        rows, order = torch.sort(target, stable=True)
        return rows, order

    def _column(self, column: int) -> Tensor:
        """(num_edges,) int64, in the order of this index."""
        values = self.edges[:, column].long()
        return values if self.sorted_by is None or self.is_sorted else values[self.order]

    def _check_sorted_by(self, name: str) -> None:
        if self.sorted_by != name:
            raise ValueError(f"edges must be sorted by {name}, not by {self.sorted_by}")


def cut_targets(offsets: Tensor) -> tuple[Tensor, Tensor]:
    """`EdgeIndex.chunks` of offsets (num_nodes + 1,); the chunks of split targets come first."""
    device = offsets.device
    sizes = offsets.diff()
    num_chunks = ((sizes + CHUNK - 1) // CHUNK).clamp_min(1)
    order = num_chunks.argsort(descending=True, stable=True)
    target = order.repeat_interleave(num_chunks[order])
    first_of = (num_chunks[order].cumsum(0) - num_chunks[order]).repeat_interleave(
        num_chunks[order]
    )
    slot = torch.arange(len(target), device=device)
    start = offsets[target] + CHUNK * (slot - first_of)
    end = torch.minimum(start + CHUNK, offsets[target + 1])
    is_split = num_chunks[target] > 1
    chunks = torch.stack([target, start, end, torch.where(is_split, slot, -1)], dim=1).int()
    parts = order[num_chunks[order] > 1]
    stop = num_chunks[parts].cumsum(0)
    return chunks, torch.stack([parts, stop - num_chunks[parts], stop], dim=1).int()
