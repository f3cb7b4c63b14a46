"""Operations on single rows of the k nearest sources, used by the search of `row_search.py`.

`hops` are the distances of a row, ascending, UNREACHED behind the last one; `sources` belong to
them. At a distance d a row takes from its neighbours' rows what they have at d - 1.
`edges` are the rows of neighbours (`EdgeRows`).
"""

import numpy as np

from nodepiece.compiled import njit
from nodepiece.graph.changed_edges import row_of
from nodepiece.graph.hashing import mix
from nodepiece.graph.nearest import UNREACHED, insert_by_key
from nodepiece.graph.row_records import NO_CUTOFF


@njit(cache=True, inline="always")
def order_key(tie_break, node, source):  # type: ignore[no-untyped-def]
    """The sort key of a source among equidistant sources of a node; the smallest comes first."""
    return mix(tie_break.salt, node, source) if tie_break.by_hash else np.uint64(source)


@njit(cache=True)
def has_room(hops):  # type: ignore[no-untyped-def]
    """Whether a row has fewer than k sources."""
    return hops[-1] == UNREACHED


@njit(cache=True)
def cutoff_distance(hops):  # type: ignore[no-untyped-def]
    """The distance beyond which a row takes no more sources."""
    return NO_CUTOFF if hops[-1] == UNREACHED else hops[-1]


@njit(cache=True)
def cutoff_distances(distance):  # type: ignore[no-untyped-def]
    """The distance beyond which each row of a table takes no more sources: (num_nodes,)."""
    cutoff = np.empty(len(distance), np.int16)
    for node in range(len(distance)):
        cutoff[node] = cutoff_distance(distance[node])
    return cutoff


@njit(cache=True, inline="always")
def current_row(node, old, new):  # type: ignore[no-untyped-def]
    """The sources and distances of a node: the new row, as far as it goes, or the old one."""
    row = new.row_of[node]
    if row >= 0:
        return new.nearest[row], new.distance[row]
    return old.nearest[node], old.distance[node]


@njit(cache=True, inline="always")
def reaches(node, distance, old, new):  # type: ignore[no-untyped-def]
    """Whether the old or the new row of a node has a source at this distance or farther."""
    row = new.row_of[node]
    return old.distance[node].max() >= distance or (
        row >= 0 and new.distance[row].max() >= distance
    )


@njit(cache=True, inline="always")
def gains(node, neighbour, distance, old, new, tie_break):  # type: ignore[no-untyped-def]
    """Whether the old row of a node would take a source from a neighbour at this distance."""
    sources, hops = old.nearest[node], old.distance[node]
    k = len(hops)
    num_nearer, end = 0, 0
    while end < k and 0 <= hops[end] <= distance:
        num_nearer += hops[end] < distance
        end += 1
    if num_nearer == k:
        return False
    worst = np.uint64(0)
    for slot in range(num_nearer, end):
        worst = max(worst, order_key(tie_break, node, sources[slot]))
    candidates, candidate_hops = current_row(neighbour, old, new)
    for slot in range(k):
        if not 0 <= candidate_hops[slot] < distance:
            break
        source = candidates[slot]
        if candidate_hops[slot] < distance - 1 or is_among(sources, end, source):
            continue
        if end < k or order_key(tie_break, node, source) < worst:
            return True
    return False


@njit(cache=True)
def loses(node, neighbour, distance, old, new, is_edge):  # type: ignore[no-untyped-def]
    """Whether the old row of a node has a source that this neighbour no longer supports.

    The source is at `distance` in the row, and was at `distance - 1` in the neighbour's. With
    `is_edge` the edge between them is still there, and the neighbour may still have it.
    """
    if old.distance[node].max() < distance:
        return False
    for slot in range(old.nearest.shape[1]):
        if old.distance[neighbour, slot] != distance - 1:
            continue
        source = old.nearest[neighbour, slot]
        if is_edge:
            sources, hops = current_row(neighbour, old, new)
            if has_at(sources, hops, source, distance - 1):
                continue
        if has_at(old.nearest[node], old.distance[node], source, distance):
            return True
    return False


