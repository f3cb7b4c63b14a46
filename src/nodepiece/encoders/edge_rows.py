"""The edges that leave every node, in a graph that changes.

An update writes the rows of the nodes that it changes behind those that changed before, and copies
none of the others. So it takes the time of what it changes, and states share their arrays.
"""

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from nodepiece.compiled import njit
from nodepiece.encoders.compressed_rows import rows_by_source
from nodepiece.graph.arrays import BoolArray, IntArray, LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses

MIN_SPARE = 4096  # edges of space behind the rows that changed
MAX_SHARE = 4  # one edge in so many may be in rows that changed, when a new base is used

CompressedRows = tuple[LongArray, IntArray, IntArray]  # see `EdgeIndex.rows_by_source`

# What kernels read (`find_row`): compressed rows, and beside them those of nodes that changed.
# These nodes, ascending; where the row of each begins and ends; targets and relations.
RowArrays = tuple[
    LongArray, IntArray, IntArray, LongArray, LongArray, LongArray, IntArray, IntArray
]


class EdgeStore:
    """Targets and relations with space behind them, which later states share.

    What was written is never changed.
    """

    def __init__(self, capacity: int) -> None:
        self._lock, self._number = Lock(), 0
        self._columns = np.empty((2, capacity), np.int32)

    def append(self, number: int, columns: IntArray) -> IntArray | None:
        """The first `number` edges followed by new ones; None: they do not fit behind these.

        columns: (2, num_edges). Of two states that follow the same one, the second gets None.
        """
        end = number + columns.shape[1]
        with self._lock:
            if self._number != number or end > self._columns.shape[1]:
                return None
            self._number = end
        self._columns[:, number:end] = columns
        return self._columns[:, :end]


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """Rows of edges (target, relation) by source: those of a base, and those that changed since."""

    base: CompressedRows  # never written to
    num_nodes: int  # those behind the base have no edges unless their row changed
    nodes: LongArray  # (num_changed,) whose rows changed, ascending
    starts: LongArray  # (num_changed,) where their rows begin in `columns`
    ends: LongArray  # (num_changed,)
    columns: IntArray  # (2, num_edges) targets and relations; some rows may be outdated
    store: EdgeStore | None = None  # that `columns` is the beginning of
    spare: list[Any] = field(default_factory=list, repr=False)  # memory that kernels use again

    @staticmethod
    def of_graph(graph: KnowledgeGraph) -> "EdgeRows":
        """Both edges of every fact."""
        return EdgeRows.of(rows_by_source(with_inverses(graph), graph.num_nodes))

    @staticmethod
    def of(base: CompressedRows) -> "EdgeRows":
        nothing = np.empty(0, np.int64)
        columns = np.empty((2, 0), np.int32)
        return EdgeRows(base, len(base[0]) - 1, nothing, nothing, nothing, columns)

    @property
    def is_base(self) -> bool:
        """Whether nothing changed since the base."""
        return not len(self.nodes) and self.num_nodes == len(self.base[0]) - 1

    @property
    def has_many_changes(self) -> bool:
        """Whether so much has changed since the base that it is better to sort all edges again."""
        return MAX_SHARE * int((self.ends - self.starts).sum()) > len(self.base[1]) + MIN_SPARE

    @property
    def arrays(self) -> RowArrays:
        return *self.base, self.nodes, self.starts, self.ends, self.columns[0], self.columns[1]

    def row(self, node: int) -> tuple[IntArray, IntArray]:
        """The targets and the relations of the edges of a node."""
        start, end, is_changed = find_row(node, self.arrays)
        targets, relations = self.columns if is_changed else self.base[1:]
        return targets[start:end], relations[start:end]

    def after(
        self,
        added: IntArray,  # (num_added, 3) new facts, each once
        removed: IntArray,  # (num_removed, 3) existing facts, each once
        *,
        num_nodes: int,
        num_direct: int,  # relations without inverses
        is_next: bool,  # whether this is the next state of the graph, and not an assumed one
    ) -> "EdgeRows":
        """The rows after a change of facts, each of which is two edges.

        Those of the next state are written behind the rows of this one; for an assumed state all
        rows that changed since the base are copied, which leaves the space to the next state.
        """
        new, gone = (with_both_edges(facts, num_direct) for facts in (added, removed))
        changed = np.unique(np.concatenate([new[:, 2], gone[:, 2]])).astype(np.int64)
        starts, columns = _changed_rows(
            changed, grouped(new, changed), grouped(gone, changed), self.arrays
        )
        kept = ~np.isin(self.nodes, changed)
        store = self.store if is_next else None
        return self._followed_by((changed, starts, columns), kept, num_nodes, store)

    def _followed_by(
        self,
        changes: tuple[LongArray, LongArray, IntArray],  # nodes, offsets and columns of their rows
        kept: BoolArray,  # (num_changed,) which of the rows that changed before are still in use
        num_nodes: int,
        store: EdgeStore | None,
    ) -> "EdgeRows":
        changed, starts, columns = changes
        before, number = (self.starts[kept], self.ends[kept]), self.columns.shape[1]
        in_use = int((before[1] - before[0]).sum()) + columns.shape[1]
        whole = None
        if store is not None and number <= 2 * in_use + MIN_SPARE:
            whole = store.append(number, columns)
        if whole is None:
            offsets, used = _copied_rows(*before, *self.columns)
            number, before = used.shape[1], (offsets[:-1], offsets[1:])
            store = EdgeStore(2 * in_use + MIN_SPARE)
            whole = store.append(0, np.concatenate([used, columns], axis=1))
            if whole is None:
                raise ValueError("a new store has space for its first edges")
        nodes = np.concatenate([self.nodes[kept], changed])
        order = np.argsort(nodes)
        begins = np.concatenate([before[0], number + starts[:-1]])[order]
        ends = np.concatenate([before[1], number + starts[1:]])[order]
        return EdgeRows(self.base, num_nodes, nodes[order], begins, ends, whole, store)


