"""Graph layers on top of node vectors: messages from neighbours along relations."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from nodepiece.encoders.bag_sum import sum_members
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.edge_products import sum_products
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.parameters import Dropout, linear


@dataclass(frozen=True)
class Neighbourhoods:
    """The edges of a graph, and the weight of each in the mean over a node's neighbours.

    All relations of a node have equal weights, and so do all neighbours along the same relation.
    Only visible edges count. The weights are computed on first use; shapes do not depend on the
    mask, and every sum has a fixed order, so that this can be captured in a CUDA graph.
    """

    edge_index: EdgeIndex
    edge_mask: Tensor | None = None  # (num_edges,) 0: hidden, 1: visible; None: all are visible

    @cached_property
    def share_of_pair(self) -> Tensor:
        """1 / (relations of the node * neighbours along the relation), 0 where none is visible.

        (num_pairs,), for every (target, relation) pair.
        """
        pairs = self.edge_index.target_relations
        if self.edge_mask is None:
            num_neighbours = torch.bincount(pairs.of_edges.rows, minlength=len(pairs.key))
            node = pairs.targets.rows
            num_relations = torch.bincount(node, minlength=self.edge_index.num_nodes)
            return 1 / (num_relations[node] * num_neighbours)
        neighbours = sum_members(self.edge_mask[:, None], pairs.of_edges.edges)  # (num_pairs, 1)
        is_visible = (neighbours > 0).to(self.edge_mask.dtype)
        relations = sum_members(is_visible, pairs.targets.edges)  # (num_nodes, 1)
        relations = relations.index_select(0, pairs.targets.rows)
        return (is_visible / (relations * neighbours).clamp_min(1.0))[:, 0]

    def with_edge_mask(self, mask: Tensor) -> "Neighbourhoods":
        """Neighbourhoods with the means taken over the visible edges alone.

        mask: (num_edges,) 0: hidden, 1: visible.
        """
        return Neighbourhoods(self.edge_index, mask.detach())


def group_neighbours(edges: Tensor, num_nodes: int, num_relations: int) -> Neighbourhoods:
    """Group edges (num_edges, 3), inverses included; a message goes from the tail to the head."""
    return Neighbourhoods(EdgeIndex(edges, num_nodes, num_relations))


class GraphLayer(nn.Module):
    """x + dropout(relu(norm(W_self x + W_message mean over relations of (mean neighbour * r))))."""

    def __init__(
        self, dim: int, settings: GraphLayerSettings, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.own = linear(dim, dim, generator=generator)
        self.message = linear(dim, dim, generator=generator)
        self.norm = nn.BatchNorm1d(dim)
        self.dropout = Dropout(settings.dropout)
        self.edge_dropout = Dropout(settings.edge_dropout)

    def forward(self, nodes: Tensor, relations: Tensor, neighbourhoods: Neighbourhoods) -> Tensor:
        # (num_nodes, dim), (num_relations, dim) -> (num_nodes, dim)
        return self.combine(nodes, self.aggregate(nodes, relations, neighbourhoods))

    def aggregate(self, nodes: Tensor, relations: Tensor, neighbourhoods: Neighbourhoods) -> Tensor:
        """The mean over relations of (mean neighbour * relation), of every node."""
        edge_index = neighbourhoods.edge_index
        pair = edge_index.target_relations.of_edges.rows
        # Pairs are dropped with all their edges, so the others keep their means over neighbours.
        share = self.edge_dropout(neighbourhoods.share_of_pair).index_select(0, pair)
        if neighbourhoods.edge_mask is not None:
            share = share * neighbourhoods.edge_mask
        return sum_products(nodes, relations, share, edge_index)

    def combine(self, nodes: Tensor, aggregated: Tensor) -> Tensor:
        """The vectors of some nodes after the layer: (num_rows, dim) twice -> (num_rows, dim)."""
        update = self.norm(self.own(nodes) + self.message(aggregated)).relu()
        return nodes + self.dropout(update)
