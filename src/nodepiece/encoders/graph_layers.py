"""Graph layers on top of node vectors: a node hears what its neighbours are, and through what."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nodepiece.encoders.bag_sum import Bags, bag_sum, bags_by_owner, bags_of_width
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.parameters import Dropout, linear


@dataclass(frozen=True)
class Neighbourhoods:
    """The edges of a graph grouped twice: neighbours by (node, relation), those by node.

    Composing a neighbour with its relation elementwise can wait until the neighbours along the
    same relation are added up, so the graph costs one gather an edge and no vector an edge.
    """

    neighbours: tuple[Bags, Bags]  # (node, relation) pairs <- nodes, and transposed
    relations: tuple[Bags, Bags]  # pairs <- their one relation, and transposed
    pairs: tuple[Bags, Bags]  # nodes <- pairs, and transposed
    share_of_neighbour: Tensor  # (num_pairs, 1) one over the neighbours of a pair
    share_of_pair: Tensor  # (num_nodes, 1) one over the pairs of a node


def group_neighbours(edges: Tensor, num_nodes: int, num_relations: int) -> Neighbourhoods:
    """edges: (num_edges, 3), inverses included; a node hears from the tails of its own edges."""
    head, relation, tail = edges.long().T
    pair_key, pair_of_edge = torch.unique(head * num_relations + relation, return_inverse=True)
    num_pairs = len(pair_key)
    pair_node, pair_relation = pair_key // num_relations, pair_key % num_relations
    every_pair = torch.arange(num_pairs, device=edges.device)
    neighbours = bags_by_owner(pair_of_edge, tail, num_pairs, num_nodes)
    relations = bags_of_width(pair_relation[:, None], num_relations)
    pairs = bags_by_owner(pair_node, every_pair, num_nodes, num_pairs)
    return Neighbourhoods(
        (neighbours, neighbours.transposed()),
        (relations, relations.transposed()),
        (pairs, pairs.transposed()),
        1 / neighbours.offsets.diff().clamp_min(1)[:, None],
        1 / pairs.offsets.diff().clamp_min(1)[:, None],
    )


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

    def forward(self, nodes: Tensor, relations: Tensor, hoods: Neighbourhoods) -> Tensor:
        # (num_nodes, dim), (num_relations, dim) -> (num_nodes, dim)
        share = self.edge_dropout(hoods.share_of_neighbour)
        mean_neighbour = bag_sum(nodes, *hoods.neighbours) * share
        message = mean_neighbour * bag_sum(relations, *hoods.relations)
        heard = bag_sum(message, *hoods.pairs) * hoods.share_of_pair
        update = self.norm(self.own(nodes) + self.message(heard)).relu()
        return nodes + self.dropout(update)