def with_both_edges(facts: IntArray, num_direct: int) -> IntArray:
    """Edges (target, relation, source): facts as they are, then the same with inverse relations."""
    inverse = facts[:, ::-1].copy()
    inverse[:, 1] += num_direct
    return np.concatenate([facts, inverse])


def grouped(edges: IntArray, sources: LongArray) -> tuple[LongArray, IntArray]:
    """Edges sorted by source, relation and target, and where those of each source begin."""
    edges = edges[np.lexsort(edges.T)]
    offsets = np.searchsorted(edges[:, 2], np.append(sources, np.iinfo(np.int64).max))
    return offsets, edges


@njit(cache=True, inline="always")
def find_row(node, rows):  # type: ignore[no-untyped-def]
    """Where the edges of a node begin and end, and whether they are among the changed rows."""
    offsets, nodes, starts, ends = rows[0], rows[3], rows[4], rows[5]
    if len(nodes) > 0:
        place = np.searchsorted(nodes, node)
        if place < len(nodes) and nodes[place] == node:
            return starts[place], ends[place], True
    if node + 1 < len(offsets):
        return offsets[node], offsets[node + 1], False
    return np.int64(0), np.int64(0), False


@njit(cache=True)
def _is_among(target, relation, edges, first, end):  # type: ignore[no-untyped-def]
    """Whether some sorted edges of one source have one with this target and relation."""
    while first < end:
        middle = (first + end) // 2
        if (edges[middle, 1], edges[middle, 0]) < (relation, target):
            first = middle + 1
        elif edges[middle, 1] == relation and edges[middle, 0] == target:
            return True
        else:
            end = middle
    return False


@njit(cache=True)
def _changed_rows(nodes, new, gone, rows):  # type: ignore[no-untyped-def]
    """The rows of some nodes after a change: where they begin, and (2, num_edges) columns."""
    (new_offsets, new_edges), (gone_offsets, gone_edges) = new, gone
    offsets = np.zeros(len(nodes) + 1, np.int64)
    for place, node in enumerate(nodes):
        start, end, _ = find_row(node, rows)
        offsets[place + 1] = end - start + new_offsets[place + 1] - new_offsets[place]
    offsets = np.cumsum(offsets)
    columns = np.empty((2, offsets[-1]), np.int32)
    count = 0
    for place, node in enumerate(nodes):
        start, end, is_changed = find_row(node, rows)
        first, last = gone_offsets[place], gone_offsets[place + 1]
        offsets[place] = count
        for edge in range(start, end):
            target = rows[6][edge] if is_changed else rows[1][edge]
            relation = rows[7][edge] if is_changed else rows[2][edge]
            if first < last and _is_among(target, relation, gone_edges, first, last):
                continue
            columns[0, count], columns[1, count] = target, relation
            count += 1
        for edge in range(new_offsets[place], new_offsets[place + 1]):
            columns[0, count], columns[1, count] = new_edges[edge, 0], new_edges[edge, 1]
            count += 1
    offsets[-1] = count
    return offsets, columns[:, :count]


@njit(cache=True)
def _copied_rows(starts, ends, targets, relations):  # type: ignore[no-untyped-def]
    """Rows one after the other: where they begin, and (2, num_edges) columns."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    offsets[1:] = np.cumsum(ends - starts)
    copied = np.empty((2, offsets[-1]), np.int32)
    for place in range(len(starts)):
        copied[0, offsets[place] : offsets[place + 1]] = targets[starts[place] : ends[place]]
        copied[1, offsets[place] : offsets[place + 1]] = relations[starts[place] : ends[place]]
    return offsets, copied
