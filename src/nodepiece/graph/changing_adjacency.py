"""An adjacency whose edges are added and removed in batches, without a rebuild."""

import numpy as np
from numpy.typing import NDArray

from nodepiece.compiled import njit
from nodepiece.graph.adjacency import Adjacency
from nodepiece.graph.arrays import IntArray, LongArray, ScalarT

SPARE_SHARE = 8  # an array that is full grows by 1 / SPARE_SHARE


class ChangingAdjacency:
    """Outgoing edges by node, inverses included, in rows that may move.

    The edges of node v are the slice start[v]:start[v] + count[v] of `neighbours` and `relations`,
    in no particular order. A full row moves to the end with twice the capacity, so a new edge
    costs constant time on average; a removed edge is replaced by the last of its row. The gaps that
    moved rows leave are reclaimed when they are as large as the memory in use. Any number of
    threads may read it while none changes it; `changed_edges` applies a change to a copy.
    """

    def __init__(self, adjacency: Adjacency) -> None:
        self.num_nodes, self.num_relations = adjacency.num_nodes, adjacency.num_relations
        spare = self.num_nodes // SPARE_SHARE + 1024
        self.start: LongArray = with_capacity(adjacency.offsets[:-1], spare)  # (capacity,)
        self.count: LongArray = with_capacity(adjacency.degrees, spare)
        self.room: LongArray = self.count.copy()  # edges that fit into a row where it is
        self.used = len(adjacency.neighbours)  # of the two arrays below
        spare = self.used // SPARE_SHARE + 1024
        self.neighbours: IntArray = with_capacity(adjacency.neighbours, spare)
        self.relations: IntArray = with_capacity(adjacency.relations, spare)
        self.spare_marks: list[IntArray] = []  # of -1 for every node, for `changed_edges`

    @property
    def num_edges(self) -> int:
        return int(self.count[: self.num_nodes].sum())

    def add_nodes(self, number: int) -> None:
        """Add nodes without edges, with the next ids."""
        missing = self.num_nodes + number - len(self.start)
        if missing > 0:
            spare = missing + len(self.start) // SPARE_SHARE
            self.start = with_capacity(self.start, spare)
            self.count = with_capacity(self.count, spare)
            self.room = with_capacity(self.room, spare)
        self.num_nodes += number

    def apply(self, added: IntArray, removed: IntArray, num_new_nodes: int) -> None:
        """Add nodes, remove existing facts and insert new ones."""
        self.add_nodes(num_new_nodes)
        self.remove(removed)
        self.insert(added)

    def contains(self, facts: IntArray) -> NDArray[np.bool_]:
        """Whether each fact is in the graph: (num_facts, 3) by ids -> (num_facts,)."""
        return _contains(
            self.start, self.count, self.neighbours, self.relations, facts, self.num_relations // 2
        )

    def insert(self, facts: IntArray) -> None:
        """Insert new facts, each given once: two edges each."""
        done = 0
        while done < len(facts):
            done, self.used = _insert(
                self.start,
                self.count,
                self.room,
                self.neighbours,
                self.relations,
                facts[done:] if done else facts,
                self.num_relations // 2,
                self.used,
                done,
            )
            if done < len(facts):
                self._make_room()

    def remove(self, facts: IntArray) -> None:
        """Remove existing facts, each given once."""
        _remove(
            self.start, self.count, self.neighbours, self.relations, facts, self.num_relations // 2
        )

    def edges_of(self, nodes: IntArray) -> IntArray:
        """All edges of some nodes as (num_edges, 3): node, relation, neighbour."""
        rows = [slice(self.start[v], self.start[v] + self.count[v]) for v in nodes.tolist()]
        parts = [
            np.stack(
                [np.full(row.stop - row.start, v), self.relations[row], self.neighbours[row]], 1
            )
            for v, row in zip(nodes.tolist(), rows, strict=True)
        ]
        return np.concatenate([np.empty((0, 3), np.int32), *parts]).astype(np.int32)

    def facts(self) -> IntArray:
        """(num_facts, 3): every fact once, by head."""
        adjacency = self.compact()
        heads = np.repeat(np.arange(self.num_nodes, dtype=np.int32), adjacency.degrees)
        is_direct = adjacency.relations < self.num_relations // 2
        columns = (heads, adjacency.relations, adjacency.neighbours)
        return np.stack([column[is_direct] for column in columns], axis=1)

    def compact(self) -> Adjacency:
        """The current edges in an array without gaps."""
        count = self.count[: self.num_nodes]
        offsets = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        neighbours, relations = _gather(
            self.start, offsets, self.neighbours, self.relations, int(offsets[-1])
        )
        return Adjacency(offsets, neighbours, relations, self.num_relations)

    def _make_room(self) -> None:
        in_use = int(self.room[: self.num_nodes].sum())
        if self.used > 2 * in_use:
            self.__init__(self.compact())  # type: ignore[misc]
            return
        spare = len(self.neighbours) // SPARE_SHARE + 8 * int(self.count.max(initial=0)) + 1024
        self.neighbours = with_capacity(self.neighbours, spare)
        self.relations = with_capacity(self.relations, spare)


