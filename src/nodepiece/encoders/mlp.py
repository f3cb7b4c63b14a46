"""The paper's main encoder: concatenate the pieces, project twice (section 3.3)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from nodepiece.encoders.bag_sum import Bags, bag_sum, bags_of_width
from nodepiece.encoders.parameters import Dropout, linear
from nodepiece.encoders.pieces import PieceCounts, PieceVectors, Tokens


class MLPEncoder(nn.Module):
    """Linear over the concatenated pieces, dropout, ReLU, linear.

    The first product, over (k + m) * dim numbers a node, is nearly all of the work, and it need
    not be done node by node: W [e_1; ...; e_n] = sum over positions p of W_p e_p, and there are
    few different pieces. `factorized` computes W_p e for every piece and position once and sums
    rows; `forward` concatenates. They give the same numbers up to rounding.

    Anchors are sorted by distance, so the distances of a node follow from the number of anchors
    within each distance: with fewer distances than anchors per node, `factorized` sums a row for
    each distance instead of one for each anchor.
    """

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
        self.counts, self.dim, self.hidden_dim = counts, dim, hidden_dim
        self.hidden = linear(counts.num_pieces * dim, hidden_dim, generator=generator)
        self.output = linear(hidden_dim, dim, generator=generator)
        self.dropout = Dropout(dropout)

    def forward(self, vectors: PieceVectors, tokens: Tokens) -> Tensor:
        return self.finish(self.hidden_layer(vectors, tokens))

    def hidden_layer(self, vectors: PieceVectors, tokens: Tokens) -> Tensor:
        """The hidden layer before dropout and activation: (batch, hidden_dim)."""
        pieces = vectors.of(tokens)  # (batch, k + m, dim)
        hidden: Tensor = self.hidden(pieces.flatten(start_dim=1))
        return hidden

    def factorized(self, vectors: PieceVectors, bags: Bags, transposed: Bags) -> Tensor:
        """Node vectors from `bags`, made by `product_rows` and kept until the tokens change."""
        return self.finish(self.factorized_hidden(vectors, bags, transposed))

    def factorized_hidden(self, vectors: PieceVectors, bags: Bags, transposed: Bags) -> Tensor:
        """What `hidden_layer` returns, from `bags`."""
        return bag_sum(self.products(vectors), bags, transposed) + self.hidden.bias

    def from_sums(self, sums: Tensor) -> Tensor:
        """Node vectors from the sum of each node's products."""
        return self.finish(sums + self.hidden.bias)

    def products(self, vectors: PieceVectors) -> Tensor:
        """W_p e for all pieces e at all their positions p: (num_products, hidden_dim).

        Rows: anchor a at position p is a * k + p; distances follow in the same way, or as
        `distance_steps`, then relations with m positions.
        """
        k, dim = self.counts.anchors_per_node, self.dim
        weight = self.hidden.weight.view(self.hidden_dim, -1, dim).permute(2, 1, 0)
        for_anchors = weight[:, :k].reshape(dim, -1)  # (dim, k * hidden_dim)
        for_relations = weight[:, k:].reshape(dim, -1)
        products = [vectors.anchors @ for_anchors]
        if vectors.distances is not None:
            of_distances = vectors.distances @ for_anchors
            products.append(self.distance_steps(of_distances) if self.by_steps else of_distances)
        products.append(vectors.relations @ for_relations)
        return torch.cat([product.reshape(-1, self.hidden_dim) for product in products])

    @property
    def by_steps(self) -> bool:
        """Whether rows for distances are those of `distance_steps`."""
        return 0 < self.counts.num_distances <= self.counts.anchors_per_node

    def distance_steps(self, products: Tensor) -> Tensor:
        """Rows for the number of anchors within each distance.

        products: (num_distances, k * hidden_dim), W_p e for distance e at position p. With
        before(e, p) = sum of W_q e over q < p, and n(e) anchors within e, those of distance e
        add before(e, n(e)) - before(e, n(e - 1)). Sorted by n: before(last, k), which is row 0,
        plus, for all but the last, before(e, n(e)) - before(e + 1, n(e)), row 1 + e (k + 1) + n(e).
        """
        num_distances, k = self.counts.num_distances, self.counts.anchors_per_node
        products = products.view(num_distances, k, self.hidden_dim)
        exact = products.to(torch.promote_types(products.dtype, torch.float32))  # sums cancel below
        before = pad(exact.cumsum(dim=1), (0, 0, 1, 0))
        steps = (before[:-1] - before[1:]).flatten(end_dim=1)
        return torch.cat([before[-1:, -1], steps]).to(products.dtype)

    @property
    def num_products(self) -> int:
        """The number of rows of `products`."""
        counts, k = self.counts, self.counts.anchors_per_node
        num_distance_rows = counts.num_distances * k
        if self.by_steps:
            num_distance_rows = 1 + (counts.num_distances - 1) * (k + 1)
        num_relation_rows = (counts.num_relations + 1) * counts.relations_per_node
        return (counts.num_anchors + 2) * k + num_distance_rows + num_relation_rows

    def product_rows(self, tokens: Tokens) -> Bags:
        """The rows of `products` whose sum is the hidden layer of each node."""
        counts = self.counts
        k, m = counts.anchors_per_node, counts.relations_per_node
        device = tokens.anchors.device
        position = torch.arange(max(k, m), device=device, dtype=torch.int32)
        columns = [tokens.anchors * k + position[:k]]
        num_rows = (counts.num_anchors + 2) * k
        if tokens.distances is not None and self.by_steps:
            num_steps = counts.num_distances - 1
            distance = torch.arange(num_steps, device=device, dtype=torch.int32)
            each = distance.expand(len(tokens.distances), -1).contiguous()
            within = torch.searchsorted(tokens.distances, each, right=True, out_int32=True)
            step_rows = num_rows + 1 + distance * (k + 1) + within  # (batch, num_steps)
            columns += [torch.full_like(step_rows[:, :1], num_rows), step_rows]
            num_rows += 1 + num_steps * (k + 1)
        elif tokens.distances is not None:
            columns.append(num_rows + tokens.distances * k + position[:k])
            num_rows += counts.num_distances * k
        columns.append(num_rows + tokens.relations * m + position[:m])
        return bags_of_width(torch.cat(columns, dim=1), self.num_products)

    def finish(self, hidden: Tensor) -> Tensor:
        """Node vectors from the hidden layer: (..., hidden_dim) -> (..., dim)."""
        return self.output(self.dropout(hidden).relu())
