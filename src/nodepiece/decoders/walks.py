"""Scores from random walks: the probability of reaching the tail from the head.

Node vectors describe a node, but not how near it is to another one. On graphs with few relations,
nearness is most of the information. Walks are not part of NodePiece: they add what its tokens lack,
and `steps = 0` disables them. Their lengths and preferences are learned, much as rules are in
Neural LP (Yang et al., 2017) and DRUM (Sadeghian et al., 2019); without learned ones they are close
to personalized PageRank.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from nodepiece.decoders import walks_cpu
from nodepiece.decoders.walk_graph import QueryEdges, WalkGraph
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.parameters import linear
from nodepiece.errors import InputError

LOG_FLOOR = -7.0  # initial log of the floor of the probability of reaching a node
PLAIN_FLOOR = 1e-7  # floor of the probability of reaching it by walks without preferences
DAMPING = 0.85  # of walks without preferences: the factor of each additional step


@dataclass(frozen=True)
class WalkSettings:
    """How far walks go, and what is counted beside them."""

    steps: int = 0  # the longest walks; 0: none of any kind, whatever the other settings are
    plain_steps: int = 0  # of longer walks without preferences beside them; 0: none
    counts: bool = True  # also how often a node is an answer, and its degree
    vectors_alone: float = 0.0  # weight of the loss that vectors have without walks, in training
    separate_losses: bool = False  # one for walks and one for vectors, not one for their sum
    coefficient: float = 1.0  # of walks in the sum of scores after training
    choose_coefficient: bool = False  # by validation after training; until then: `coefficient`

    def __post_init__(self) -> None:
        if self.steps < 0 or self.plain_steps < 0 or not self.vectors_alone >= 0:
            raise InputError(
                "walks.steps, plain_steps and vectors_alone must be 0 or more, got "
                f"{self.steps}, {self.plain_steps}, {self.vectors_alone}"
            )
        if not 0 <= self.coefficient < math.inf:
            raise InputError(f"walks.coefficient must be 0 or more, got {self.coefficient}")
        if self.separate_losses and self.vectors_alone:
            raise InputError(
                "walks.separate_losses trains vectors alone already; leave walks.vectors_alone out"
            )


WALKS_AT_ONCE = 512  # queries: each takes a number for every node, or for every edge


class Walks(nn.Module):
    """Scores from walks: the probability of reaching a node, and terms that the settings add.

    reach * log(floor + sum over lengths l of mix_l * probability of the node after l steps)
    + answers * log(1 + facts with the query's relation and the node as tail)
    + edges * log(1 + edges of the node)
    + plain * log(floor + probability of the node on a plain walk), or out if it is not reached,

    where reach, floor, mix, answers, edges, plain and out depend on the query's relation. A step
    goes to a neighbour with probability preference(relation) / degree, where preferences are
    between 0 and 2; on a plain walk all are 1, which is truncated personalized PageRank. Learned
    preferences may hold in one graph only; plain walks are the same in every graph. The head
    itself counts as not reached.
    """

    coefficient: float | Tensor  # (): a buffer, which is saved, where it is chosen after training

    def __init__(self, dim: int, settings: WalkSettings, *, generator: torch.Generator) -> None:
        super().__init__()
        num_steps, self.plain_steps = settings.steps, settings.plain_steps
        if settings.choose_coefficient:
            self.register_buffer(
                "coefficient", torch.tensor(settings.coefficient, dtype=torch.float64)
            )
        else:
            self.coefficient = settings.coefficient
        self.prefer = nn.ModuleList(linear(dim, dim, generator=generator) for _ in range(num_steps))
        self.mix = linear(dim, num_steps, generator=generator)
        self.weigh = linear(dim, 2, generator=generator)  # reach, floor
        self.weigh_counts = linear(dim, 2, generator=generator) if settings.counts else None
        self.weigh_plain = linear(dim, 2, generator=generator) if settings.plain_steps else None

    def forward(
        self,
        heads: Tensor,  # (batch,)
        query_relations: Tensor,  # (batch,) the relation of each query
        relations: Tensor,  # (num_relations, dim) all of them, the second half inverses
        edge_index: EdgeIndex,
        edge_mask: Tensor | None,  # (num_edges,) 0: hidden
        query_edges: QueryEdges | None = None,  # what single queries have beside `edge_index`
    ) -> Tensor:
        """(batch, num_nodes), to be added to scores; `coefficient` counts after training."""
        if edge_mask is None:
            edge_mask = relations.new_ones(edge_index.num_edges)
        walk_graph = WalkGraph(edge_index, edge_mask, len(heads), query_edges)
        queries = relations.index_select(0, query_relations)  # (batch, dim)
        reach, log_floor = self.weigh(queries).T[:, None]  # (1, batch) each
        reached = self.reached(heads, queries, relations, walk_graph)
        scores = (1 + reach) * (reached + (LOG_FLOOR + log_floor).exp()).log()
        if self.weigh_counts is not None:
            for_answers, for_edges = self.weigh_counts(queries).T[:, None]
            # From the tail, facts with the query's relation are edges along the inverse relation.
            inverse = (query_relations + len(relations) // 2) % len(relations)
            answers = walk_graph.count(inverse, len(relations))
            scores = scores + for_answers * answers.log1p() + for_edges * walk_graph.degree.log1p()
        if self.weigh_plain is not None:
            plain, out = self.weigh_plain(queries).T[:, None]
            chance = self.reached_uniformly(heads, walk_graph)
            scores = scores + (1 + plain) * (chance + PLAIN_FLOOR).log() + out * (chance == 0)
        return scores.T if self.training else self.coefficient * scores.T

    def in_chunks(
        self,
        heads: Tensor,
        query_relations: Tensor,
        relations: Tensor,
        edge_index: EdgeIndex,
        edge_mask: Tensor | None,
        query_edges: QueryEdges | None = None,
    ) -> Tensor:
        """Scores from walks, a few queries at a time unless a gradient is needed."""
        at_once = max(1, len(heads)) if torch.is_grad_enabled() else WALKS_AT_ONCE
        parts = []
        for start in range(0, max(1, len(heads)), at_once):
            stop = start + at_once
            few = None if query_edges is None else query_edges.part(start, stop)
            parts.append(
                self(
                    heads[start:stop],
                    query_relations[start:stop],
                    relations,
                    edge_index,
                    edge_mask,
                    few,
                )
            )
        return torch.cat(parts)

    def reached(
        self,
        heads: Tensor,
        queries: Tensor,  # (batch, dim)
        relations: Tensor,
        walk_graph: WalkGraph,
    ) -> Tensor:
        """The probability of each node after each step, summed with weights: (num_nodes, batch)."""
        mix = softplus(self.mix(queries)).T  # (num_steps, batch)
        scale = relations.shape[1] ** -0.5
        preferences = torch.stack(
            [2 * (relations @ prefer(queries).T * scale).sigmoid() for prefer in self.prefer]
        )
        if walks_cpu.can_walk(preferences, mix, walk_graph):
            return walks_cpu.walk(heads, preferences, mix, walk_graph)
        return walk_graph.walk(heads, preferences, mix)

    def reached_uniformly(self, heads: Tensor, walk_graph: WalkGraph) -> Tensor:
        """The probability of each node on walks without preferences: (num_nodes, batch).

        Nothing is learned here, so no memory is needed for a gradient.
        """
        with torch.no_grad():
            walk_graph = replace(walk_graph, damping=DAMPING)
            chance = walk_graph.start(heads)
            total = torch.zeros_like(chance)
            for _ in range(self.plain_steps):
                chance = walk_graph.step(chance)
                total = total + chance
            return ((1 - DAMPING) * total).scatter(0, heads[None], 0.0)
