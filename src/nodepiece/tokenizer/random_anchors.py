"""Anchors chosen at random, in a graph that changes."""

import numpy as np

from nodepiece.graph.arrays import IntArray
from nodepiece.graph.changed_edges import ChangedEdges
from nodepiece.graph.changing_adjacency import ChangingAdjacency, with_capacity
from nodepiece.graph.changing_nearest import Rows
from nodepiece.graph.nearest import UNREACHED, Distances
from nodepiece.tokenizer.tokens import assign_anchors
from nodepiece.tokenizer.vocabulary import Vocabulary


class RandomTable:
    """The k random anchors of every node of a graph that changes; the interface of `NearestTable`.

    The anchors do not change, but any of their distances may: all are computed again each time.
    """

    def __init__(
        self, adjacency: ChangingAdjacency, vocabulary: Vocabulary, salt: np.uint64
    ) -> None:
        self.vocabulary, self.salt = vocabulary, salt
        self.nearest, self.distance = self._search(adjacency)

    def _search(self, edges: ChangingAdjacency | ChangedEdges) -> tuple[IntArray, Distances]:
        return assign_anchors(edges.compact(), self.vocabulary, self.salt)

    def add_nodes(self, number: int) -> None:
        self.nearest = with_capacity(self.nearest, number, UNREACHED)
        self.distance = with_capacity(self.distance, number, UNREACHED)

    def changed_by(self, edges: ChangedEdges) -> Rows:
        return rows_that_differ(self._search(edges), (self.nearest, self.distance))

    def write(self, rows: Rows) -> None:
        self.nearest[rows.nodes] = rows.nearest
        self.distance[rows.nodes] = rows.distance


def rows_that_differ(now: tuple[IntArray, Distances], before: tuple[IntArray, Distances]) -> Rows:
    """The rows of sources and distances that changed; `before` may be longer or shorter.

    Rows missing from `before` count as empty.
    """
    nearest, distance = now
    num_both = min(len(nearest), len(before[0]))
    differs = np.empty(len(nearest), np.bool_)
    differs[:num_both] = (
        (nearest[:num_both] != before[0][:num_both]) | (distance[:num_both] != before[1][:num_both])
    ).any(axis=1)
    differs[num_both:] = (distance[num_both:] != UNREACHED).any(axis=1)
    nodes = np.flatnonzero(differs).astype(np.int32)
    return Rows(nodes, nearest[nodes], distance[nodes])
