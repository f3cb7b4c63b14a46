"""Scores from random walks: the probability of reaching the tail from the head.

Node vectors describe a node, but not how near it is to another one. On graphs with few relations,
nearness is most of the information. Walks are not part of NodePiece: they add what its tokens lack,
and `steps = 0` disables them. Their lengths and preferences are learned, much as rules are in
Neural LP (Yang et al., 2017) and DRUM (Sadeghian et al., 2019); without learned ones they are close
to personalized PageRank.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from nodepiece.decoders import walks_cpu
from nodepiece.decoders.path_scorers import (
    PathGraph,
    PathScorer,
    PossibleTails,
    QueryFacts,
    check_combination,
)
from nodepiece.decoders.sparse_walks import (
    WalkWeights,
    add_walk_scores,
    likely_tails,
    walk_fact_scores,
    walk_loss,
)
from nodepiece.decoders.walk_graph import WalkGraph
from nodepiece.encoders.parameters import linear
from nodepiece.errors import InputError
from nodepiece.graph.linked_pairs import LinkedPairs

LOG_FLOOR = -7.0  # initial log of the floor of the probability of reaching a node
MIN_FLOOR = 1e-30  # of either, so that its logarithm is a number
PLAIN_FLOOR = 1e-7  # floor of the probability of reaching it by walks without preferences
DAMPING = 0.85  # of walks without preferences: the factor of each additional step


@dataclass(frozen=True)
class WalkSettings:
    """How far walks go, and what is counted beside them."""

    steps: int = 0  # the longest walks; 0: none of any kind, whatever the other settings are
    plain_steps: int = 0  # the longest walks without learned preferences, in addition; 0: none
    counts: bool = True  # also how often a node is an answer, and its degree
    # walks with learned preferences end at nodes with more edges, and take one step from these;
    # 0: no limit
    max_degree: int = 0
    vectors_alone: float = 0.0  # weight of the loss that vectors have without walks, in training
    separate_losses: bool = False  # one for walks and one for vectors, not one for their sum
    coefficient: float = 1.0  # of walks in the sum of scores after training
    choose_coefficient: bool = False  # by validation after training; until then: `coefficient`

    name: ClassVar[str] = "walks"
    switch: ClassVar[str] = "steps"
    reads_relations: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.steps < 0 or self.plain_steps < 0:
            raise InputError(
                "walks.steps and plain_steps must be 0 or more, got "
                f"{self.steps}, {self.plain_steps}"
            )
        if self.max_degree < 0:
            raise InputError(f"walks.max_degree must be 0 or more, got {self.max_degree}")
        check_combination(self)

    @property
    def is_sparse(self) -> bool:
        """Whether nodes that walks do not reach share a score."""
        return not (self.counts or self.plain_steps)

    def build(self, num_relations: int, dim: int, *, generator: torch.Generator) -> "Walks":
        return Walks(dim, self, generator=generator)


WALKS_AT_ONCE = 512  # queries; each needs memory for a number a node, or a number an edge


class Walks(PathScorer):
    """Scores from walks: the probability of reaching a node, and terms that the settings add.

    (1 + reach) * log(floor + sum over lengths l of mix_l * probability of the node after l steps)
    + answers * log(1 + facts with the query's relation and the node as tail)
    + edges * log(1 + edges of the node)
    + (1 + plain) * log(PLAIN_FLOOR + probability of the node on a plain walk)
    + out, if a plain walk does not reach the node,

    where reach, floor, mix, answers, edges, plain and out depend on the query's relation. A step
    goes to a neighbour with probability preference(relation) / degree, where preferences are
    between 0 and 2; on a plain walk all are 1, which is truncated personalized PageRank. Learned
    preferences may hold in one graph only; plain walks are the same in every graph. The head
    itself counts as not reached. With `max_degree` a walk ends at a node with more edges; if the
    head has more, its walks have one step.
    """

    settings: WalkSettings

    def __init__(self, dim: int, settings: WalkSettings, *, generator: torch.Generator) -> None:
        super().__init__(settings)
        num_steps, self.plain_steps = settings.steps, settings.plain_steps
        self.prefer = nn.ModuleList(linear(dim, dim, generator=generator) for _ in range(num_steps))
        self.mix = linear(dim, num_steps, generator=generator)
        self.weigh = linear(dim, 2, generator=generator)  # reach, floor
        self.weigh_counts = linear(dim, 2, generator=generator) if settings.counts else None
        self.weigh_plain = linear(dim, 2, generator=generator) if settings.plain_steps else None

    def queries_at_once(self, graph: PathGraph) -> int:
        return WALKS_AT_ONCE

    def scores(self, heads: Tensor, relations: Tensor, graph: PathGraph) -> Tensor:
        vectors = graph.relations  # (num_relations, dim) all of them, the second half inverses
        walk_graph = self.walk_graph(graph, len(heads))
        queries = vectors.index_select(0, relations)  # (batch, dim)
        reach, log_floor = self.weigh(queries).T[:, None]  # (1, batch) each
        reached = self.reached(heads, queries, vectors, walk_graph)
        scores = (1 + reach) * (reached + (LOG_FLOOR + log_floor).exp()).log()
        if self.weigh_counts is not None:
            for_answers, for_edges = self.weigh_counts(queries).T[:, None]
            # From the tail, facts with the query's relation are edges along the inverse relation.
            inverse = (relations + len(vectors) // 2) % len(vectors)
            answers = walk_graph.count(inverse, len(vectors))
            scores = scores + for_answers * answers.log1p() + for_edges * walk_graph.degree.log1p()
        if self.weigh_plain is not None:
            plain, out = self.weigh_plain(queries).T[:, None]
            chance = self.reached_uniformly(heads, walk_graph)
            scores = scores + (1 + plain) * (chance + PLAIN_FLOOR).log() + out * (chance == 0)
        return scores.T

    def add_to(self, scores: Tensor, heads: Tensor, relations: Tensor, graph: PathGraph) -> Tensor:
        is_plain = scores.dtype == torch.float32 and scores.device.type == "cpu"
        if not (is_plain and self.follows_reached(graph)):
            return super().add_to(scores, heads, relations, graph)
        scores = scores.contiguous()
        weights = self.weights(relations, graph)
        limit, coefficient = self.settings.max_degree, float(self.coefficient)
        add_walk_scores(scores, heads, weights, graph.rows(), limit, coefficient)
        return scores

    def follows_reached(self, graph: PathGraph) -> bool:
        """Whether scores without gradients may be computed for the reached nodes only."""
        is_result = not (torch.is_grad_enabled() or self.training)
        return self.settings.is_sparse and graph.has_rows and is_result

    def fact_scores(self, facts: QueryFacts, graph: PathGraph) -> Tensor:
        if facts.heads.is_cuda or not self.follows_reached(graph):
            return super().fact_scores(facts, graph)
        weights, limit = self.weights(facts.relations, graph), self.settings.max_degree
        found = walk_fact_scores(facts, weights, graph.rows(), limit)
        return float(self.coefficient) * found

    def edge_scores(self, relation: int, linked: LinkedPairs, graph: PathGraph) -> Tensor | None:
        """Those of walks of one step, which longer walks only add to."""
        if not self.settings.is_sparse:
            return None
        weights = self.weights(torch.tensor([relation], device=graph.relations.device), graph)
        number = len(graph.relations)
        inverse = np.roll(np.arange(number), -(number // 2))  # an edge is followed to its head
        liked = weights.preferences[0, 0].double().cpu().numpy()[inverse]
        chance = np.add.reduceat(liked[linked.relations], linked.starts) if len(linked) else 0.0
        mix, power, floor = (float(each.flatten()[0]) for each in weights.tensors()[1:])
        reached = mix * chance / np.maximum(1, linked.degrees[linked.heads])
        reached[linked.heads == linked.tails] = 0.0
        return torch.from_numpy(float(self.coefficient) * power * np.log(reached + floor))

    def likely_steps(self, graph: PathGraph) -> int:
        is_quick = self.follows_reached(graph) and not graph.relations.is_cuda
        return self.settings.steps if is_quick else 0

    def likely_tails(
        self, relation: int, heads: Tensor, tails: PossibleTails, steps: int, graph: PathGraph
    ) -> tuple[Tensor, Tensor, Tensor]:
        weights, limit = self.weights(torch.tensor([relation]), graph), self.settings.max_degree
        preferences, mix = weights.preferences[:, :steps], weights.mix[:, :steps]
        short = replace(weights, preferences=preferences, mix=mix)
        rows, nodes, scores = likely_tails(heads, tails, short, graph.rows(), limit)
        return rows, nodes, float(self.coefficient) * scores

    def loss_of_facts(
        self, heads: Tensor, relations: Tensor, tails: Tensor, graph: PathGraph
    ) -> Tensor | None:
        if not self.settings.is_sparse or heads.is_cuda:
            return None
        weights, limit = self.weights(relations, graph), self.settings.max_degree
        return walk_loss(heads, relations, tails, weights, graph.rows(), limit)

    def weights(self, relations: Tensor, graph: PathGraph) -> WalkWeights:
        """The weights of walks for each query."""
        queries = graph.relations.index_select(0, relations)
        preferences, mix = self.step_weights(queries, graph.relations)
        reach, log_floor = self.weigh(queries).float().T
        return WalkWeights(
            preferences.float().permute(2, 0, 1),
            mix.float().T,
            1 + reach,
            (LOG_FLOOR + log_floor).exp().clamp_min(MIN_FLOOR),
        )

    def walk_graph(self, graph: PathGraph, num_queries: int) -> WalkGraph:
        """The edges that the walks of so many queries follow."""
        max_degree = self.settings.max_degree
        visible, query_edges = graph.visible(), graph.query_edges
        return WalkGraph(graph.edge_index, visible, num_queries, query_edges, max_degree=max_degree)

    def step_weights(self, queries: Tensor, relations: Tensor) -> tuple[Tensor, Tensor]:
        """The preferences of every step, and the weights of all lengths.

        (batch, dim), (num_relations, dim) -> (num_steps, num_relations, batch), (num_steps, batch).
        """
        scale = relations.shape[1] ** -0.5
        preferences = torch.stack(
            [2 * (relations @ prefer(queries).T * scale).sigmoid() for prefer in self.prefer]
        )
        return preferences, softplus(self.mix(queries)).T

    def reached(
        self,
        heads: Tensor,
        queries: Tensor,  # (batch, dim)
        relations: Tensor,
        walk_graph: WalkGraph,
    ) -> Tensor:
        """The probability of each node after each step, summed with weights: (num_nodes, batch)."""
        preferences, mix = self.step_weights(queries, relations)
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
