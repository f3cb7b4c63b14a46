"""Edges in compressed rows (CSR), by a counting sort that needs no memory but for its result."""

import numpy as np

from nodepiece.compiled import njit
from nodepiece.graph.arrays import IntArray, LongArray


@njit(cache=True)
def rows_by_source(edges: IntArray, num_nodes: int) -> tuple[LongArray, IntArray, IntArray]:
    """Where the edges of each source begin, (num_nodes + 1,); the target and relation of every one.

    edges: (num_edges, 3) target, relation, source. The edges of a source stay in their order.
    """
    offsets = np.zeros(num_nodes + 1, np.int64)
    for edge in range(len(edges)):
        offsets[edges[edge, 2] + 1] += 1
    offsets = np.cumsum(offsets)
    free = offsets[:-1].copy()
    targets, relations = np.empty(len(edges), np.int32), np.empty(len(edges), np.int32)
    for edge in range(len(edges)):
        source = edges[edge, 2]
        targets[free[source]] = edges[edge, 0]
        relations[free[source]] = edges[edge, 1]
        free[source] += 1
    return offsets, targets, relations


@njit(cache=True)
def places_by_source(edges: IntArray, offsets: LongArray) -> IntArray:
    """Where each edge of `rows_by_source` is among `edges`: (num_edges,)."""
    free = offsets[:-1].copy()
    places = np.empty(len(edges), np.int32)
    for edge in range(len(edges)):
        source = edges[edge, 2]
        places[free[source]] = edge
        free[source] += 1
    return places