@njit(cache=True)
def is_among(sources, end, source):  # type: ignore[no-untyped-def]
    """Whether a source is in the first `end` places."""
    for slot in range(end):  # noqa: SIM110 a generator would be no loop for numba
        if sources[slot] == source:
            return True
    return False


@njit(cache=True)
def has_at(sources, hops, source, distance):  # type: ignore[no-untyped-def]
    """Whether a row has a source at just this distance."""
    for slot in range(len(hops)):  # noqa: SIM110
        if hops[slot] == distance and sources[slot] == source:
            return True
    return False


@njit(cache=True, inline="always")
def recompute(node, distance, edges, old, new, scratch, tie_break):  # type: ignore[no-untyped-def]
    """The sources of a node at a distance, from the rows of all its neighbours.

    Returns how many there are, and whether a neighbour may have more farther away. The sources are
    in `scratch.best`, ascending.
    """
    seen, best, best_key = scratch
    seen[-1] += 1
    k, now = len(best), seen[-1]
    sources, hops = current_row(node, old, new)
    num_nearer = 0
    while num_nearer < k and 0 <= hops[num_nearer] < distance:
        seen[sources[num_nearer]] = now
        num_nearer += 1
    room, found, has_more = k - num_nearer, 0, False
    if room == 0:
        return 0, False
    neighbours, first, end = row_of(edges, node)
    for place in range(first, end):
        neighbour = neighbours[place]
        candidates, candidate_hops = current_row(neighbour, old, new)
        for slot in range(k):
            if candidate_hops[slot] >= distance:
                has_more = True
            if not 0 <= candidate_hops[slot] < distance:
                break
            source = candidates[slot]
            if candidate_hops[slot] < distance - 1 or seen[source] == now:
                continue
            seen[source] = now
            key = order_key(tie_break, node, source)
            found = insert_by_key(best, best_key, found, room, source, key)
        if not has_more and new.row_of[neighbour] >= 0:
            has_more = old.distance[neighbour].max() >= distance
    best[:found].sort()
    return found, has_more


@njit(cache=True)
def is_unchanged(node, distance, old, best, found):  # type: ignore[no-untyped-def]
    """Whether the old row has just the sources best[:found] at this distance."""
    num_same = 0
    for slot in range(old.distance.shape[1]):
        if old.distance[node, slot] == distance:
            if num_same == found or old.nearest[node, slot] != best[num_same]:
                return False
            num_same += 1
    return num_same == found


@njit(cache=True)
def insert_candidates(node, neighbour, distance, old, new, tie_break):  # type: ignore[no-untyped-def]
    """Insert the sources of a neighbour into a new row that ends at this distance.

    Where the row is full, they replace sources at this distance that come later in the order.
    """
    row = new.row_of[node]
    sources, hops = new.nearest[row], new.distance[row]
    k = len(hops)
    candidates, candidate_hops = current_row(neighbour, old, new)
    for slot in range(k):
        if not 0 <= candidate_hops[slot] < distance:
            break
        if candidate_hops[slot] < distance - 1:
            continue
        source = candidates[slot]
        end = 0
        while end < k and hops[end] != UNREACHED:
            end += 1
        if is_among(sources, end, source):
            continue
        if end < k:
            sources[end], hops[end] = source, distance
            continue
        worst, worst_key = 0, np.uint64(0)
        for mine in range(k):
            if hops[mine] == distance:
                key = order_key(tie_break, node, sources[mine])
                if key >= worst_key:
                    worst, worst_key = mine, key
        if order_key(tie_break, node, source) < worst_key:
            sources[worst] = source


@njit(cache=True)
def sort_last(new, row, distance):  # type: ignore[no-untyped-def]
    """Sort the sources at this distance, which is the largest of the row so far."""
    hops = new.distance[row]
    first = 0
    while hops[first] != distance:
        first += 1
    end = first
    while end < len(hops) and hops[end] == distance:
        end += 1
    new.nearest[row, first:end].sort()


@njit(cache=True)
def append_found(new, row, distance, best, found):  # type: ignore[no-untyped-def]
    """Append the sources best[:found] at this distance to a new row."""
    end = 0
    while end < len(best) and new.distance[row, end] >= 0:
        end += 1
    new.nearest[row, end : end + found] = best[:found]
    new.distance[row, end : end + found] = distance
