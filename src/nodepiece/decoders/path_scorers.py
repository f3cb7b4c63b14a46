"""Scores of tails by the paths that lead to them, which models add to the scores of node vectors.

A path scorer follows the edges of a graph from the head of a query (head, relation, ?). It has no
weight for a single node, so it scores the nodes of any graph with the same relations. Random walks
(`walks.py`) and propagation (`propagation.py`) are the two; a third is a subclass of `PathScorer`,
a record of its settings, and a field of `Experiment` (`settings.py`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.errors import InputError


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
    """The edges that a scorer follows for a batch of queries. A message goes from tail to head."""

    edge_index: EdgeIndex
    relations: Tensor  # (num_relations, dim) the model's vectors, the second half inverses
    # (num_edges,) in the order of `edge_index`; 0: hidden from all queries; None: no edge is hidden
    edge_mask: Tensor | None = None
    query_edges: QueryEdges | None = None  # additional edges of single queries

    @property
    def num_nodes(self) -> int:
        return self.edge_index.num_nodes

    def visible(self) -> Tensor:
        """(num_edges,) the edge mask, or ones."""
        if self.edge_mask is not None:
            return self.edge_mask
        return self.relations.new_ones(self.edge_index.num_edges)

    def part(self, start: int, stop: int) -> "PathGraph":
        """The graph of queries start to stop alone."""
        if self.query_edges is None:
            return self
        few = self.query_edges.part(start, stop)
        return PathGraph(self.edge_index, self.relations, self.edge_mask, few)


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

    def all_scores(
        self, heads: Tensor, relations: Tensor, graph: Callable[[], PathGraph]
    ) -> list[tuple[PathScorer, Tensor]]:
        """Every scorer with its scores, (batch, num_nodes). `graph` is called if there is any."""
        scorers = cast("list[PathScorer]", list(self.values()))
        if not scorers:
            return []
        followed = graph()
        return [(scorer, scorer(heads, relations, followed)) for scorer in scorers]

    def add_to(
        self, scores: Tensor, heads: Tensor, relations: Tensor, graph: Callable[[], PathGraph]
    ) -> Tensor:
        """(batch, num_nodes): the scores of vectors with those of all scorers added."""
        for _, found in self.all_scores(heads, relations, graph):
            scores = scores + found.to(scores.device)
        return scores
