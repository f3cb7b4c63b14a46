"""Graph layers on top of node vectors: a node hears what its neighbours are, and through what."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nodepiece.encoders.edge_products import EdgeEnds, ends_of, sum_products
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.parameters import Dropout, linear


@dataclass(frozen=True)
class Neighbourhoods:
    """The edges of a graph, and how much of what a node hears comes along each.

    All relations of a node count alike, and so do all neighbours along the same relation.
    """

    ends: EdgeEnds
    pair: Tensor  # (num_edges,) int64: pairs of a node and one of its relations, numbered
    share_of_pair: Tensor  # (num_pairs,) one over the relations of the node and over its neighbours


def group_neighbours(edges: Tensor, num_nodes: int, num_relations: int) -> Neighbourhoods:
    """edges: (num_edges, 3), inverses included; a node hears from the tails of its own edges."""
    head, relation, _ = edges.long().T
    key, pair, num_neighbours = torch.unique(
        head * num_relations + relation, return_inverse=True, return_counts=True
    )
    node = key // num_relations
    num_relations_of = torch.bincount(node, minlength=num_nodes)
    share = 1 / (num_relations_of[node] * num_neighbours)
    return Neighbourhoods(ends_of(edges, num_nodes, num_relations), pair, share)


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

    def forward(
        self,
        nodes: Tensor,
        relations: Tensor,
        hoods: Neighbourhoods,
        weight: Tensor | None = None,  # (num_edges,) 0: hidden
    ) -> Tensor:
        # (num_nodes, dim), (num_relations, dim) -> (num_nodes, dim)
        share = self.edge_dropout(hoods.share_of_pair).index_select(0, hoods.pair)
        if weight is not None:
            share = share * weight
        heard = sum_products(nodes, relations, share, hoods.ends)
        update = self.norm(self.own(nodes) + self.message(heard)).relu()
        return nodes + self.dropout(update)
