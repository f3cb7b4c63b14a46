"""Scores of tails by the paths that lead to them, which models add to the scores of node vectors.

A path scorer follows the edges of a graph from the head of a query (head, relation, ?). It has no
weight for a single node, so it scores the nodes of any graph with the same relations. Random walks
(`walks.py`) and propagation (`propagation.py`) are the two; a third is a subclass of `PathScorer`,
a record of its settings, and a field of `Experiment` (`settings.py`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.edge_rows import EdgeRows
from nodepiece.errors import InputError
from nodepiece.graph.arrays import BoolArray, IntArray, LongArray
from nodepiece.graph.linked_pairs import LinkedPairs

CELLS_AT_ONCE = 2**25  # scores of all nodes in memory, where a few of them are wanted


@dataclass(frozen=True)
class QueryEdges:
    """Edges that are only in the graph of one query, inverses included.

    With these a new node is in the graph for queries about it, and not for other queries. Its
    neighbours have an edge back to it, as in training, so the result is that of a graph to which
    this node was added, as `with_facts` does for a new node by name.
    """

    queries: Tensor  # (num_query_edges,) rows of a batch
    heads: Tensor  # (num_query_edges,)
    relations: Tensor  # (num_query_edges,)
    tails: Tensor  # (num_query_edges,)

    def part(self, start: int, stop: int) -> "QueryEdges":
        """The edges of queries start to stop, with queries renumbered from 0."""
        mine = (self.queries >= start) & (self.queries < stop)
        return QueryEdges(
            self.queries[mine] - start, self.heads[mine], self.relations[mine], self.tails[mine]
        )

    def sums(self, values: Tensor, num_nodes: int, num_queries: int) -> Tensor:
        """The sum over the edges of each node: (num_query_edges,) -> (num_nodes, num_queries)."""
        zeros = values.new_zeros(num_nodes, num_queries)
        return zeros.index_put_((self.heads, self.queries), values, accumulate=True)


@dataclass(frozen=True)
class PathGraph:
    """The edges that a scorer follows for a batch of queries. A message goes from tail to head.

    What takes time for all edges may be given as a function, which is called when it is needed.
    """

    edges: EdgeIndex | Callable[[], EdgeIndex]
    relations: Tensor  # (num_relations, dim) the model's vectors, the second half inverses
    # (num_edges,) in the order of `edge_index`; 0: hidden from all queries; None: no edge is hidden
    mask: Tensor | Callable[[], Tensor] | None = None
    query_edges: QueryEdges | None = None  # additional edges of single queries
    visible_rows: Callable[[], EdgeRows] | None = None  # the edges that are not hidden, on a CPU

    @property
    def edge_index(self) -> EdgeIndex:
        return self.edges if isinstance(self.edges, EdgeIndex) else self.edges()

    @property
    def edge_mask(self) -> Tensor | None:
        return self.mask() if callable(self.mask) else self.mask

    @property
    def num_nodes(self) -> int:
        return self.edge_index.num_nodes

    @property
    def has_rows(self) -> bool:
        """Whether `rows` has the edges of all queries."""
        is_known = self.visible_rows is not None or self.mask is None
        return is_known and self.query_edges is None

    def rows(self) -> EdgeRows:
        """The edges that leave every node, on a CPU, without those that are hidden."""
        if not self.has_rows:
            raise ValueError("the edges of a mask or of single queries are not in rows")
        if self.visible_rows is not None:
            return self.visible_rows()
        return self.edge_index.edge_rows

    def visible(self) -> Tensor:
        """(num_edges,) the edge mask, or ones."""
        mask = self.edge_mask
        if mask is not None:
            return mask
        return self.relations.new_ones(self.edge_index.num_edges)

    def part(self, start: int, stop: int) -> "PathGraph":
        """The graph of queries start to stop alone."""
        if self.query_edges is None:
            return self
        return replace(self, query_edges=self.query_edges.part(start, stop))


@dataclass(frozen=True)
class QueryFacts:
    """Facts grouped by their queries (head, relation, ?), which differ from each other."""

    heads: Tensor  # (num_queries,)
    relations: Tensor  # (num_queries,)
    rows: Tensor  # (num_facts,) the query of each fact, ascending
    tails: Tensor  # (num_facts,)


@dataclass(frozen=True)
class PossibleTails:
    """The tails that queries for a new fact may have."""

    is_tail: BoolArray  # (num_nodes,)
    known: IntArray  # answers of all queries, which are left out
    start: LongArray  # (num_queries,) where those of a query start in `known`
    number: LongArray  # (num_queries,) how many it has
    most: int  # tails that are found of a query


@runtime_checkable
class ScorerSettings(Protocol):
    """Settings of a path scorer, and how its scores are combined with those of vectors."""

    name: ClassVar[str]  # of the group of settings: that of the field of `Experiment`
    switch: ClassVar[str]  # the setting that is 0 where there is no such scorer
    reads_relations: ClassVar[bool]  # whether it uses the relation vectors of the model

    @property
    def vectors_alone(self) -> float:
        """The weight of an additional loss in training, of the vectors alone."""

    @property
    def separate_losses(self) -> bool:
        """Whether vectors and this scorer have a loss each, and not one of their sum."""

    @property
    def coefficient(self) -> float:
        """The factor of the scores of paths in evaluation and inference."""

    @property
    def choose_coefficient(self) -> bool:
        """Whether validation chooses the coefficient after training."""

    def build(self, num_relations: int, dim: int, *, generator: torch.Generator) -> "PathScorer":
        """The scorer of these settings; dim is that of the model's relation vectors."""


