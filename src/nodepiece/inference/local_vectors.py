"""The vectors of a head and a tail after small changes, computed again for these two nodes alone.

Without graph layers they are exact. With layers, the vectors of the neighbours stay as they were: a
fact that goes away changes the messages that its own two nodes receive, while those that their
neighbours receive from other nodes are taken to be the same. So many changes can be compared in
little time; what an explanation states is then computed exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from nodepiece.decoders.unseen_nodes import encode_rows
from nodepiece.encoders.graph_layers import GraphLayer
from nodepiece.graph.arrays import IntArray
from nodepiece.inference.snapshot import Snapshot
from nodepiece.tokenizer.token_rows import TokenRows


@dataclass(frozen=True, eq=False)
class LocalVectors:
    """The vectors of one node after each of some changes."""

    snapshot: Snapshot
    node: int

    def without(self, removals: Sequence[IntArray], rows: TokenRows | None) -> Tensor:
        """The vector of the node without each of some sets of facts: (num_removals, dim).

        rows: the tokens without each set, in this order, of this node and maybe of others; None:
        nodes have no pieces.
        """
        with torch.no_grad():
            if rows is None:
                encoded = self.snapshot.model.nodes.all_nodes()[[self.node] * len(removals)]
            else:
                encoded = self.encode(list(rows.part(rows.nodes == self.node)))
            return self.finish(encoded, removals)

    def with_rows(self, rows: TokenRows) -> Tensor:
        """The vector of the node with each of some rows of tokens: (num_rows, dim)."""
        with torch.no_grad():
            nothing = [np.empty((0, 3), np.int32)] * len(rows.nodes)
            return self.finish(self.encode(list(rows)), nothing)

    def encode(self, columns: list[np.ndarray]) -> Tensor:
        """The encoder's vectors of rows of tokens; equal rows are encoded once."""
        rows = np.concatenate(columns[1:], axis=1)
        _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        distinct = TokenRows(*(column[first] for column in columns))
        encoded = encode_rows(self.snapshot.model, distinct)
        return encoded[torch.from_numpy(place.reshape(-1)).to(encoded.device)]

    def finish(self, encoded: Tensor, removals: Sequence[IntArray]) -> Tensor:
        """The vectors after the graph layers, for each set of facts that the node loses."""
        model = self.snapshot.model
        vectors = encoded
        for layer, inputs in zip(model.layers, self.snapshot.layers.inputs, strict=True):
            received = torch.stack(self.messages(inputs, removals))
            vectors = cast(GraphLayer, layer).combine(vectors, received)
        return vectors if model.node_norm is None else model.node_norm(vectors)

    def messages(self, inputs: Tensor, removals: Sequence[IntArray]) -> list[Tensor]:
        """The mean over relations of mean neighbour * relation, without each set of facts.

        inputs: (num_nodes, dim) the vectors of all nodes before a layer.
        """
        adjacency, vectors = self.snapshot.adjacency, self.snapshot.model.relation_vectors()
        row = slice(*adjacency.offsets[self.node : self.node + 2].tolist())
        sources, relations = adjacency.neighbours[row], adjacency.relations[row]
        each = inputs[torch.tensor(sources, dtype=torch.int64, device=inputs.device)]
        each = each * vectors[torch.tensor(relations, dtype=torch.int64, device=inputs.device)]
        kinds, kind_of = np.unique(relations, return_inverse=True)
        number = np.bincount(kind_of, minlength=len(kinds))
        place = torch.from_numpy(kind_of).to(inputs.device)
        sums = each.new_zeros(len(kinds), each.shape[1]).index_add_(0, place, each)
        means = sums / torch.from_numpy(number).to(sums)[:, None]
        total = means.sum(dim=0)
        results = []
        for facts in removals:
            gone = self.edges_of(facts, sources, relations)
            left, count = total, len(kinds)
            for kind in np.unique(kind_of[gone]):
                lost = gone[kind_of[gone] == kind]
                remaining = int(number[kind]) - len(lost)
                left, count = left - means[kind], count - (remaining == 0)
                if remaining:
                    left = left + (sums[kind] - each[torch.from_numpy(lost)].sum(0)) / remaining
            results.append(left / max(1, count))
        return results

    def edges_of(self, facts: IntArray, sources: IntArray, relations: IntArray) -> IntArray:
        """The positions among the node's edges of those that some facts are."""
        num_direct = self.snapshot.adjacency.num_relations // 2
        places = [np.empty(0, np.int64)]
        for head, relation, tail in facts.tolist():
            if head == self.node:
                places.append(np.flatnonzero((sources == tail) & (relations == relation)))
            if tail == self.node:
                inverse = relation + num_direct
                places.append(np.flatnonzero((sources == head) & (relations == inverse)))
        return np.concatenate(places)
