"""Messages by PyTorch Geometric: a vector for every edge, scattered to its target.

The reference for the fused version, used with `graph.fused = false`.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import scatter, softmax

from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.message_statistics import SMALLEST_VARIANCE, scaled
from nodepiece.encoders.messages import Messages, by_head, mean_shares, normalized

HIDDEN = -1e9  # the score of a hidden edge: its softmax is 0 next to a visible edge


@dataclass(frozen=True)
class Direction:
    """The messages along the edges of one direction."""

    layer: Messages
    matrix: Tensor  # (dim, dim)
    relations: Tensor  # (num_edges, dim)
    edge_mask: Tensor | None  # (num_edges, 1)
    shares: Tensor | None  # (num_edges, 1); None: attention decides


class PyGMessages(Messages):
    """Messages passed by PyTorch Geometric, with the parameters of `Messages`."""

    def forward(
        self, nodes: Tensor, relations: Tensor, edges: EdgeIndex, edge_mask: Tensor | None
    ) -> Tensor:
        pairs, target = edges.pairs, edges.directed_target.rows % edges.num_nodes
        pair = pairs.of_edges.rows
        shares = None
        if self.attention is None:
            shares = (mean_shares if self.statistics else normalized)(edges, edge_mask, like=nodes)
        aggregated = []
        for part, matrix in (
            (slice(None, edges.num_direct_edges), self.weight_in),
            (slice(edges.num_direct_edges, None), self.weight_out),
        ):
            direction = Direction(
                self,
                matrix,
                relations.index_select(0, pairs.relations.rows[pair[part]]),
                None if edge_mask is None else edge_mask[part],
                None if shares is None else shares[part],
            )
            ends = torch.stack([pairs.sources.rows[pair[part]], target[part]])
            aggregated.append(self._message_passing(ends, nodes, direction))
        both = torch.cat(aggregated)
        if not self.statistics:
            return both
        degree = nodes.new_ones(len(pair), 1) if edge_mask is None else edge_mask
        return scaled(
            both, scatter(degree, edges.directed_target.rows, 0, 2 * edges.num_nodes, "sum")
        )

    @cached_property
    def _message_passing(self) -> "_MessagePassing":
        return _MessagePassing(aggr="sum", node_dim=0)  # has no parameters


class _MessagePassing(MessagePassing):  # type: ignore[misc]
    """The messages of one direction: compose, multiply, weight, then aggregate."""

    def forward(self, ends: Tensor, nodes: Tensor, direction: Direction) -> Tensor:
        """ends: (2, num_edges), neighbours and targets -> (num_nodes, width * dim)."""
        return self.propagate(ends, nodes=nodes, direction=direction)

    def message(
        self, nodes_i: Tensor, nodes_j: Tensor, direction: Direction, index: Tensor, size_i: int
    ) -> tuple[Tensor, Tensor]:
        """The message of every edge and its share: (num_edges, dim), (num_edges, heads)."""
        layer = direction.layer
        message = layer.compose(nodes_j, direction.relations) @ direction.matrix
        if direction.shares is not None:
            return message, direction.shares
        for_node, for_message = layer.attention.chunk(2, dim=1)  # type: ignore[union-attr]
        scores = by_head(nodes_i, for_node) + by_head(message, for_message)
        scores = leaky_relu(scores, layer.slope)
        shares = weighted_softmax(scores, direction.edge_mask, index, size_i)
        return message, layer.attention_dropout(shares)

    def aggregate(
        self, inputs: tuple[Tensor, Tensor], index: Tensor, direction: Direction, dim_size: int
    ) -> Tensor:
        message, shares = inputs
        shares = shares.repeat_interleave(message.shape[1] // shares.shape[1], dim=1)
        mean = scatter(shares * message, index, 0, dim_size, "sum")
        if not direction.layer.statistics:
            return mean
        squares = scatter(shares * message.square(), index, 0, dim_size, "sum")
        has_messages = scatter(shares, index, 0, dim_size, "sum") > 0
        deviation = ((squares - mean.square()).relu() + SMALLEST_VARIANCE).sqrt() * has_messages
        smallest = -_largest(-message, direction.edge_mask, index, dim_size)
        largest = _largest(message, direction.edge_mask, index, dim_size)
        return torch.cat([mean, deviation, smallest, largest], dim=1)


def weighted_softmax(
    scores: Tensor, edge_mask: Tensor | None, index: Tensor, num_targets: int
) -> Tensor:
    """The library's softmax, with weights where 0 hides an edge: (num_edges, heads)."""
    if edge_mask is None:
        return softmax(scores, index, num_nodes=num_targets)
    scores = scores.masked_fill(edge_mask <= 0, HIDDEN)
    shares = softmax(scores, index, num_nodes=num_targets) * edge_mask
    total = scatter(shares, index, 0, num_targets, "sum")
    return shares / total.clamp_min(torch.finfo(total.dtype).tiny).index_select(0, index)


def _largest(message: Tensor, edge_mask: Tensor | None, index: Tensor, num_targets: int) -> Tensor:
    if edge_mask is not None:
        message = message.masked_fill(edge_mask <= 0, -torch.inf)
    largest = scatter(message, index, 0, num_targets, "max")  # 0 where there are none
    return torch.where(largest > -torch.inf, largest, 0.0)
