"""The nearest sources of nodes that the graph does not have, from those of their neighbours."""

import numpy as np

from nodepiece.compiled import njit, prange
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.hashing import mix
from nodepiece.graph.nearest import UNREACHED, Distances, insert_by_key


def nearest_of_new(
    nodes: IntArray,
    first: LongArray,
    end: LongArray,
    left_out: LongArray,
    neighbours: IntArray,
    table: tuple[IntArray, Distances],
    num_sources: int,
    *,
    salt: np.uint64 | None,
) -> tuple[IntArray, Distances]:
    """The nearest sources of each new node, one hop farther than those of its neighbours.

    nodes: (num_new,) the ids that decide ties; neighbours[first[i]:end[i]] are those of new node i,
    but for the one at left_out[i] (-1: none is left out). `table`: sources and distances of the
    graph's own nodes, (num_nodes, k) each, from `nearest_sources`. Returns (num_new, k) twice.

    Distances are exact. So are the sources with the global order (`salt` None); with the hash they
    are a choice among the sources that the neighbours have without the new node, which could
    change these. New nodes do not affect each other.
    """
    nearest, distance = table
    shape = (len(nodes), nearest.shape[1])
    found = np.full(shape, UNREACHED, np.int32), np.full(shape, UNREACHED, np.int16)
    if shape[1]:
        by_hash, salt = salt is not None, np.uint64(0) if salt is None else salt
        edges = (first, end, left_out, neighbours)
        _search(nodes, edges, nearest, distance, found, num_sources, by_hash, salt)
    return found


@njit(parallel=True, cache=True)
def _search(nodes, edges, nearest, distance, found, num_sources, by_hash, salt):  # type: ignore[no-untyped-def]
    first, end, left_out, neighbours = edges
    k = nearest.shape[1]
    num_chunks = max(1, min(64, len(nodes)))
    for chunk in prange(num_chunks):
        seen_by = np.full(num_sources, -1, np.int64)  # which new node looked at a source last
        best, best_key = np.empty(k, np.int32), np.empty(k, np.uint64)
        for i in range(chunk, len(nodes), num_chunks):
            size, hop = 0, 0
            is_there = True
            while is_there and size < k:
                hop += 1
                is_there, num_best = False, 0
                for place in range(first[i], end[i]):
                    if place == left_out[i]:
                        continue
                    row = neighbours[place]
                    for slot in range(k):
                        if not 0 <= distance[row, slot] < hop:
                            is_there |= distance[row, slot] >= hop
                            break
                        source = nearest[row, slot]
                        if distance[row, slot] < hop - 1 or seen_by[source] == i:
                            continue
                        seen_by[source] = i
                        is_there = True
                        key = mix(salt, nodes[i], source) if by_hash else np.uint64(source)
                        num_best = insert_by_key(best, best_key, num_best, k - size, source, key)
                best[:num_best].sort()
                found[0][i, size : size + num_best] = best[:num_best]
                found[1][i, size : size + num_best] = hop
                size += num_best
