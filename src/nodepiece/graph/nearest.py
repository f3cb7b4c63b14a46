"""The k sources nearest to every node, exactly, without a table of all nodes by all sources."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodepiece.compiled import njit, prange
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.hashing import mix
from nodepiece.graph.neighbours import Neighbours

UNREACHED = -1  # in place of a source and its distance where there is none
MAX_DISTANCE = np.iinfo(np.int16).max

BLOCK_NODES = 1 << 22  # searched at a time, so that lists of open nodes stay short

Distances = NDArray[np.int16]  # hops


def nearest_sources(
    adjacency: Neighbours, sources: IntArray, k: int, *, salt: np.uint64 | None
) -> tuple[IntArray, Distances]:
    """The k sources nearest to every node, nearest first, equidistant ones by position.

    Returns positions in `sources` and distances in hops, both (num_nodes, k), UNREACHED where
    fewer than k sources reach the node. Which of several equidistant sources fit into the last
    slots is decided by one global order (`salt` None: the earlier in `sources`) or by a salted
    hash of node and source (a different order for every node).

    Breadth-first search from all sources at once, hop by hop: a node reads the sources that its
    neighbours found in the hop before, and stops after k sources. The result is exact: if u, the
    next node on a shortest path from v to source a, did not keep a, then u has k others that come
    before a for u, and through u they come before a for v too. So distances are exact with either
    tie-break, and with the global order the chosen sources are exact as well; with the hash the
    sources are a deterministic choice among those that the neighbours kept.

    Time is at most k * edges, memory num_nodes * k. A node writes only to its own row, in slots
    that are not read before the next hop: the result is the same for any number of threads.
    """
    num_nodes = adjacency.num_nodes
    nearest = np.full((num_nodes, k), UNREACHED, np.int32)
    distance = np.full((num_nodes, k), UNREACHED, np.int16)
    _search(adjacency, sources, salt, nearest, distance)
    return nearest, distance


@dataclass(frozen=True, eq=False)
class NearestSources:
    """The result of `nearest_sources` in as few bytes as it fits; see `find_nearest`."""

    sources: NDArray[np.integer]  # (num_nodes, k) positions; uint16 below 2^16 sources, or int32
    distances: NDArray[np.integer]  # (num_nodes, k) hops; uint8 up to 255 hops, or int16
    num_found: NDArray[np.integer]  # (num_nodes,) slots in use; the others hold anything


def find_nearest(
    adjacency: Neighbours, sources: IntArray, k: int, *, salt: np.uint64 | None
) -> NearestSources:
    """The sources and distances of `nearest_sources`, in three bytes a slot for most graphs."""
    kind = np.uint16 if len(sources) <= np.iinfo(np.uint16).max else np.int32
    shape = (adjacency.num_nodes, k)
    return _search(adjacency, sources, salt, np.empty(shape, kind), np.empty(shape, np.uint8))


def _search(
    adjacency: Neighbours,
    sources: IntArray,
    salt: np.uint64 | None,
    nearest: NDArray[np.integer],
    distance: NDArray[np.integer],
) -> NearestSources:
    """Fill `nearest` and `distance`, (num_nodes, k) each, as far as there are sources."""
    num_nodes, k = nearest.shape
    # Slots that a node filled in the last hop: [first, end). Small, as it is read at random.
    new_slots = np.zeros((num_nodes, 2), np.uint8 if k < 256 else np.int32)
    if k:
        nearest[sources, 0] = np.arange(len(sources))
        distance[sources, 0] = 0
        new_slots[sources, 1] = 1
    end_after = np.empty(num_nodes, new_slots.dtype)  # end of the slots in use after this hop
    hop = 0
    while has_new := _count_updated(new_slots):
        hop += 1
        if hop > np.iinfo(distance.dtype).max and distance.dtype == np.uint8:
            distance = distance.astype(np.int16)
        end_after[:] = new_slots[:, 1]
        for nodes in _open_nodes(adjacency, new_slots, k, is_dense=16 * has_new >= num_nodes):
            _take_hop(
                adjacency.offsets,
                adjacency.neighbours,
                nodes,
                adjacency.chunks(nodes),
                new_slots,
                end_after,
                nearest,
                distance,
                hop,
                len(sources),
                salt is not None,
                np.uint64(0) if salt is None else salt,
            )
        new_slots[:, 0] = new_slots[:, 1]
        new_slots[:, 1] = end_after
        if hop > MAX_DISTANCE and _count_updated(new_slots):
            raise InputError(
                f"some nodes are more than {MAX_DISTANCE:,} hops away from their nearest anchors; "
                "choose more anchors"
            )
    return NearestSources(nearest, distance, end_after if hop else new_slots[:, 1].copy())


def _count_updated(new_slots: NDArray[np.integer]) -> int:
    """The number of nodes that took sources in the last hop."""
    return int(np.count_nonzero(new_slots[:, 0] < new_slots[:, 1]))


def _open_nodes(
    adjacency: Neighbours, new_slots: NDArray[np.integer], k: int, *, is_dense: bool
) -> Iterator[IntArray]:
    """Nodes with free slots that may have a neighbour with new sources, in blocks."""
    touched = np.empty(0, np.bool_)
    if not is_dense:  # few changed: visit only their neighbours
        touched = np.zeros(len(new_slots), np.bool_)
        _mark_neighbours(adjacency.offsets, adjacency.neighbours, new_slots, touched)
    for start in range(0, len(new_slots), BLOCK_NODES):
        is_open = new_slots[start : start + BLOCK_NODES, 1] < k
        if not is_dense:
            is_open &= touched[start : start + BLOCK_NODES]
        nodes = np.flatnonzero(is_open)
        if len(nodes):
            nodes += start
            yield nodes.astype(np.int32)


@njit(cache=True)
def _mark_neighbours(offsets, neighbours, new_slots, touched):  # type: ignore[no-untyped-def]
    for node in range(len(new_slots)):
        if new_slots[node, 0] == new_slots[node, 1]:
            continue
        for edge in range(offsets[node], offsets[node + 1]):
            touched[neighbours[edge]] = True


@njit(parallel=True, cache=True)
def _take_hop(  # type: ignore[no-untyped-def]
    offsets,
    neighbours,
    open_nodes,
    chunks,
    new_slots,
    end_after,
    nearest,
    distance,
    hop,
    num_sources,
    by_hash,
    salt,
):
    """One hop: every open node takes sources that its neighbours found in the hop before."""
    k = nearest.shape[1]
    for chunk in prange(len(chunks) - 1):
        last_node = np.full(num_sources, -1, np.int32)  # the last node that read each source
        best = np.empty(k, np.int32)
        best_key = np.empty(k, np.uint64)  # ascending
        for i in range(chunks[chunk], chunks[chunk + 1]):
            node = open_nodes[i]
            num_held = np.int64(new_slots[node, 1])
            room = k - num_held
            for slot in range(num_held):
                last_node[nearest[node, slot]] = node
            found = 0
            for edge in range(offsets[node], offsets[node + 1]):
                neighbour = neighbours[edge]
                for slot in range(new_slots[neighbour, 0], new_slots[neighbour, 1]):
                    source = nearest[neighbour, slot]
                    if last_node[source] == node:
                        continue
                    last_node[source] = node
                    key = mix(salt, node, source) if by_hash else np.uint64(source)
                    found = insert_by_key(best, best_key, found, room, source, key)
            best[:found].sort()
            for slot in range(found):
                nearest[node, num_held + slot] = best[slot]
                distance[node, num_held + slot] = hop
            end_after[node] = num_held + found


@njit(cache=True, inline="always")
def insert_by_key(best, best_key, found, room, source, key):  # type: ignore[no-untyped-def]
    """Keep a source among the `room` with the smallest keys; returns how many are kept now."""
    if found < room:
        found += 1
    elif key >= best_key[room - 1]:
        return found
    place = found - 1
    while place > 0 and best_key[place - 1] > key:
        best_key[place] = best_key[place - 1]
        best[place] = best[place - 1]
        place -= 1
    best_key[place] = key
    best[place] = source
    return found


def distances_to_chosen(adjacency: Neighbours, sources: IntArray, chosen: IntArray) -> Distances:
    """The distance from every node to each of its own chosen sources, UNREACHED without a path.

    chosen: (num_nodes, k) positions in `sources`, each row ascending. Breadth-first search from
    64 sources at a time, one bit for each, that ends when every wanted pair is met: memory is
    three words a node, time edges * hops * sources / 64, never a table of nodes by sources.
    """
    num_nodes, k = chosen.shape
    distance = np.full((num_nodes, k), UNREACHED, np.int16)
    cursor = np.zeros(num_nodes, np.int32)  # first slot of every node in the present batch
    chunks = adjacency.chunks()
    for start in range(0, len(sources), 64):
        batch = sources[start : start + 64]
        bits = np.uint64(1) << np.arange(len(batch), dtype=np.uint64)
        seen = np.zeros(num_nodes, np.uint64)
        seen[batch] = bits
        frontier = seen.copy()
        hop = 0
        num_missing = _record_distances(chosen, cursor, frontier, distance, start, hop)
        while num_missing and frontier.any():
            hop += 1
            frontier = _expand_frontier(
                adjacency.offsets, adjacency.neighbours, chunks, frontier, seen
            )
            num_before = num_missing
            num_missing = _record_distances(chosen, cursor, frontier, distance, start, hop)
            if hop > MAX_DISTANCE and num_missing < num_before:
                raise InputError(
                    f"some nodes are more than {MAX_DISTANCE:,} hops away from anchors chosen at "
                    "random; choose the nearest ones"
                )
        _advance_cursors(chosen, cursor, start + 64)
    return distance


@njit(parallel=True, cache=True)
def _expand_frontier(offsets, neighbours, chunks, frontier, seen):  # type: ignore[no-untyped-def]
    reached = np.zeros_like(frontier)
    for chunk in prange(len(chunks) - 1):
        for node in range(chunks[chunk], chunks[chunk + 1]):
            bits = np.uint64(0)
            for edge in range(offsets[node], offsets[node + 1]):
                bits |= frontier[neighbours[edge]]
            reached[node] = bits & ~seen[node]
            seen[node] |= bits
    return reached


@njit(parallel=True, cache=True)
def _record_distances(chosen, cursor, frontier, distance, start, hop):  # type: ignore[no-untyped-def]
    """Store the distances of wanted pairs that this hop reached; return how many are missing."""
    num_nodes, k = chosen.shape
    missing = 0
    for node in prange(num_nodes):
        slot = cursor[node]
        while slot < k and chosen[node, slot] < start + 64:
            if distance[node, slot] < 0:
                bit = np.uint64(chosen[node, slot] - start)
                if (frontier[node] >> bit) & np.uint64(1):
                    distance[node, slot] = hop
                else:
                    missing += 1
            slot += 1
    return missing


@njit(parallel=True, cache=True)
def _advance_cursors(chosen, cursor, end):  # type: ignore[no-untyped-def]
    num_nodes, k = chosen.shape
    for node in prange(num_nodes):
        while cursor[node] < k and chosen[node, cursor[node]] < end:
            cursor[node] += 1


@njit(parallel=True, cache=True)
def choose_at_random(num_nodes, num_sources, k, salt):  # type: ignore[no-untyped-def]
    """k distinct sources for every node, uniformly: (num_nodes, k) int32, each row ascending.

    Floyd's algorithm: for j from the last k positions, draw one of [0, j]; if taken, take j.
    """
    chosen = np.empty((num_nodes, k), np.int32)
    for node in prange(num_nodes):
        for slot in range(k):
            j = num_sources - k + slot
            drawn = np.int32(mix(salt, node, slot) % np.uint64(j + 1))
            for earlier in range(slot):
                if chosen[node, earlier] == drawn:
                    drawn = np.int32(j)
                    break
            chosen[node, slot] = drawn
        chosen[node].sort()
    return chosen
