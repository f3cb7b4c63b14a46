"""The search for all rows that a change of edges alters, distance by distance.

At each distance it finds the nodes whose row may differ there (`_queue_*`). Most of them can
only gain: new sources are inserted into a copy of the old row (`_insert_gains`). The others are
computed from all their neighbours (`_recompute_rows`). A row that differs is copied from the old
table up to that distance and continued as a new one. Rows at `distance` read other rows only at
`distance - 1`, so the order of nodes does not matter.
"""

import numpy as np

from nodepiece.compiled import njit
from nodepiece.graph.changed_edges import row_of
from nodepiece.graph.nearest import MAX_DISTANCE
from nodepiece.graph.row_changes import (
    append_found,
    cutoff_distance,
    gains,
    has_room,
    insert_candidates,
    is_unchanged,
    loses,
    reaches,
    recompute,
    sort_last,
)
from nodepiece.graph.row_records import (
    Growing,
    OldRows,
    Scratch,
    TieBreak,
    append,
    append_pair,
    copy_row,
    empty_rows,
)

NOT_QUEUED, INSERT, RECOMPUTE = 0, 1, 2  # what to do with a node; the larger one takes precedence


@njit(cache=True)
def changed_rows(  # type: ignore[no-untyped-def]
    edges, inserted, removed, nearest, distance, cutoff, marks, seen, salt
):
    """The nodes whose rows differ, their new rows, and whether a source is too far to be stored.

    Returns nodes (num_changed,), nearest and distance (num_changed, k), and a bool. `edges`
    (`EdgeRows`) are those after the change, the rows those before it. inserted, removed:
    (num_facts, 3). marks: `todo` (num_nodes,), NOT_QUEUED everywhere before and after, and
    `NewRows.row_of`, -1 everywhere before and after. salt: whether the order of sources is by
    hash, and its salt.
    """
    k = nearest.shape[1]
    old = OldRows(nearest, distance, cutoff)
    tie_break = TieBreak(salt[0], salt[1])
    scratch = Scratch(seen, np.empty(k, np.int32), np.empty(k, np.uint64))
    todo, new = marks[0], empty_rows(marks[1], k)
    new, is_too_far = _search(new, edges, inserted, removed, old, tie_break, todo, scratch)
    end = new.length
    return new.nodes[:end], new.nearest[:end], new.distance[:end], is_too_far


@njit(cache=True, inline="always")
def _search(new, edges, inserted, removed, old, tie_break, todo, scratch):  # type: ignore[no-untyped-def]
    """All rows that differ, and whether a source is too far away to be stored."""
    queue = Growing(np.empty(64, np.int32), 0)  # nodes whose rows may differ at this distance
    pairs = Growing(np.empty((64, 2), np.int32), 0)  # (node, neighbour with a source for it)
    changed = Growing(np.empty(64, np.int32), 0)  # nodes whose rows differ one hop nearer
    distance, is_too_far = 0, False
    while not is_too_far:
        distance += 1
        queue, pairs = Growing(queue.items, 0), Growing(pairs.items, 0)
        queue = _queue_open_rows(queue, todo, new)
        queue = _queue_after_removals(queue, todo, removed, distance, old, new)
        queue, pairs = _queue_next_to_changed(
            queue, pairs, todo, changed, edges, distance, old, new, tie_break
        )
        queue, pairs = _queue_after_insertions(
            queue, pairs, todo, inserted, distance, old, new, tie_break
        )
        if queue.length == 0 and not (
            changed.length > 0
            or _any_end_reaches(inserted, distance - 1, old, new)
            or _any_end_reaches(removed, distance - 1, old, new)
        ):
            break  # nothing differs here, and nothing can differ farther away
        if pairs.length and distance > MAX_DISTANCE:
            is_too_far = True
            todo[queue.items[: queue.length]] = NOT_QUEUED
            break
        changed = Growing(changed.items, 0)
        new, changed = _insert_gains(new, changed, queue, pairs, todo, distance, old, tie_break)
        new, changed, is_too_far = _recompute_rows(
            new, changed, queue, todo, edges, distance, old, tie_break, scratch
        )
    _clear_marks(old, new)
    return new, is_too_far


@njit(cache=True, inline="always")
def _queue_open_rows(queue, todo, new):  # type: ignore[no-untyped-def]
    """Queue the nodes whose new rows may also differ from the old ones at this distance."""
    for row in range(new.length):
        if new.is_open[row]:
            queue = _enqueue(queue, new.nodes[row], todo, RECOMPUTE)
    return queue


@njit(cache=True, inline="always")
def _queue_after_removals(queue, todo, removed, distance, old, new):  # type: ignore[no-untyped-def]
    """Queue the nodes that lose a source along a removed edge."""
    for i in range(2 * len(removed)):
        node, neighbour = _directed_pair(removed, i)
        if new.row_of[node] < 0 and loses(node, neighbour, distance, old, new, False):
            queue = _enqueue(queue, node, todo, RECOMPUTE)
    return queue


