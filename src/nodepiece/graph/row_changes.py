"""Single rows of the k nearest sources while the graph changes: the steps of `changing_nearest.py`.

`old` are the sources, distances and fullness of all rows before the change. `fresh` are the rows
that turned out different, complete up to the present distance: where each node has its own (-1:
nowhere), and their sources and distances. `edges` are the rows of neighbours (`EdgeRows`).
"""

import numpy as np
from numba import njit

from nodepiece.graph.changed_edges import row_of
from nodepiece.graph.hashing import mix
from nodepiece.graph.nearest import MAX_DISTANCE, UNREACHED, insert_by_key

NEVER_FULL = MAX_DISTANCE


@njit(cache=True)
def has_room(hops):  # type: ignore[no-untyped-def]
    return hops[-1] == UNREACHED


@njit(cache=True)
def fullness(hops):  # type: ignore[no-untyped-def]
    """The distance beyond which a node takes nothing."""
    return NEVER_FULL if hops[-1] == UNREACHED else hops[-1]


@njit(cache=True)
def fullness_of_all(distance):  # type: ignore[no-untyped-def]
    full_at = np.empty(len(distance), np.int16)
    for node in range(len(distance)):
        full_at[node] = fullness(distance[node])
    return full_at


@njit(cache=True)
def current_row(node, old, fresh):  # type: ignore[no-untyped-def]
    """The sources and distances of a node, as far as they are known by now."""
    row = fresh[0][node]
    if row >= 0:
        return fresh[1][row], fresh[2][row]
    return old[0][node], old[1][node]


@njit(cache=True)
def reaches(node, distance, old, fresh):  # type: ignore[no-untyped-def]
    """Whether a node holds or held something at this distance or farther."""
    return old[1][node].max() >= distance or (
        fresh[0][node] >= 0 and fresh[2][fresh[0][node]].max() >= distance
    )


@njit(cache=True)
def gains(node, other, distance, old, fresh, by_hash, salt):  # type: ignore[no-untyped-def]
    """Whether a node that is as it was would take something that its neighbour holds now."""
    sources, hops = old[0][node], old[1][node]
    k = len(hops)
    num_nearer, end = 0, 0
    while end < k and 0 <= hops[end] <= distance:
        num_nearer += hops[end] < distance
        end += 1
    if num_nearer == k:
        return False
    worst = np.uint64(0)
    for slot in range(num_nearer, end):
        key = mix(salt, node, sources[slot]) if by_hash else np.uint64(sources[slot])
        worst = max(worst, key)
    offered, their_hops = current_row(other, old, fresh)
    for slot in range(k):
        if not 0 <= their_hops[slot] < distance:
            break
        source = offered[slot]
        if their_hops[slot] == distance - 1 and not is_among(sources, end, source):
            key = mix(salt, node, source) if by_hash else np.uint64(source)
            if end < k or key < worst:
                return True
    return False


@njit(cache=True)
def loses(node, other, distance, old, fresh, still_there):  # type: ignore[no-untyped-def]
    """Whether a node holds something that its neighbour held, and does not offer any more."""
    k = old[0].shape[1]
    if old[1][node].max() < distance:
        return False
    for slot in range(k):
        if old[1][other, slot] != distance - 1:
            continue
        source = old[0][other, slot]
        if still_there:
            sources, hops = current_row(other, old, fresh)
            if holds_at(sources, hops, source, distance - 1):
                continue
        if holds_at(old[0][node], old[1][node], source, distance):
            return True
    return False


@njit(cache=True)
def is_among(sources, end, source):  # type: ignore[no-untyped-def]
    for slot in range(end):  # noqa: SIM110
        if sources[slot] == source:
            return True
    return False


@njit(cache=True)
def holds_at(sources, hops, source, distance):  # type: ignore[no-untyped-def]
    for slot in range(len(hops)):  # noqa: SIM110 a generator would be no loop for numba
        if hops[slot] == distance and sources[slot] == source:
            return True
    return False


