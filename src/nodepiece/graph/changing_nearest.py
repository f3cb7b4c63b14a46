"""The k nearest sources of every node while edges are added and removed.

The table of `nearest_sources` is the only solution of a local equation: the sources of a node at
distance d are the best, in the order of this node, of the sources that its neighbours have at
d - 1, without those that it has at a smaller distance, up to the free slots. It is unique: at
distance 0 a source has itself, and the sources at d follow from the edges and from those at smaller
distances. So after a change it is enough to visit, distance by distance, nodes whose edges changed,
nodes next to a change one hop nearer, and nodes that changed themselves; all others satisfy their
equation as before (`row_search.py`). The result equals a new search, with either tie-break, for
added and for removed edges: a source that a node had only through a removed edge is in no
neighbour's row one hop nearer.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray, LongArray, read_only
from nodepiece.graph.changed_edges import ChangedEdges
from nodepiece.graph.changing_adjacency import SPARE_SHARE, with_capacity
from nodepiece.graph.nearest import MAX_DISTANCE, UNREACHED, Distances
from nodepiece.graph.row_changes import cutoff_distances
from nodepiece.graph.row_search import NOT_QUEUED, changed_rows


class Rows(NamedTuple):
    """Rows of the table of some nodes."""

    nodes: IntArray  # (num_rows,)
    nearest: IntArray  # (num_rows, k)
    distance: Distances  # (num_rows, k)


class Marks(NamedTuple):
    """Marks on nodes and sources, used by one search at a time, which restores them."""

    row_of: IntArray  # (capacity,) -1
    todo: NDArray[np.int8]  # (capacity,) NOT_QUEUED
    cutoff: NDArray[np.int16]  # (capacity,) the distance beyond which a row takes no more
    seen: LongArray  # (num_sources + 1,) when each was last seen, and at the end the time now


class NearestTable:
    """The k nearest sources of every node of a graph that changes.

    `changed_by` returns the rows that a change of the edges alters, and `write` applies
    them. Any number of threads may call the former while none calls the latter.
    """

    def __init__(
        self, nearest: IntArray, distance: Distances, num_sources: int, *, salt: np.uint64 | None
    ) -> None:
        # nearest, distance: (num_nodes, k), as `nearest_sources` returns them for this salt
        self.num_nodes, self.num_sources, self.salt = len(nearest), num_sources, salt
        spare = self.num_nodes // SPARE_SHARE + 1024
        self.nearest = with_capacity(nearest, spare, UNREACHED)
        self.distance = with_capacity(distance, spare, UNREACHED)
        self._spare: list[Marks] = []  # not used by a search now

    def add_nodes(self, number: int) -> None:
        """Add nodes without sources, with the next ids."""
        self.nearest, self.distance = self._with_capacity_for(self.num_nodes + number)
        self.num_nodes += number

    def changed_by(self, edges: ChangedEdges) -> Rows:
        """The rows that are different once the edges are changed; nothing is written.

        Time grows with the edges of nodes that change, not with the graph. Rows come in the order
        of node ids.
        """
        if not self.nearest.shape[1]:
            return Rows(np.empty(0, np.int32), self.nearest[:0], self.distance[:0])
        nearest, distance = self._with_capacity_for(edges.num_nodes)
        marks = self._borrow(distance)
        nodes, nearest, distance, is_too_far = changed_rows(
            edges.neighbour_rows,
            read_only(edges.added),  # one type of array, or numba compiles again
            read_only(edges.removed),
            nearest,
            distance,
            marks.cutoff,
            (marks.todo, marks.row_of),
            marks.seen,
            (self.salt is not None, np.uint64(0) if self.salt is None else self.salt),
        )
        self._spare.append(marks)
        if is_too_far:
            raise InputError(
                f"some nodes would be more than {MAX_DISTANCE:,} hops away from their nearest "
                "anchors; tokenize the graph again with more anchors"
            )
        order = np.argsort(nodes)
        return Rows(nodes[order], nearest[order], distance[order])

    def write(self, rows: Rows) -> None:
        self.nearest[rows.nodes] = rows.nearest
        self.distance[rows.nodes] = rows.distance
        # One set of marks is kept up to date; others are made when they are needed.
        self._spare = [kept for kept in self._spare[:1] if len(kept.todo) == len(self.nearest)]
        for kept in self._spare:
            kept.cutoff[rows.nodes] = cutoff_distances(rows.distance)

    def _with_capacity_for(self, num_nodes: int) -> tuple[IntArray, Distances]:
        """The table, or a longer copy of it where it is too short."""
        missing = num_nodes - len(self.nearest)
        if missing <= 0:
            return self.nearest, self.distance
        spare = missing + len(self.nearest) // SPARE_SHARE
        return with_capacity(self.nearest, spare, UNREACHED), with_capacity(
            self.distance, spare, UNREACHED
        )

    def _borrow(self, distance: Distances) -> Marks:
        """Marks for a table of these distances, which no other thread uses."""
        try:
            marks = self._spare.pop()
        except IndexError:
            marks = None
        if marks is not None and len(marks.todo) == len(distance):
            return marks
        return Marks(
            np.full(len(distance), -1, np.int32),
            np.full(len(distance), NOT_QUEUED, np.int8),
            cutoff_distances(distance),  # small, as access is random
            np.zeros(self.num_sources + 1, np.int64),
        )