def with_capacity(array: NDArray[ScalarT], spare: int, fill: int = 0) -> NDArray[ScalarT]:
    """A copy with `spare` more rows, filled with a value."""
    longer = np.empty((len(array) + spare, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    longer[len(array) :] = fill
    return longer


@njit(cache=True)
def _find(start, count, neighbours, relations, node, relation, neighbour):  # type: ignore[no-untyped-def]
    """The position of an edge, or -1; searched from the end, as removed edges are often recent."""
    for place in range(start[node] + count[node] - 1, start[node] - 1, -1):
        if neighbours[place] == neighbour and relations[place] == relation:
            return place
    return -1


@njit(cache=True)
def _contains(start, count, neighbours, relations, facts, num_direct):  # type: ignore[no-untyped-def]
    found = np.empty(len(facts), np.bool_)
    for i in range(len(facts)):
        node, relation, neighbour = facts[i, 0], facts[i, 1], facts[i, 2]
        if count[neighbour] < count[node]:  # search the shorter row
            node, relation, neighbour = neighbour, relation + num_direct, node
        place = _find(start, count, neighbours, relations, node, relation, neighbour)
        found[i] = place >= 0
    return found


@njit(cache=True)
def _insert(  # type: ignore[no-untyped-def]
    start, count, room, neighbours, relations, facts, num_direct, used, done
):
    """Insert until the end of the arrays is reached; returns facts done, and the new end."""
    for i in range(len(facts)):
        head, relation, tail = facts[i, 0], facts[i, 1], facts[i, 2]
        needed = 4 * (count[head] + count[tail] + 4)  # more than two rows that move may take
        if used + needed > len(neighbours):
            return done, used
        for side in range(2):
            node = head if side == 0 else tail
            if count[node] == room[node]:
                room[node] = 2 * count[node] + 2
                for offset in range(count[node]):
                    neighbours[used + offset] = neighbours[start[node] + offset]
                    relations[used + offset] = relations[start[node] + offset]
                start[node] = used
                used += room[node]
            place = start[node] + count[node]
            neighbours[place] = tail if side == 0 else head
            relations[place] = relation if side == 0 else relation + num_direct
            count[node] += 1
        done += 1
    return done, used


@njit(cache=True)
def _remove(start, count, neighbours, relations, facts, num_direct):  # type: ignore[no-untyped-def]
    for i in range(len(facts)):
        head, relation, tail = facts[i, 0], facts[i, 1], facts[i, 2]
        for side in range(2):
            node = head if side == 0 else tail
            other = tail if side == 0 else head
            edge = relation if side == 0 else relation + num_direct
            place = _find(start, count, neighbours, relations, node, edge, other)
            last = start[node] + count[node] - 1
            neighbours[place] = neighbours[last]
            relations[place] = relations[last]
            count[node] -= 1


@njit(cache=True)
def _gather(start, offsets, neighbours, relations, num_edges):  # type: ignore[no-untyped-def]
    ordered = np.empty(num_edges, np.int32)
    kinds = np.empty(num_edges, np.int32)
    for node in range(len(offsets) - 1):
        for i in range(offsets[node + 1] - offsets[node]):
            ordered[offsets[node] + i] = neighbours[start[node] + i]
            kinds[offsets[node] + i] = relations[start[node] + i]
    return ordered, kinds