@njit(cache=True, inline="always")
def _queue_next_to_changed(  # type: ignore[no-untyped-def]
    queue, pairs, todo, changed, edges, distance, old, new, tie_break
):
    """Queue neighbours of rows that differ one hop nearer, if they gain or lose a source by it."""
    for i in range(changed.length):
        neighbour = changed.items[i]
        neighbours, first, end = row_of(edges, neighbour)
        for place in range(first, end):
            node = neighbours[place]
            if old.cutoff[node] < distance or todo[node] == RECOMPUTE:
                continue  # it was full before, as most are, or is computed anyway
            row = new.row_of[node]
            if row >= 0:
                if has_room(new.distance[row]):
                    queue = _enqueue(queue, node, todo, RECOMPUTE)
            elif loses(node, neighbour, distance, old, new, True):
                queue = _enqueue(queue, node, todo, RECOMPUTE)
            elif gains(node, neighbour, distance, old, new, tie_break):
                queue = _enqueue(queue, node, todo, INSERT)
                pairs = append_pair(pairs, node, neighbour)
    return queue, pairs


@njit(cache=True, inline="always")
def _queue_after_insertions(  # type: ignore[no-untyped-def]
    queue, pairs, todo, inserted, distance, old, new, tie_break
):
    """Queue the nodes that gain a source along an inserted edge."""
    for i in range(2 * len(inserted)):
        node, neighbour = _directed_pair(inserted, i)
        if todo[node] == RECOMPUTE or new.row_of[node] >= 0:
            continue
        if gains(node, neighbour, distance, old, new, tie_break):
            queue = _enqueue(queue, node, todo, INSERT)
            pairs = append_pair(pairs, node, neighbour)
    return queue, pairs


@njit(cache=True, inline="always")
def _any_end_reaches(facts, distance, old, new):  # type: ignore[no-untyped-def]
    """Whether a head or tail of the facts has, or had, a source at this distance or farther."""
    for i in range(2 * len(facts)):
        if reaches(_directed_pair(facts, i)[0], distance, old, new):
            return True
    return False


@njit(cache=True, inline="always")
def _insert_gains(new, changed, queue, pairs, todo, distance, old, tie_break):  # type: ignore[no-untyped-def]
    """Make new rows of the nodes that only gain; the nodes are appended to `changed`."""
    first = new.length
    for i in range(queue.length):
        if todo[queue.items[i]] == INSERT:
            new = copy_row(new, old, queue.items[i], distance)
    for i in range(pairs.length):
        node, neighbour = pairs.items[i, 0], pairs.items[i, 1]
        if todo[node] == INSERT:
            insert_candidates(node, neighbour, distance, old, new, tie_break)
    for row in range(first, new.length):
        node = new.nodes[row]
        sort_last(new, row, distance)
        changed = append(changed, node)
        # Whether neighbours have more is found out at the next distance.
        new.is_open[row] = old.distance[node].max() > distance or has_room(new.distance[row])
        todo[node] = NOT_QUEUED
    return new, changed


@njit(cache=True, inline="always")
def _recompute_rows(  # type: ignore[no-untyped-def]
    new, changed, queue, todo, edges, distance, old, tie_break, scratch
):
    """Compute the other queued rows at this distance; those that differ are appended to `changed`.

    The last result is whether a source was found that is too far away to be stored.
    """
    best = scratch.best
    is_too_far = False
    for i in range(queue.length):
        node = queue.items[i]
        if todo[node] == NOT_QUEUED:
            continue  # it had sources inserted
        todo[node] = NOT_QUEUED
        found, has_more = recompute(node, distance, edges, old, new, scratch, tie_break)
        is_too_far |= found > 0 and distance > MAX_DISTANCE
        is_same = is_unchanged(node, distance, old, best, found)
        if new.row_of[node] < 0:
            if is_same:
                continue
            new = copy_row(new, old, node, distance - 1)
        if not is_same:
            changed = append(changed, node)
        row = new.row_of[node]
        append_found(new, row, distance, best, found)
        # What the old row has farther away, the new one may lose.
        new.is_open[row] = old.distance[node].max() > distance or (
            has_more and has_room(new.distance[row])
        )
    return new, changed, is_too_far


@njit(cache=True)
def _clear_marks(old, new):  # type: ignore[no-untyped-def]
    """Restore the marks on nodes to their state before the search."""
    for row in range(new.length):
        node = new.nodes[row]
        new.row_of[node] = -1
        old.cutoff[node] = cutoff_distance(old.distance[node])


@njit(cache=True, inline="always")
def _directed_pair(facts, i):  # type: ignore[no-untyped-def]
    """The head and the tail of fact i // 2, or the tail and the head where i is odd."""
    return facts[i // 2, 2 * (i % 2)], facts[i // 2, 2 - 2 * (i % 2)]


@njit(cache=True)
def _enqueue(queue, node, todo, what):  # type: ignore[no-untyped-def]
    """The queue with a node in it, once; of two actions the larger one takes precedence."""
    if todo[node] == NOT_QUEUED:
        queue = append(queue, node)
    todo[node] = max(todo[node], what)
    return queue
