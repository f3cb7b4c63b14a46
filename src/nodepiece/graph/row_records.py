"""Records of the search for changed rows.

They are named tuples, which numba supports; a function that makes one longer returns a new one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodepiece.compiled import njit
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.nearest import MAX_DISTANCE, UNREACHED, Distances

NO_CUTOFF = MAX_DISTANCE


class OldRows(NamedTuple):
    """The rows of all nodes before the change."""

    nearest: IntArray  # (num_nodes, k)
    distance: Distances  # (num_nodes, k)
    cutoff: Distances  # (num_nodes,) see `cutoff_distance`; NO_CUTOFF while a node has a new row


class NewRows(NamedTuple):
    """The rows that turned out different, complete up to the present distance."""

    row_of: IntArray  # (num_nodes,) which of these rows is the node's; -1: none, the old row holds
    nodes: IntArray  # (capacity,)
    nearest: IntArray  # (capacity, k)
    distance: Distances  # (capacity, k)
    is_open: NDArray[np.bool_]  # (capacity,) may differ from the old row farther away, too
    length: int


class TieBreak(NamedTuple):
    """The order of equidistant sources: by a hash of node and source, or by their ids."""

    by_hash: bool
    salt: np.uint64


class Scratch(NamedTuple):
    """Arrays that `recompute` writes to."""

    seen: NDArray[np.int64]  # (num_sources + 1,) when each was last seen; at the end, the time now
    best: IntArray  # (k,)
    best_key: NDArray[np.uint64]  # (k,)


class Growing(NamedTuple):
    """The first `length` items of an array that is replaced by a longer one when it is full."""

    items: IntArray
    length: int


@njit(cache=True)
def empty_rows(row_of, k):  # type: ignore[no-untyped-def]
    """`NewRows` without rows, with some capacity."""
    return NewRows(
        row_of,
        np.empty(16, np.int32),
        np.empty((16, k), np.int32),
        np.empty((16, k), np.int16),
        np.empty(16, np.bool_),
        0,
    )


@njit(cache=True)
def copy_row(new, old, node, distance):  # type: ignore[no-untyped-def]
    """`new` with one more row: the old row of a node up to and including this distance."""
    row, nodes, nearest, hops, is_open = (
        new.length,
        new.nodes,
        new.nearest,
        new.distance,
        new.is_open,
    )
    if row == len(nodes):
        nodes, is_open = double_capacity(nodes), double_capacity(is_open)
        nearest, hops = double_capacity(nearest), double_capacity(hops)
    for slot in range(nearest.shape[1]):
        is_near = 0 <= old.distance[node, slot] <= distance
        nearest[row, slot] = old.nearest[node, slot] if is_near else UNREACHED
        hops[row, slot] = old.distance[node, slot] if is_near else UNREACHED
    nodes[row] = node
    new.row_of[node] = row
    old.cutoff[node] = NO_CUTOFF
    return NewRows(new.row_of, nodes, nearest, hops, is_open, row + 1)


@njit(cache=True)
def append(growing, value):  # type: ignore[no-untyped-def]
    """The array with a value appended."""
    items, length = growing
    if length == len(items):
        items = double_capacity(items)
    items[length] = value
    return Growing(items, length + 1)


@njit(cache=True)
def append_pair(pairs, node, neighbour):  # type: ignore[no-untyped-def]
    """The pairs with (node, neighbour) appended."""
    items, length = pairs
    if length == len(items):
        items = double_capacity(items)
    items[length, 0] = node
    items[length, 1] = neighbour
    return Growing(items, length + 1)


@njit(cache=True)
def double_capacity(array):  # type: ignore[no-untyped-def]
    """A copy of an array with twice the capacity."""
    longer = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
