"""Graph layers on top of node vectors: messages from neighbours along relations."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn

from nodepiece.encoders.bag_sum import sum_members
from nodepiece.encoders.edge_products import EdgeIndex, build_edge_index, sum_products
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.parameters import Dropout, linear
from nodepiece.encoders.segments import EdgeGroups, group_edges


@dataclass(frozen=True)
class Neighbourhoods:
    """The edges of a graph, and the weight of each in the mean over a node's neighbours.

    All relations of a node have equal weights, and so do all neighbours along the same relation.
    """

    edge_index: EdgeIndex
    pair: Tensor  # (num_edges,) int64: pairs of a node and one of its relations, numbered
    node_of_pair: Tensor  # (num_pairs,) int64, ascending
    share_of_pair: Tensor  # (num_pairs,) 1 / (relations of the node * neighbours of the pair)
    edge_mask: Tensor | None = None  # (num_edges,) 0: hidden; None: all are visible

    @cached_property
    def by_pair(self) -> tuple[EdgeGroups, EdgeGroups]:
        """Edges grouped by their pair, and pairs by their node. Costs two sorts."""
        num_nodes = self.edge_index.target.edges.num_bags
        return (
            group_edges(self.pair, len(self.node_of_pair)),
            group_edges(self.node_of_pair, num_nodes),
        )

    def with_edge_mask(self, mask: Tensor) -> "Neighbourhoods":
        """Neighbourhoods with the means taken over the visible edges alone.

        mask: (num_edges,) 0: hidden, 1: visible. Shapes do not change, and every sum has a fixed
        order, so that this can be captured in a CUDA graph.
        """
        edges_of_pair, pairs_of_node = self.by_pair
        mask = mask.detach()
        num_neighbours = sum_members(mask[:, None], edges_of_pair.edges)  # (num_pairs, 1)
        is_visible = (num_neighbours > 0).to(mask.dtype)
        num_relations = sum_members(is_visible, pairs_of_node.edges)  # (num_nodes, 1)
        num_relations = num_relations.index_select(0, self.node_of_pair)
        share = is_visible / (num_relations * num_neighbours).clamp_min(1.0)
        return replace(self, share_of_pair=share[:, 0], edge_mask=mask)


def group_neighbours(edges: Tensor, num_nodes: int, num_relations: int) -> Neighbourhoods:
    """Group edges (num_edges, 3), inverses included; a message goes from the tail to the head."""
    head, relation, _ = edges.long().T
    key, pair, num_neighbours = torch.unique(
        head * num_relations + relation, return_inverse=True, return_counts=True
    )
    node = key // num_relations
    num_relations_of = torch.bincount(node, minlength=num_nodes)
    share = 1 / (num_relations_of[node] * num_neighbours)
    return Neighbourhoods(build_edge_index(edges, num_nodes, num_relations), pair, node, share)


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
        share = self.edge_dropout(neighbourhoods.share_of_pair).index_select(0, neighbourhoods.pair)
        if neighbourhoods.edge_mask is not None:
            share = share * neighbourhoods.edge_mask
        aggregated = sum_products(nodes, relations, share, neighbourhoods.edge_index)
        update = self.norm(self.own(nodes) + self.message(aggregated)).relu()
        return nodes + self.dropout(update)
