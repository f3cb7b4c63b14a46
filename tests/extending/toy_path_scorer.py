"""A path scorer: the neighbours of the head, by the relation of the query and that of the edge."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from nodepiece.decoders.path_scorers import PathGraph, PathScorer, check_combination
from nodepiece.decoders.propagation import with_unseen
from nodepiece.encoders.parameters import xavier


@dataclass(frozen=True)
class NeighbourSettings:
    """How neighbours of the head are scored as tails."""

    rank: int = 0  # size of the two vectors of a relation; 0: no such scorer
    vectors_alone: float = 0.0  # weight of the loss that vectors have alone, in training
    separate_losses: bool = False  # one for neighbours and one for vectors, not one of their sum
    coefficient: float = 1.0  # of neighbours in the sum of scores after training
    choose_coefficient: bool = False  # by validation after training; until then: `coefficient`

    name: ClassVar[str] = "neighbours"
    switch: ClassVar[str] = "rank"
    reads_relations: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_combination(self)

    def build(self, num_relations: int, dim: int, *, generator: torch.Generator) -> "Neighbours":
        return Neighbours(num_relations, self, generator=generator)


class Neighbours(PathScorer):
    """The sum over edges from the head to a node of (query relation) . (edge relation)."""

    def __init__(
        self, num_relations: int, settings: NeighbourSettings, *, generator: torch.Generator
    ) -> None:
        super().__init__(settings)
        self.of_queries = xavier(num_relations, settings.rank, generator=generator)
        self.of_edges = xavier(num_relations, settings.rank, generator=generator)

    def queries_at_once(self, graph: PathGraph) -> int:
        return 64

    def scores(self, heads: Tensor, relations: Tensor, graph: PathGraph) -> Tensor:
        index = graph.edge_index
        of_queries = with_unseen(self.of_queries, index.num_relations).index_select(0, relations)
        products = of_queries @ with_unseen(self.of_edges, index.num_relations).T
        starts_at_head = index.source.rows == heads[:, None]  # (batch, num_edges)
        messages = products[:, index.relation.rows] * starts_at_head * graph.visible()
        found = messages.new_zeros(len(heads), graph.num_nodes)
        found = found.index_add(1, index.target.rows, messages)
        if (own := graph.query_edges) is not None:
            starts_at_head = own.tails == heads[own.queries]
            values = products[own.queries, own.relations] * starts_at_head
            found = found + own.sums(values, graph.num_nodes, len(heads)).T
        return found
