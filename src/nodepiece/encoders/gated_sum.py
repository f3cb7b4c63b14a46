"""An encoder that is not in the paper: gate pieces by distance, sum them, apply a small network.

Concatenation needs a weight matrix for each position, which is nearly all of its parameters. A sum
needs none, so the same number of parameters allows wider vectors. A distance scales its anchor
elementwise, so the sum still depends on which anchor is at which distance.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from nodepiece.encoders.bag_sum import Bags, bag_sum, bags_of_width
from nodepiece.encoders.parameters import Dropout, linear
from nodepiece.encoders.pieces import PieceCounts, PieceVectors, Tokens


class GatedSumEncoder(nn.Module):
    """x = norm(sum of anchor * gate of its distance, and of relations); x + W relu(W x)."""

    def __init__(
        self,
        counts: PieceCounts,
        dim: int,
        hidden_dim: int,
        *,
        dropout: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.counts = counts
        self.norm = nn.BatchNorm1d(dim)
        self.hidden = linear(dim, hidden_dim, generator=generator)
        self.output = linear(hidden_dim, dim, generator=generator)
        self.dropout = Dropout(dropout)

    def forward(self, vectors: PieceVectors, tokens: Tokens) -> Tensor:
        """Node vectors, computed with a vector for every piece of every node.

        In training on a CPU, every distinct piece of these nodes, an anchor at a distance or a
        relation, is computed once.
        """
        if self.training and not tokens.anchors.is_cuda:
            return self._of_distinct(vectors, tokens)
        anchors = embedding(tokens.anchors, vectors.anchors)
        if vectors.distances is not None and tokens.distances is not None:
            anchors = anchors * (1 + embedding(tokens.distances, vectors.distances))
        relations = embedding(tokens.relations, vectors.relations)
        return self.from_sums(anchors.sum(dim=1) + relations.sum(dim=1))

    def _of_distinct(self, vectors: PieceVectors, tokens: Tokens) -> Tensor:
        rows, place = torch.unique(self.product_rows(tokens).members, return_inverse=True)
        num_anchor_rows, num_distances = self._num_anchor_rows(), max(1, self.counts.num_distances)
        of_anchors = int(torch.searchsorted(rows, num_anchor_rows))
        pairs, relations = rows[:of_anchors], rows[of_anchors:] - num_anchor_rows
        anchors = embedding(pairs // num_distances, vectors.anchors)
        if vectors.distances is not None:
            anchors = anchors * (1 + embedding(pairs % num_distances, vectors.distances))
        pieces = torch.cat([anchors, embedding(relations, vectors.relations)])
        bags = bags_of_width(place.view(len(tokens.relations), -1), len(pieces))
        return self.from_sums(bag_sum(pieces, bags, bags.transposed()))

    def factorized(self, vectors: PieceVectors, bags: Bags, transposed: Bags) -> Tensor:
        return self.from_sums(bag_sum(self.products(vectors), bags, transposed))

    def products(self, vectors: PieceVectors) -> Tensor:
        """Rows for every anchor at every distance, then every relation: (num_products, dim)."""
        anchors = vectors.anchors
        if vectors.distances is not None:
            gates = 1 + vectors.distances
            anchors = (anchors[:, None] * gates[None]).flatten(end_dim=1)
        return torch.cat([anchors, vectors.relations])

    @property
    def num_products(self) -> int:
        """The number of rows of `products`."""
        has_padding = self.counts.relations_per_node > 0
        return self._num_anchor_rows() + self.counts.num_relations + has_padding

    def product_rows(self, tokens: Tokens) -> Bags:
        anchors = tokens.anchors * max(1, self.counts.num_distances)
        if tokens.distances is not None:
            anchors = anchors + tokens.distances
        members = torch.cat([anchors, self._num_anchor_rows() + tokens.relations], dim=1)
        return bags_of_width(members, self.num_products)

    def _num_anchor_rows(self) -> int:
        counts = self.counts
        if not counts.anchors_per_node:
            return 0
        return (counts.num_anchors + 2) * max(1, counts.num_distances)

    def from_sums(self, summed: Tensor) -> Tensor:
        summed = self.norm(summed)
        return summed + self.output(self.dropout(self.hidden(summed).relu()))