def is_on(settings: ScorerSettings) -> bool:
    return bool(getattr(settings, settings.switch))


def is_sparse(settings: ScorerSettings) -> bool:
    """Whether nodes that no path reaches share a score, and a CPU computes no more than that.

    The settings of a scorer say so by a member of this name, which they need not have.
    """
    return bool(getattr(settings, "is_sparse", False))


def check_combination(settings: ScorerSettings) -> None:
    """Refuse impossible values of the settings that all scorers have."""
    name = settings.name
    if not settings.vectors_alone >= 0:
        raise InputError(f"{name}.vectors_alone must be 0 or more, got {settings.vectors_alone}")
    if not 0 <= settings.coefficient < math.inf:
        raise InputError(f"{name}.coefficient must be 0 or more, got {settings.coefficient}")
    if settings.separate_losses and settings.vectors_alone:
        raise InputError(
            f"{name}.separate_losses trains vectors alone already; leave {name}.vectors_alone out"
        )


class PathScorer(nn.Module, ABC):
    """Scores every node as the tail of a query.

    A subclass follows the edges of a `PathGraph`: those of `edge_index` that `edge_mask` does not
    hide, and for each query also its `query_edges`. A graph may have two relations more than the
    model was trained with, one for all unseen relations and its inverse (`GraphView.has_unseen`):
    `graph.relations` has rows for them, and a table of the scorer needs rows too (`with_unseen` of
    `propagation.py`). A node has no weight of its own.
    """

    coefficient: float | Tensor  # (): a buffer, which is saved, where it is chosen after training

    def __init__(self, settings: ScorerSettings) -> None:
        super().__init__()
        self.settings = settings
        if settings.choose_coefficient:
            coefficient = torch.tensor(settings.coefficient, dtype=torch.float64)
            self.register_buffer("coefficient", coefficient)
        else:
            self.coefficient = settings.coefficient

    @abstractmethod
    def scores(self, heads: Tensor, relations: Tensor, graph: PathGraph) -> Tensor:
        """(batch,), (batch,) -> (batch, num_nodes)."""

    @abstractmethod
    def queries_at_once(self, graph: PathGraph) -> int:
        """The number of queries that fit into a moderate amount of memory, without gradients."""

    def add_to(self, scores: Tensor, heads: Tensor, relations: Tensor, graph: PathGraph) -> Tensor:
        """The sum of `scores`, (batch, num_nodes), which may be changed, and of those of paths."""
        return scores + self(heads, relations, graph).to(scores.device)

    def fact_scores(self, facts: "QueryFacts", graph: PathGraph) -> Tensor:
        """Scores of single facts, times the coefficient, without gradients: (num_facts,)."""
        at_once = min(self.queries_at_once(graph), CELLS_AT_ONCE // max(1, graph.num_nodes))
        at_once = max(1, at_once)
        found = [facts.heads.new_empty(0, dtype=torch.float32)]
        for start in range(0, len(facts.heads), at_once):
            some = slice(start, start + at_once)
            scores = self(facts.heads[some], facts.relations[some], graph)
            bounds = torch.tensor([start, start + at_once], device=facts.rows.device)
            first, last = torch.searchsorted(facts.rows, bounds).tolist()
            rows, tails = facts.rows[first:last] - start, facts.tails[first:last]
            found.append(scores[rows, tails].float())
        return torch.cat(found)

    def edge_scores(self, relation: int, linked: LinkedPairs, graph: PathGraph) -> Tensor | None:
        """Scores by the edges between head and tail alone, as an estimate: (num_pairs,).

        None: this scorer has none that is quicker than its scores.
        """
        return None

    def likely_steps(self, graph: PathGraph) -> int:
        """The longest paths by which `likely_tails` finds tails; 0: it cannot."""
        return 0

    def likely_tails(
        self, relation: int, heads: Tensor, tails: "PossibleTails", steps: int, graph: PathGraph
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The best tails of each head by paths of so many steps, and their scores by these.

        Rows of `heads`, nodes and scores: (num_found,) each. It takes less time than the scores of
        all nodes.
        """
        raise NotImplementedError

    def loss_of_facts(
        self, heads: Tensor, relations: Tensor, tails: Tensor, graph: PathGraph
    ) -> Tensor | None:
        """The mean cross-entropy of tails among all nodes, each without its own fact: ().

        None: this scorer cannot compute it without a score for every node. `graph` has no mask.
        """
        return None

    def forward(self, heads: Tensor, relations: Tensor, graph: PathGraph) -> Tensor:
        """Scores, times the coefficient unless in training mode: (batch, num_nodes).

        All queries at once where a gradient is needed, else a few at a time.
        """
        if torch.is_grad_enabled():
            found = self.scores(heads, relations, graph)
        else:
            at_once = self.queries_at_once(graph)
            starts = range(0, max(1, len(heads)), at_once)
            found = torch.cat(
                [
                    self.scores(
                        heads[start : start + at_once],
                        relations[start : start + at_once],
                        graph.part(start, start + at_once),
                    )
                    for start in starts
                ]
            )
        return found if self.training else self.coefficient * found


class PathScorers(nn.ModuleDict):
    """The path scorers of a model by name; there may be none."""

    def __init__(
        self,
        settings: Sequence[ScorerSettings],
        num_relations: int,
        dim: int,
        *,
        generator: torch.Generator,
    ) -> None:
        chosen = [each for each in settings if is_on(each)]
        super().__init__(
            {each.name: each.build(num_relations, dim, generator=generator) for each in chosen}
        )
        self.readers_of_relations = [each.name for each in chosen if each.reads_relations]

    def listed(self) -> "list[PathScorer]":
        return cast("list[PathScorer]", list(self.values()))

    def all_scores(
        self, heads: Tensor, relations: Tensor, graph: Callable[[], PathGraph]
    ) -> list[tuple[PathScorer, Tensor]]:
        """Every scorer with its scores, (batch, num_nodes). `graph` is called if there is any."""
        scorers = self.listed()
        if not scorers:
            return []
        followed = graph()
        return [(scorer, scorer(heads, relations, followed)) for scorer in scorers]

    def add_to(
        self, scores: Tensor, heads: Tensor, relations: Tensor, graph: Callable[[], PathGraph]
    ) -> Tensor:
        """(batch, num_nodes): the scores of vectors with those of all scorers added."""
        scorers = self.listed()
        if not scorers:
            return scores
        followed = graph()
        for scorer in scorers:
            scores = scorer.add_to(scores, heads, relations, followed)
        return scores

    def fact_scores(self, facts: QueryFacts, graph: PathGraph) -> Tensor:
        """The sum of the scores of single facts: (num_facts,)."""
        total = facts.rows.new_zeros(len(facts.rows), dtype=torch.float32)
        for scorer in self.listed():
            total = total + scorer.fact_scores(facts, graph).to(total.device)
        return total

    def edge_scores(self, relation: int, linked: LinkedPairs, graph: PathGraph) -> Tensor | None:
        """The sum of what edges between head and tail add; None: a scorer has no such estimate."""
        found = [scorer.edge_scores(relation, linked, graph) for scorer in self.listed()]
        known = [each for each in found if each is not None]
        return torch.stack(known).sum(dim=0) if known and len(known) == len(found) else None

    def likely_steps(self, graph: PathGraph) -> int:
        """The longest paths by which `likely_tails` finds tails; 0: it cannot, or not by one."""
        scorers = self.listed()
        return scorers[0].likely_steps(graph) if len(scorers) == 1 else 0

    def likely_tails(
        self, relation: int, heads: Tensor, tails: PossibleTails, steps: int, graph: PathGraph
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The best tails of each head by the paths of the only scorer."""
        (scorer,) = self.listed()
        return scorer.likely_tails(relation, heads, tails, steps, graph)
