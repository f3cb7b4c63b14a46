"""The k nearest sources of every node while edges come and go.

The table of `nearest_sources` is the one solution of a local equation: what a node holds at
distance d is the best, by its own order, of what its neighbours hold at d - 1, less what it holds
nearer, as far as there is room. There is just one: at distance 0 a source holds itself, and what is
held at d follows from the edges and from what is held nearer. So after a change it is enough to
look again, distance by distance, at nodes whose edges changed, nodes next to a change one hop
nearer, and nodes that changed themselves; all others satisfy their equation as before. The result
equals a new search, under either tie-break, whether edges came or went: what a node held only
through an edge that is gone has nobody one hop nearer to tell it.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.changed_edges import ChangedEdges, row_of
from nodepiece.graph.changing_adjacency import SPARE_SHARE, with_room
from nodepiece.graph.nearest import MAX_DISTANCE, UNREACHED, Distances
from nodepiece.graph.row_changes import (
    NEVER_FULL,
    append_found,
    copy_up_to,
    fullness,
    fullness_of_all,
    gains,
    has_room,
    holds_just,
    listen_again,
    loses,
    reaches,
    sort_last,
    take_offer,
)

NOTHING, GAINS, LISTENS = 0, 1, 2  # why a node is looked at again


class Rows(NamedTuple):
    """Rows of the table of some nodes."""

    nodes: IntArray  # (num_rows,)
    nearest: IntArray  # (num_rows, k)
    distance: Distances  # (num_rows, k)


class Scratch(NamedTuple):
    """Marks on nodes and sources, of one search at a time, which leaves them as it found them."""

    fresh_of: IntArray  # (room for nodes,) -1
    why: NDArray[np.int8]  # (room for nodes,) NOTHING
    full_at: NDArray[np.int16]  # (room for nodes,) the distance beyond which a node takes nothing
    seen: (
        LongArray  # (num_sources + 1,) when each source was last seen, and, last, the present time
    )


class NearestTable:
    """The k nearest sources of every node of a graph that changes.

    `changed_by` says what a change of the edges does to it, and `write` lets it happen. Any number
    of threads may ask for the former while none does the latter.
    """

    def __init__(
        self, nearest: IntArray, distance: Distances, num_sources: int, *, salt: np.uint64 | None
    ) -> None:
        # nearest, distance: (num_nodes, k), as `nearest_sources` returns them for this salt
        self.num_nodes, self.num_sources, self.salt = len(nearest), num_sources, salt
        spare = self.num_nodes // SPARE_SHARE + 1024
        self.nearest = with_room(nearest, spare, UNREACHED)
        self.distance = with_room(distance, spare, UNREACHED)
        self._spare: list[Scratch] = []  # what no search is using

    def add_nodes(self, number: int) -> None:
        """Nodes that hold nothing yet, with the next ids."""
        self.nearest, self.distance = self._with_room_for(self.num_nodes + number)
        self.num_nodes += number

    def changed_by(self, edges: ChangedEdges) -> Rows:
        """The rows that are different once the edges are changed; nothing is written.

        Time grows with the edges of nodes that change, not with the graph. Rows come in the order
        of node ids.
        """
        if not self.nearest.shape[1]:
            return Rows(np.empty(0, np.int32), self.nearest[:0], self.distance[:0])
        nearest, distance = self._with_room_for(edges.num_nodes)
        scratch = self._borrow(distance)
        num_fresh, too_far, nodes, nearest, distance = _search(
            edges.neighbour_rows,
            (nearest, distance, scratch.full_at),
            (scratch.fresh_of, scratch.why),
            scratch.seen,
            edges.added,
            edges.removed,
            self.salt is not None,
            np.uint64(0) if self.salt is None else self.salt,
        )
        self._spare.append(scratch)
        if too_far:
            raise InputError(
                f"some nodes would be more than {MAX_DISTANCE:,} hops away from their nearest "
                "anchors; tokenize the graph again with more anchors"
            )
        order = np.argsort(nodes[:num_fresh])
        return Rows(nodes[order], nearest[order], distance[order])

    def write(self, rows: Rows) -> None:
        self.nearest[rows.nodes] = rows.nearest
        self.distance[rows.nodes] = rows.distance
        # One is brought up to date, more are made when they are needed.
        self._spare = [kept for kept in self._spare[:1] if len(kept.why) == len(self.nearest)]
        for kept in self._spare:
            kept.full_at[rows.nodes] = fullness_of_all(rows.distance)

    def _with_room_for(self, num_nodes: int) -> tuple[IntArray, Distances]:
        """The table, or a longer copy of it where it is too short."""
        missing = num_nodes - len(self.nearest)
        if missing <= 0:
            return self.nearest, self.distance
        spare = missing + len(self.nearest) // SPARE_SHARE
        return with_room(self.nearest, spare, UNREACHED), with_room(self.distance, spare, UNREACHED)

    def _borrow(self, distance: Distances) -> Scratch:
        """Marks for a table of such distances, that no other thread has."""
        try:
            scratch = self._spare.pop()
        except IndexError:
            scratch = None
        if scratch is not None and len(scratch.why) == len(distance):
            return scratch
        return Scratch(
            np.full(len(distance), -1, np.int32),
            np.full(len(distance), NOTHING, np.int8),
            fullness_of_all(distance),  # small, as it is read at random
            np.zeros(self.num_sources + 1, np.int64),
        )


@njit(cache=True)
def _search(edges, old, marks, seen, inserted, removed, by_hash, salt):  # type: ignore[no-untyped-def]
    """Distance by distance, the fresh rows of all nodes that change.

    A row that turns out different is copied from the old table up to that distance and goes on as
    a fresh one until it is complete. Rows at `distance` read others at `distance - 1` only.
    """
    fresh_of, why = marks
    k = old[0].shape[1]
    fresh = (fresh_of, np.empty((16, k), np.int32), np.empty((16, k), np.int16))
    nodes, is_open, num_fresh = np.empty(16, np.int32), np.empty(16, np.bool_), 0
    queue, num_queued = np.empty(64, np.int32), 0  # nodes to look at again, and why
    offers, num_offers = np.empty((64, 2), np.int32), 0  # to nodes that only gain, from whom
    changed, num_changed = np.empty(64, np.int32), 0  # nodes that differ one hop nearer
    best, best_key = np.empty(k, np.int32), np.empty(k, np.uint64)
    distance, too_far = 0, False
    while not too_far:
        distance += 1
        num_queued, num_offers, is_pending = 0, 0, num_changed > 0
        for i in range(num_fresh):
            if is_open[i]:
                queue, num_queued = _queue(queue, num_queued, nodes[i], why, LISTENS)
        for i in range(2 * len(removed)):
            node, other = removed[i // 2, 2 * (i % 2)], removed[i // 2, 2 - 2 * (i % 2)]
            is_pending |= reaches(other, distance - 1, old, fresh)
            if fresh_of[node] < 0 and loses(node, other, distance, old, fresh, False):
                queue, num_queued = _queue(queue, num_queued, node, why, LISTENS)
        for i in range(num_changed):
            neighbours, first, end = row_of(edges, changed[i])
            for place in range(first, end):
                node = neighbours[place]
                if old[2][node] < distance or why[node] == LISTENS:
                    continue  # it was full before, as most are, or will listen anyway
                if (
                    has_room(fresh[2][fresh_of[node]])
                    if fresh_of[node] >= 0
                    else loses(node, changed[i], distance, old, fresh, True)
                ):
                    queue, num_queued = _queue(queue, num_queued, node, why, LISTENS)
                elif fresh_of[node] < 0 and gains(
                    node, changed[i], distance, old, fresh, by_hash, salt
                ):
                    queue, num_queued = _queue(queue, num_queued, node, why, GAINS)
                    offers, num_offers = _note(offers, num_offers, node, changed[i])
        for i in range(2 * len(inserted)):
            node, other = inserted[i // 2, 2 * (i % 2)], inserted[i // 2, 2 - 2 * (i % 2)]
            is_pending |= reaches(other, distance - 1, old, fresh)
            if why[node] == LISTENS or fresh_of[node] >= 0:
                continue
            if gains(node, other, distance, old, fresh, by_hash, salt):
                queue, num_queued = _queue(queue, num_queued, node, why, GAINS)
                offers, num_offers = _note(offers, num_offers, node, other)
        if num_queued == 0 and not is_pending:
            break
        while num_fresh + num_queued > len(nodes):
            nodes, is_open = _longer(nodes), _longer(is_open)
            fresh = (fresh_of, _longer(fresh[1]), _longer(fresh[2]))
        if num_offers and distance > MAX_DISTANCE:
            too_far = True
            why[queue[:num_queued]] = NOTHING
            break
        num_changed, first_gain = 0, num_fresh
        for i in range(num_queued):
            if why[queue[i]] == GAINS:
                nodes[num_fresh] = queue[i]
                copy_up_to(queue[i], distance, old, fresh, num_fresh)
                num_fresh += 1
        for row in range(first_gain, num_fresh):
            fresh_of[nodes[row]] = row
        for i in range(num_offers):
            if why[offers[i, 0]] == GAINS:
                take_offer(offers[i, 0], offers[i, 1], distance, old, fresh, by_hash, salt)
        for row in range(first_gain, num_fresh):
            sort_last(fresh, row, distance)
            changed, num_changed = _append_to(changed, num_changed, nodes[row])
            # Whether neighbours have more to offer is for the next look to find out.
            is_open[row] = old[1][nodes[row]].max() > distance or has_room(fresh[2][row])
        for i in range(num_queued):
            node = queue[i]
            if why[node] == GAINS:
                why[node] = NOTHING
                continue
            why[node] = NOTHING
            seen[-1] += 1
            found, more = listen_again(
                node, distance, edges, old, fresh, seen, best, best_key, by_hash, salt
            )
            too_far |= found > 0 and distance > MAX_DISTANCE
            is_same = holds_just(old, node, distance, best, found)
            if is_same and fresh_of[node] < 0:
                continue
            if fresh_of[node] < 0:
                nodes[num_fresh] = node
                copy_up_to(node, distance - 1, old, fresh, num_fresh)
                fresh_of[node] = num_fresh
                num_fresh += 1
            if not is_same:
                changed, num_changed = _append_to(changed, num_changed, node)
            row = fresh_of[node]
            append_found(fresh, row, distance, best, found)
            # What the old row holds farther away, the fresh one may have to give up.
            is_open[row] = old[1][node].max() > distance or (more and has_room(fresh[2][row]))
        for row in range(num_fresh):
            old[2][nodes[row]] = NEVER_FULL
    for row in range(num_fresh):
        fresh_of[nodes[row]] = -1
        old[2][nodes[row]] = fullness(old[1][nodes[row]])
    return num_fresh, too_far, nodes, fresh[1], fresh[2]


@njit(cache=True)
def _queue(queue, num_queued, node, why, reason):  # type: ignore[no-untyped-def]
    """Queue a node once; the stronger reason counts."""
    if why[node] == NOTHING:
        queue, num_queued = _append_to(queue, num_queued, node)
    why[node] = max(why[node], reason)
    return queue, num_queued


@njit(cache=True)
def _append_to(array, length, value):  # type: ignore[no-untyped-def]
    if length == len(array):
        array = _longer(array)
    array[length] = value
    return array, length + 1


@njit(cache=True)
def _note(offers, num_offers, node, other):  # type: ignore[no-untyped-def]
    if num_offers == len(offers):
        offers = _longer(offers)
    offers[num_offers, 0] = node
    offers[num_offers, 1] = other
    return offers, num_offers + 1


@njit(cache=True)
def _longer(array):  # type: ignore[no-untyped-def]
    longer = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
