"""The edges that walks follow: those of a graph, and additional ones of single queries."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from nodepiece.decoders.path_scorers import QueryEdges
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.edge_products import sum_products
from nodepiece.encoders.segments import segment_sum, weighted_segment_sum


@dataclass(frozen=True)
class WalkGraph:
    """The edges that the walks of a batch follow, and the transition probabilities.

    A step follows any edge of a node with probability damping / degree.
    """

    edge_index: EdgeIndex
    edge_mask: Tensor  # (num_edges,) 0: hidden
    num_queries: int
    query_edges: QueryEdges | None = None
    damping: float = 1.0
    max_degree: int = 0  # walks end at nodes with more edges; 0: at none

    @cached_property
    def shared_degree(self) -> Tensor:
        """The degree of every node, without edges of single queries: (num_nodes, 1)."""
        return segment_sum(self.edge_mask[:, None], self.edge_index.target)

    @cached_property
    def degree(self) -> Tensor:
        """Degrees: (num_nodes, 1), or (num_nodes, num_queries) with edges of single queries."""
        if self.query_edges is None:
            return self.shared_degree
        ones = self.edge_mask.new_ones(len(self.query_edges.heads))
        return self.shared_degree + self._sums(ones, self.query_edges)

    @cached_property
    def chances(self) -> Tensor:
        """(num_edges,) transition probabilities, from the tail of an edge to its head."""
        share = self.damping / self.shared_degree.clamp_min(1.0)
        return self.edge_mask * share[self.edge_index.source.rows, 0]

    def start(self, heads: Tensor) -> Tensor:
        """One-hot distributions, one at each head: (num_nodes, num_queries)."""
        zeros = self.edge_mask.new_zeros(len(self.shared_degree), len(heads))
        return zeros.scatter_(0, heads[None], 1.0)

    def walk(self, heads: Tensor, preferences: Tensor, mix: Tensor) -> Tensor:
        """The probability of each node after each step, summed with weights `mix`.

        Returns (num_nodes, num_queries). preferences: (num_steps, num_relations, num_queries);
        mix: (num_steps, num_queries).
        """
        chance = self.start(heads)
        total = torch.zeros_like(chance)
        for number, (share, preference) in enumerate(zip(mix, preferences, strict=True)):
            if number > 0 and self.max_degree:
                chance = chance * self.goes_on(heads)
            chance = self.step(chance, preference)
            total = total + share * chance
        return total.scatter(0, heads[None], 0.0)  # the head itself is not an answer

    def goes_on(self, heads: Tensor) -> Tensor:
        """(num_nodes, num_queries): whether a walk that got to a node takes another step."""
        is_open = (self.degree <= self.max_degree).expand(-1, self.num_queries)
        return is_open & is_open.gather(0, heads[None])

    @property
    def is_hub(self) -> Tensor:
        """(num_nodes,): whether walks end at a node, without edges of single queries."""
        if not self.max_degree:
            return torch.zeros(len(self.shared_degree), dtype=torch.bool)
        return self.shared_degree[:, 0] > self.max_degree

    def step(self, chance: Tensor, preference: Tensor | None = None) -> Tensor:
        """The distributions after one more step: (num_nodes, num_queries), like `chance`.

        preference: (num_relations, num_queries), or None where all relations are equal.
        """
        query_edges, leaving = self.query_edges, chance
        if query_edges is not None:
            leaving = chance * (self.shared_degree.clamp_min(1.0) / self.degree.clamp_min(1.0))
        if preference is None:
            there = weighted_segment_sum(
                leaving, self.chances[:, None], self.edge_index.source, self.edge_index.target
            )
        else:
            there = sum_products(leaving, preference, self.chances, self.edge_index)
        if query_edges is None:
            return there
        place = (query_edges.tails, query_edges.queries)
        carried = self.damping * chance[place] / self.degree[place]
        if preference is not None:
            carried = carried * preference[query_edges.relations, query_edges.queries]
        return there + self._sums(carried, query_edges)

    def count(self, along: Tensor, num_relations: int) -> Tensor:
        """The number of edges of every node along one relation per query: (num_nodes, num_queries).

        along: (num_queries,).
        """
        every = torch.arange(num_relations, device=along.device)
        is_queried = (every[:, None] == along).to(self.edge_mask.dtype)  # (num_relations, batch)
        counts = weighted_segment_sum(
            is_queried, self.edge_mask[:, None], self.edge_index.relation, self.edge_index.target
        )
        if self.query_edges is None:
            return counts
        is_queried = (self.query_edges.relations == along[self.query_edges.queries]).to(
            self.edge_mask.dtype
        )
        return counts + self._sums(is_queried, self.query_edges)

    def _sums(self, values: Tensor, query_edges: QueryEdges) -> Tensor:
        return query_edges.sums(values, len(self.shared_degree), self.num_queries)
