"""Node vectors without some facts, computed again only where they change.

With graph layers a fact that goes away changes the messages of its two nodes, after the next layer
those of their neighbours, and so on. In each layer the sums of messages of all other nodes stay as
they are, and a node whose neighbour changed gets the difference. The result is that of computing
all vectors again, up to rounding.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import torch
from torch import Tensor

from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.unseen_nodes import encode_rows
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.graph_layers import GraphLayer, Neighbourhoods
from nodepiece.graph.adjacency import Adjacency
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray, positions_of_runs
from nodepiece.tokenizer.token_rows import TokenRows

EDGES_AT_ONCE = 1 << 15  # whose messages are in memory


@dataclass(frozen=True, eq=False)
class LayerState:
    """What each graph layer gets and aggregates, for all nodes of a graph."""

    model: LinkModel
    adjacency: Adjacency
    inputs: list[Tensor]  # (num_nodes, dim) before each layer
    messages: list[Tensor]  # (num_nodes, dim) the aggregated messages of each layer

    @staticmethod
    def of(
        model: LinkModel, adjacency: Adjacency, edge_index: EdgeIndex, encoded: Tensor
    ) -> "LayerState":
        """All of it, from the encoder's output, without gradients."""
        neighbourhoods, relations = Neighbourhoods(edge_index), model.relation_vectors()
        inputs, messages = [encoded], []
        for layer in cast(Iterable[GraphLayer], model.layers):
            messages.append(layer.aggregate(inputs[-1], relations, neighbourhoods))
            inputs.append(layer.combine(inputs[-1], messages[-1]))
        return LayerState(model, adjacency, inputs[:-1], messages)

    @cached_property
    def pairs(self) -> tuple[LongArray, LongArray]:
        """The distinct (node, relation) of edges as numbers, ascending, and how many edges each."""
        adjacency = self.adjacency
        node = np.repeat(np.arange(adjacency.num_nodes), adjacency.degrees)
        return np.unique(node * adjacency.num_relations + adjacency.relations, return_counts=True)

    @cached_property
    def num_kinds(self) -> LongArray:
        """(num_nodes,) the number of distinct relations of each node."""
        nodes = self.pairs[0] // self.adjacency.num_relations
        return np.bincount(nodes, minlength=self.adjacency.num_nodes)

    def shares(self, targets: LongArray, relations: LongArray) -> FloatArray:
        """The weight of edges in the sum of their targets: see `Neighbourhoods`."""
        keys, counts = self.pairs
        place = np.searchsorted(keys, targets * self.adjacency.num_relations + relations)
        return 1 / (self.num_kinds[targets] * counts[place])

    def aggregate(self, vectors: Tensor, nodes: LongArray, removed: "Removed") -> Tensor:
        """The aggregated messages of some nodes, without some edges: (num_given, dim)."""
        row, position = expand_rows(self.adjacency, nodes)
        kept = ~np.isin(position, removed.positions)
        row, position = row[kept], position[kept]
        relations = self.adjacency.relations[position].astype(np.int64)
        sources = self.adjacency.neighbours[position].astype(np.int64)
        _, kind, count = np.unique(
            row * self.adjacency.num_relations + relations, return_inverse=True, return_counts=True
        )
        first = np.unique(kind, return_index=True)[1]
        num_kinds = np.bincount(row[first], minlength=len(nodes))
        share = 1 / (num_kinds[row] * count[kind])
        zeros = vectors.new_zeros(len(nodes), vectors.shape[1])
        return self.add_messages(zeros, row, relations, share, vectors, sources)

    def add_messages(
        self,
        sums: Tensor,
        row: LongArray,
        relations: LongArray,
        share: FloatArray,
        vectors: Tensor,
        sources: LongArray,
    ) -> Tensor:
        """Add share * source * relation to row after row of `sums`, in place."""
        table, device = self.model.relation_vectors(), sums.device
        for start in range(0, len(row), EDGES_AT_ONCE):
            part = slice(start, start + EDGES_AT_ONCE)
            message = vectors[torch.from_numpy(sources[part]).to(device)]
            message = message * table[torch.from_numpy(relations[part]).to(device)]
            message *= torch.from_numpy(share[part]).to(sums)[:, None]
            sums.index_add_(0, torch.from_numpy(row[part]).to(device), message)
        return sums

    def without(self, removed: "Removed", rows: TokenRows) -> tuple[LongArray, Tensor]:
        """The nodes whose vectors differ without some edges, ascending, and their new vectors.

        rows: the tokens that differ.
        """
        changed = rows.nodes.astype(np.int64)
        vectors = encode_rows(self.model, rows)
        for layer, inputs, messages in zip(
            self.model.layers, self.inputs, self.messages, strict=True
        ):
            row, position = expand_rows(self.adjacency, changed)
            targets = self.adjacency.neighbours[position].astype(np.int64)
            num_direct = self.adjacency.num_relations // 2
            relations = self.adjacency.relations[position].astype(np.int64)
            inverse = (relations + num_direct) % (2 * num_direct)
            affected = np.unique(np.concatenate([changed, targets, removed.ends]))
            device = inputs.device
            now = inputs.index_copy(0, torch.from_numpy(changed).to(device), vectors)
            difference = vectors - inputs[torch.from_numpy(changed).to(device)]
            sums = messages[torch.from_numpy(affected).to(device)]
            share = self.shares(targets, inverse)
            place = np.searchsorted(affected, targets)
            sums = self.add_messages(sums, place, inverse, share, difference, row)
            ends = torch.from_numpy(np.searchsorted(affected, removed.ends)).to(device)
            sums[ends] = self.aggregate(now, removed.ends, removed)
            own = now[torch.from_numpy(affected).to(device)]
            changed, vectors = affected, cast(GraphLayer, layer).combine(own, sums)
        if self.model.node_norm is not None:
            vectors = self.model.node_norm(vectors)
        return changed, vectors


@dataclass(frozen=True, eq=False)
class Removed:
    """Edges that go away, by their positions in an adjacency."""

    ends: LongArray  # (num_ends,) the nodes of these edges, ascending
    positions: LongArray  # (num_positions,) both ways

    @staticmethod
    def of(adjacency: Adjacency, facts: IntArray) -> "Removed":
        """facts: (num_facts, 3) of the graph of the adjacency."""
        num_direct = adjacency.num_relations // 2
        positions = [np.empty(0, np.int64)]
        for head, relation, tail in facts.tolist():
            for node, kind, other in ((head, relation, tail), (tail, relation + num_direct, head)):
                start, end = adjacency.offsets[node : node + 2].tolist()
                row = slice(start, end)
                is_it = (adjacency.neighbours[row] == other) & (adjacency.relations[row] == kind)
                positions.append(start + np.flatnonzero(is_it))
        ends = np.unique(facts[:, ::2]).astype(np.int64)
        return Removed(ends, np.concatenate(positions))


def expand_rows(adjacency: Adjacency, nodes: LongArray) -> tuple[LongArray, LongArray]:
    """All edges of some nodes: the place of the node in `nodes`, and the position of the edge."""
    return positions_of_runs(adjacency.offsets[nodes], adjacency.degrees[nodes])