@njit(cache=True)
def listen_again(  # type: ignore[no-untyped-def]
    node, distance, edges, old, fresh, seen, best, best_key, by_hash, salt
):
    """What a node takes at a distance, and whether a neighbour may have more to offer later."""
    k, stamp = len(best), seen[-1]
    sources, hops = current_row(node, old, fresh)
    num_nearer = 0
    while num_nearer < k and 0 <= hops[num_nearer] < distance:
        seen[sources[num_nearer]] = stamp
        num_nearer += 1
    room, found, more = k - num_nearer, 0, False
    if room == 0:
        return 0, False
    neighbours, first, end = row_of(edges, node)
    for place in range(first, end):
        other = neighbours[place]
        offered, their_hops = current_row(other, old, fresh)
        for slot in range(k):
            if their_hops[slot] >= distance:
                more = True
            if not 0 <= their_hops[slot] < distance:
                break
            source = offered[slot]
            if their_hops[slot] < distance - 1 or seen[source] == stamp:
                continue
            seen[source] = stamp
            key = mix(salt, node, source) if by_hash else np.uint64(source)
            found = insert_by_key(best, best_key, found, room, source, key)
        if not more and fresh[0][other] >= 0:
            more = old[1][other].max() >= distance
    best[:found].sort()
    return found, more


@njit(cache=True)
def holds_just(old, node, distance, best, found):  # type: ignore[no-untyped-def]
    """Whether the old row has just these sources at this distance."""
    num_same = 0
    for slot in range(old[1].shape[1]):
        if old[1][node, slot] == distance:
            if num_same == found or old[0][node, slot] != best[num_same]:
                return False
            num_same += 1
    return num_same == found


@njit(cache=True)
def copy_up_to(node, distance, old, fresh, row):  # type: ignore[no-untyped-def]
    for slot in range(old[1].shape[1]):
        is_near = 0 <= old[1][node, slot] <= distance
        fresh[1][row, slot] = old[0][node, slot] if is_near else UNREACHED
        fresh[2][row, slot] = old[1][node, slot] if is_near else UNREACHED


@njit(cache=True)
def take_offer(node, other, distance, old, fresh, by_hash, salt):  # type: ignore[no-untyped-def]
    """Put what a neighbour offers into a row that ends at this distance, if it is good enough."""
    row = fresh[0][node]
    sources, hops = fresh[1][row], fresh[2][row]
    k = len(hops)
    offered, their_hops = current_row(other, old, fresh)
    for slot in range(k):
        if not 0 <= their_hops[slot] < distance:
            break
        if their_hops[slot] < distance - 1:
            continue
        end = 0
        while end < k and hops[end] != UNREACHED:
            end += 1
        if is_among(sources, end, offered[slot]):
            continue
        if end < k:
            sources[end], hops[end] = offered[slot], distance
            continue
        worst, worst_key = 0, np.uint64(0)
        for mine in range(k):
            if hops[mine] == distance:
                key = mix(salt, node, sources[mine]) if by_hash else np.uint64(sources[mine])
                if key >= worst_key:
                    worst, worst_key = mine, key
        key = mix(salt, node, offered[slot]) if by_hash else np.uint64(offered[slot])
        if key < worst_key:
            sources[worst] = offered[slot]


@njit(cache=True)
def sort_last(fresh, row, distance):  # type: ignore[no-untyped-def]
    """Bring what is at this distance, the last one so far, into the order of sources."""
    hops = fresh[2][row]
    first = 0
    while hops[first] != distance:
        first += 1
    end = first
    while end < len(hops) and hops[end] == distance:
        end += 1
    fresh[1][row, first:end].sort()


@njit(cache=True)
def append_found(fresh, row, distance, best, found):  # type: ignore[no-untyped-def]
    """Put what was found behind what is nearer."""
    k = len(best)
    end = 0
    while end < k and fresh[2][row, end] >= 0:
        end += 1
    fresh[1][row, end : end + found] = best[:found]
    fresh[2][row, end : end + found] = distance
