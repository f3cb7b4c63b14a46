"""The edges of a graph in the order of message passing: grouped once, used every step."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from nodepiece.encoders.edge_products import EdgeIndex, build_edge_index
from nodepiece.encoders.segments import EdgeGroups, group_edges


@dataclass(frozen=True)
class EdgeLayout:
    """Edges sorted by their target, inverses included.

    A target is a node in one direction: target n is node n receiving messages along direct
    relations, target num_nodes + n is node n receiving messages along inverse ones. A pair is a
    distinct (relation, source) pair: its message is the same for all targets. Wikidata's graph
    has 2.7 times fewer pairs than edges.
    """

    num_nodes: int
    num_direct_edges: int  # direct edges come first
    num_direct_pairs: int  # pairs are sorted by relation, so direct ones come first
    order: Tensor  # (num_edges,) int64: the position of each edge in the caller's order
    targets: EdgeGroups  # num_edges edges, 2 * num_nodes rows
    pairs: EdgeGroups  # num_edges edges, num_pairs rows
    neighbours: EdgeGroups  # of pairs: num_pairs edges, num_nodes rows
    relations: EdgeGroups  # of pairs: num_pairs edges, num_relations rows

    @property
    def pairs_and_targets(self) -> tuple[EdgeGroups, EdgeGroups]:
        """Groupings of the edges by their (relation, source) pair and by their target."""
        return self.pairs, self.targets

    def reverse_targets(self) -> Tensor:
        """The source of every edge, as a target in the other direction: (num_edges,)."""
        neighbour = self.neighbours.rows.index_select(0, self.pairs.rows)
        return neighbour + (self.targets.rows < self.num_nodes) * self.num_nodes

    @cached_property
    def edge_index(self) -> EdgeIndex:
        """The edges grouped by target, relation and source, both directions together."""
        num_relations = self.relations.edges.num_bags
        heads = self.targets.rows % max(1, self.num_nodes)
        relations, tails = (
            ends.rows[self.pairs.rows] for ends in (self.relations, self.neighbours)
        )
        return build_edge_index(
            torch.stack([heads, relations, tails], dim=1), self.num_nodes, num_relations
        )

    @property
    def device(self) -> torch.device:
        return self.order.device


def build_edge_layout(edges: Tensor, num_nodes: int, num_relations: int) -> EdgeLayout:
    """Build the layout of edges (num_edges, 3), inverses included; tails send, heads receive.

    `num_relations` counts direct and inverse ones; the second half of the ids are the inverses.
    """
    head, relation, tail = edges.long().T
    is_inverse = relation >= num_relations // 2
    pair_key, pair = torch.unique(relation * num_nodes + tail, return_inverse=True)
    target, order = torch.sort(head + is_inverse * num_nodes, stable=True)
    pair_relation = pair_key // max(1, num_nodes)
    return EdgeLayout(
        num_nodes,
        int(len(edges) - is_inverse.sum()),
        int((pair_relation < num_relations // 2).sum()),
        order,
        group_edges(target, 2 * num_nodes),
        group_edges(pair[order], len(pair_key)),
        group_edges(pair_key % max(1, num_nodes), num_nodes),
        group_edges(pair_relation, num_relations),
    )
