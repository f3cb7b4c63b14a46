"""The edges of a graph with a change applied, as an overlay: the graph is not changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from nodepiece.compiled import njit
from nodepiece.graph.adjacency import Adjacency
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.changing_adjacency import ChangingAdjacency, with_capacity

# start, count, values of the graph's rows; own_of, own_start, own_values of the rows that differ
EdgeRows = tuple[LongArray, LongArray, IntArray, IntArray, LongArray, IntArray]


@dataclass(frozen=True, eq=False)
class ChangedEdges:
    """An overlay: rows of nodes whose edges a change adds or removes are copied, others shared.

    A node v with own_of[v] >= 0 has the edges own_start[own_of[v]]:own_start[own_of[v] + 1] of
    `own_neighbours` and `own_relations`, any other node those it has in `base`.
    """

    base: ChangingAdjacency
    num_nodes: int
    own_of: IntArray  # (at least num_nodes,) the place of a node in `nodes`, -1: it has no own row
    nodes: IntArray  # (num_own,) ascending; all new nodes are among them
    own_start: LongArray  # (num_own + 1,)
    own_neighbours: IntArray
    own_relations: IntArray
    added: IntArray  # (num_added, 3)
    removed: IntArray  # (num_removed, 3)

    @property
    def num_relations(self) -> int:
        return self.base.num_relations

    @property
    def neighbour_rows(self) -> EdgeRows:
        base = self.base
        own = (self.own_of, self.own_start, self.own_neighbours)
        return (base.start, base.count, base.neighbours, *own)

    @property
    def relation_rows(self) -> EdgeRows:
        base = self.base
        own = (self.own_of, self.own_start, self.own_relations)
        return (base.start, base.count, base.relations, *own)

    def compact(self) -> Adjacency:
        """All edges, in an array without gaps: a copy of the whole graph."""
        whole = ChangingAdjacency(self.base.compact())
        whole.apply(self.added, self.removed, self.num_nodes - self.base.num_nodes)
        return whole.compact()


@contextmanager
def changed_edges(
    base: ChangingAdjacency, added: IntArray, removed: IntArray, num_new_nodes: int = 0
) -> Iterator[ChangedEdges]:
    """Yield `base` with new facts added and existing facts removed, each given once.

    Nothing is written to `base`, so any number of threads may do this at once. Time grows with the
    edges of the nodes that the facts name.
    """
    num_nodes = base.num_nodes + num_new_nodes
    ends = np.concatenate([added[:, ::2].ravel(), removed[:, ::2].ravel()])
    new = np.arange(base.num_nodes, num_nodes, dtype=np.int32)
    nodes = np.unique(np.concatenate([ends, new])).astype(np.int32)
    own_of = _borrow(base, num_nodes)
    own_of[nodes] = np.arange(len(nodes))
    try:
        own_start, own_neighbours, own_relations = _copy_rows(
            base.start,
            base.count,
            base.neighbours,
            base.relations,
            (nodes, own_of, base.num_nodes),
            added,
            removed,
            base.num_relations // 2,
        )
        rows = (own_start, own_neighbours, own_relations)
        yield ChangedEdges(base, num_nodes, own_of, nodes, *rows, added, removed)
    finally:
        own_of[nodes] = -1
        base.spare_marks.append(own_of)


def _borrow(base: ChangingAdjacency, num_nodes: int) -> IntArray:
    """An array of -1 for at least this many nodes, which no other thread uses."""
    try:
        marks = base.spare_marks.pop()
    except IndexError:
        marks = np.full(max(num_nodes, len(base.start)), -1, np.int32)
    return marks if len(marks) >= num_nodes else with_capacity(marks, num_nodes - len(marks), -1)


@njit(cache=True)
def row_of(edges, node):  # type: ignore[no-untyped-def]
    """The array that has the row of a node, and where the row begins and ends in it."""
    start, count, values, own_of, own_start, own_values = edges
    own = own_of[node]
    if own >= 0:
        return own_values, own_start[own], own_start[own + 1]
    return values, start[node], start[node] + count[node]


@njit(cache=True)
def _copy_rows(start, count, neighbours, relations, own, added, removed, num_direct):  # type: ignore[no-untyped-def]
    nodes, own_of, num_old = own
    own_start = np.zeros(len(nodes) + 1, np.int64)
    for i in range(len(nodes)):
        own_start[i + 1] = count[nodes[i]] if nodes[i] < num_old else 0
    for i in range(len(added)):
        own_start[own_of[added[i, 0]] + 1] += 1
        own_start[own_of[added[i, 2]] + 1] += 1
    own_start = np.cumsum(own_start)
    own_neighbours = np.empty(own_start[-1], np.int32)
    own_relations = np.empty(own_start[-1], np.int32)
    end = own_start[:-1].copy()
    for i in range(len(nodes)):
        node = nodes[i]
        if node < num_old:
            for place in range(start[node], start[node] + count[node]):
                own_neighbours[end[i]] = neighbours[place]
                own_relations[end[i]] = relations[place]
                end[i] += 1
    for i in range(len(removed)):
        for side in range(2):
            row = own_of[removed[i, 2 * side]]
            edge = removed[i, 1] + side * num_direct
            place = own_start[row]
            while own_neighbours[place] != removed[i, 2 - 2 * side] or own_relations[place] != edge:
                place += 1
            end[row] -= 1
            own_neighbours[place] = own_neighbours[end[row]]
            own_relations[place] = own_relations[end[row]]
    for i in range(len(added)):
        for side in range(2):
            row = own_of[added[i, 2 * side]]
            own_neighbours[end[row]] = added[i, 2 - 2 * side]
            own_relations[end[row]] = added[i, 1] + side * num_direct
            end[row] += 1
    # Rows that lost edges end before the next one begins: close the gaps.
    used = 0
    for i in range(len(nodes)):
        first, last = own_start[i], end[i]
        own_start[i] = used
        for place in range(first, last):
            own_neighbours[used] = own_neighbours[place]
            own_relations[used] = own_relations[place]
            used += 1
    own_start[-1] = used
    return own_start, own_neighbours, own_relations
