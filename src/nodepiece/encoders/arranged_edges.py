"""The edges of a graph in the order that message passing wants: grouped once, used every step."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from nodepiece.encoders.edge_products import EdgeEnds, ends_of
from nodepiece.encoders.edge_sums import Ends, ends_at


@dataclass(frozen=True)
class ArrangedEdges:
    """Edges sorted by who hears along them, inverses included.

    A listener is a node in one direction: listener n is node n hearing along direct relations,
    listener num_nodes + n the same node hearing along inverse ones. A voice is a distinct pair of
    relation and neighbour: what it says is the same for all who hear it. Wikidata's nodes say
    2.7 times fewer different things than they have edges.
    """

    num_nodes: int
    num_direct_edges: int  # they come first
    num_direct_voices: int  # voices are sorted by relation: those along direct ones come first
    order: Tensor  # (num_edges,) int64: where each of these edges was in the caller's order
    listeners: Ends  # num_edges edges, 2 * num_nodes rows
    voices: Ends  # num_edges edges, num_voices rows
    neighbours: Ends  # of voices: num_voices edges, num_nodes rows
    relations: Ends  # of voices: num_voices edges, num_relations rows

    @property
    def ends(self) -> tuple[Ends, Ends]:
        """Where messages come from and where they go."""
        return self.voices, self.listeners

    def heard(self) -> Tensor:
        """For every edge, its neighbour as a listener in the other direction: (num_edges,)."""
        neighbour = self.neighbours.rows.index_select(0, self.voices.rows)
        return neighbour + (self.listeners.rows < self.num_nodes) * self.num_nodes

    @cached_property
    def ends_of_edges(self) -> EdgeEnds:
        """The same edges without voices: who hears, in either direction, through what, of whom."""
        num_relations = self.relations.edges.num_bags
        heads = self.listeners.rows % max(1, self.num_nodes)
        relations, tails = (
            ends.rows[self.voices.rows] for ends in (self.relations, self.neighbours)
        )
        return ends_of(torch.stack([heads, relations, tails], dim=1), self.num_nodes, num_relations)

    @property
    def device(self) -> torch.device:
        return self.order.device


def arrange_edges(edges: Tensor, num_nodes: int, num_relations: int) -> ArrangedEdges:
    """edges: (num_edges, 3), inverses included; a node hears from the tails of its own edges.

    `num_relations` counts direct and inverse ones; the second half of the ids are the inverses.
    """
    head, relation, tail = edges.long().T
    is_inverse = relation >= num_relations // 2
    voice_key, voice = torch.unique(relation * num_nodes + tail, return_inverse=True)
    listener, order = torch.sort(head + is_inverse * num_nodes, stable=True)
    voice_relation = voice_key // max(1, num_nodes)
    return ArrangedEdges(
        num_nodes,
        int(len(edges) - is_inverse.sum()),
        int((voice_relation < num_relations // 2).sum()),
        order,
        ends_at(listener, 2 * num_nodes),
        ends_at(voice[order], len(voice_key)),
        ends_at(voice_key % max(1, num_nodes), num_nodes),
        ends_at(voice_relation, num_relations),
    )
