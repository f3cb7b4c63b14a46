"""What walks go along: the edges of a graph, and those that a single question adds to it."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from nodepiece.encoders.edge_products import EdgeEnds, sum_products
from nodepiece.encoders.edge_sums import gather, weighted_sum


@dataclass(frozen=True)
class OwnEdges:
    """Edges that are in the graph of one question alone, inverses included.

    With these a new node is in the graph when it is asked about, and not when another one is. Its
    neighbours have an edge back to it, as the neighbours of heads have in training: so it is the
    graph with that one node really in it, which is also where a new node by name is asked about.
    """

    questions: Tensor  # (num_own,) rows of a batch
    heads: Tensor  # (num_own,)
    relations: Tensor  # (num_own,)
    tails: Tensor  # (num_own,)

    def part(self, start: int, stop: int) -> "OwnEdges":
        """Those of some questions, which are counted from the first of them."""
        mine = (self.questions >= start) & (self.questions < stop)
        return OwnEdges(
            self.questions[mine] - start, self.heads[mine], self.relations[mine], self.tails[mine]
        )

    def sums(self, values: Tensor, num_nodes: int, num_questions: int) -> Tensor:
        """Each node's sum over its own edges: (num_own,) -> (num_nodes, num_questions)."""
        zeros = values.new_zeros(num_nodes, num_questions)
        return zeros.index_put_((self.heads, self.questions), values, accumulate=True)


@dataclass(frozen=True)
class Ground:
    """The edges that the walks of a batch go along, and the chances of a step.

    A walker at a node takes any of its edges with a chance of damping / degree.
    """

    ends: EdgeEnds
    weight: Tensor  # (num_edges,) 0: hidden
    num_questions: int
    own: OwnEdges | None = None
    damping: float = 1.0

    @cached_property
    def shared_degree(self) -> Tensor:
        """(num_nodes, 1): the edges of every node that are there for all questions."""
        return gather(self.weight[:, None], self.ends.heads)

    @cached_property
    def degree(self) -> Tensor:
        """(num_nodes, 1), or (num_nodes, num_questions) with edges of single questions."""
        if self.own is None:
            return self.shared_degree
        ones = self.weight.new_ones(len(self.own.heads))
        return self.shared_degree + self._sums(ones, self.own)

    @cached_property
    def chances(self) -> Tensor:
        """(num_edges,) of going along each edge, for a walker at its tail."""
        share = self.damping / self.shared_degree.clamp_min(1.0)
        return self.weight * share[self.ends.tails.rows, 0]

    def start(self, heads: Tensor) -> Tensor:
        """A walker at each head: (num_nodes, num_questions)."""
        zeros = self.weight.new_zeros(len(self.shared_degree), len(heads))
        return zeros.scatter_(0, heads[None], 1.0)

    def walk(self, heads: Tensor, preferences: Tensor, mix: Tensor) -> Tensor:
        """The chances of being at a node after some steps, added up: (num_nodes, num_questions).

        preferences: (num_steps, num_relations, num_questions); mix, what a number of steps counts
        for: (num_steps, num_questions).
        """
        chance = self.start(heads)
        total = torch.zeros_like(chance)
        for share, preference in zip(mix, preferences, strict=True):
            chance = self.step(chance, preference)
            total = total + share * chance
        return total.scatter(0, heads[None], 0.0)  # to be back home is no answer

    def step(self, chance: Tensor, preference: Tensor | None = None) -> Tensor:
        """Where walkers are one step later: (num_nodes, num_questions), as before it.

        preference: (num_relations, num_questions), or None where all relations are alike.
        """
        own, leaving = self.own, chance
        if own is not None:
            leaving = chance * (self.shared_degree.clamp_min(1.0) / self.degree.clamp_min(1.0))
        if preference is None:
            there = weighted_sum(leaving, self.chances[:, None], self.ends.tails, self.ends.heads)
        else:
            there = sum_products(leaving, preference, self.chances, self.ends)
        if own is None:
            return there
        place = (own.tails, own.questions)
        carried = self.damping * chance[place] / self.degree[place]
        if preference is not None:
            carried = carried * preference[own.relations, own.questions]
        return there + self._sums(carried, own)

    def count(self, along: Tensor, num_relations: int) -> Tensor:
        """The edges of every node along one relation a question: (num_nodes, num_questions).

        along: (num_questions,).
        """
        every = torch.arange(num_relations, device=along.device)
        is_asked = (every[:, None] == along).to(self.weight.dtype)  # (num_relations, batch)
        counts = weighted_sum(is_asked, self.weight[:, None], self.ends.relations, self.ends.heads)
        if self.own is None:
            return counts
        is_asked = (self.own.relations == along[self.own.questions]).to(self.weight.dtype)
        return counts + self._sums(is_asked, self.own)

    def _sums(self, values: Tensor, own: OwnEdges) -> Tensor:
        return own.sums(values, len(self.shared_degree), self.num_questions)
