"""The neighbours of every node, both ways, in one compressed array, and nothing else of its edges.

Adjacency (`adjacency.py`) has the relations of the edges as well. The tokenizer needs neighbours
and relations one after the other, so it never has both in memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from nodepiece.compiled import njit, prange
from nodepiece.graph.arrays import IntArray, LongArray, read_only
from nodepiece.graph.fact_blocks import fact_blocks
from nodepiece.graph.knowledge_graph import KnowledgeGraph

NUM_CHUNKS = 256  # of the work of a kernel: threads with equal numbers of them finish together


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The other node of every edge, by node; fact (h, r, t) is an edge of h and an edge of t.

    The edges of node v are the slice offsets[v]:offsets[v + 1], in the order of the facts.
    Parallel edges and self-loops are kept: a self-loop is two edges of its node.
    """

    offsets: LongArray  # (num_nodes + 1,)
    neighbours: IntArray  # (num_edges,) the other node of each edge

    def __post_init__(self) -> None:
        for field in ("offsets", "neighbours"):
            object.__setattr__(self, field, read_only(getattr(self, field)))

    @property
    def num_nodes(self) -> int:
        return len(self.offsets) - 1

    @property
    def degrees(self) -> LongArray:
        """(num_nodes,) edges of every node: its facts as head plus its facts as tail."""
        return read_only(np.diff(self.offsets))

    def chunks(self, nodes: IntArray | None = None) -> LongArray:
        """Cut `nodes`, or all nodes, into runs of about equal numbers of edges, for the kernels.

        Returns (num_chunks + 1,) positions in `nodes`. There are many small runs, so that threads
        with equal numbers of runs finish together even where one node is a large hub.
        """
        if nodes is None:
            return cuts_of_offsets(self.offsets)
        return _cuts_of_nodes(self.offsets, nodes, min(NUM_CHUNKS, max(1, len(nodes))))


def cuts_of_offsets(offsets: LongArray) -> LongArray:
    """Positions that cut rows, given by their offsets, into runs of about equal lengths."""
    num_rows = len(offsets) - 1
    return _cuts_of_rows(offsets, min(NUM_CHUNKS, max(1, num_rows)))


@njit(cache=True)
def _cuts_of_rows(offsets, num_chunks):  # type: ignore[no-untyped-def]
    num_rows = len(offsets) - 1
    cuts = np.full(num_chunks + 1, num_rows, np.int64)
    cuts[0] = 0
    share = (offsets[num_rows] - offsets[0] + num_rows) / num_chunks
    for chunk in range(1, num_chunks):
        low, high = 0, num_rows  # the first row with this much work before it
        while low < high:
            middle = (low + high) // 2
            if offsets[middle] - offsets[0] + middle < chunk * share:
                low = middle + 1
            else:
                high = middle
        cuts[chunk] = low
    return cuts


@njit(cache=True)
def _cuts_of_nodes(offsets, nodes, num_chunks):  # type: ignore[no-untyped-def]
    total = len(nodes)
    for node in nodes:
        total += offsets[node + 1] - offsets[node]
    cuts = np.full(num_chunks + 1, len(nodes), np.int64)
    cuts[0] = 0
    chunk, done = 1, 0
    for i in range(len(nodes)):
        while chunk < num_chunks and done >= chunk * (total / num_chunks):
            cuts[chunk] = i
            chunk += 1
        done += offsets[nodes[i] + 1] - offsets[nodes[i]] + 1
    return cuts


def build_neighbours(graph: KnowledgeGraph) -> Neighbours:
    """The neighbours of every node, by a counting sort: two passes over the facts.

    Memory is that of the result and of one block of facts.
    """
    offsets = edge_offsets(graph)
    neighbours = np.empty(2 * graph.num_triples, np.int32)
    place_edges(graph, offsets, _place_neighbours, neighbours)
    return Neighbours(offsets, neighbours)


def edge_offsets(graph: KnowledgeGraph) -> LongArray:
    """Where the edges of every node begin: (num_nodes + 1,)."""
    offsets = np.zeros(graph.num_nodes + 1, np.int64)
    parts = np.linspace(0, graph.num_nodes, numba.get_num_threads() + 1).astype(np.int64)
    for block in fact_blocks(graph.triples):
        _count_edges(block, parts, offsets)
    return np.cumsum(offsets, out=offsets)


def place_edges(
    graph: KnowledgeGraph, offsets: LongArray, place: Callable[..., None], *more: Any
) -> None:
    """Call place(facts, parts, free, *more) for blocks of facts, to write values of their edges.

    The next edge of node v is at free[v + 1], which `place` increments. Each thread writes the
    edges of a part of the nodes, so these stay in the order of the facts. `free` is `offsets`,
    which are as before in the end.
    """
    parts = _cuts_of_rows(offsets, numba.get_num_threads())
    _shift(offsets)
    for block in fact_blocks(graph.triples):
        place(block, parts, offsets, *more)


@njit(parallel=True, cache=True)
def _count_edges(triples, parts, offsets):  # type: ignore[no-untyped-def]
    """Add the number of edges of node v to offsets[v + 1]."""
    for part in prange(len(parts) - 1):
        first, end = parts[part], parts[part + 1]
        for i in range(len(triples)):
            head, tail = triples[i, 0], triples[i, 2]
            if first <= head < end:
                offsets[head + 1] += 1
            if first <= tail < end:
                offsets[tail + 1] += 1


@njit(cache=True)
def _shift(offsets):  # type: ignore[no-untyped-def]
    """Set offsets[v + 1] to where the edges of v begin; after they are placed, they end there."""
    for node in range(len(offsets) - 1, 0, -1):
        offsets[node] = offsets[node - 1]


@njit(parallel=True, cache=True)
def _place_neighbours(triples, parts, free, neighbours):  # type: ignore[no-untyped-def]
    for part in prange(len(parts) - 1):
        first, end = parts[part], parts[part + 1]
        for i in range(len(triples)):
            head, tail = triples[i, 0], triples[i, 2]
            if first <= head < end:
                neighbours[free[head + 1]] = tail
                free[head + 1] += 1
            if first <= tail < end:
                neighbours[free[tail + 1]] = head
                free[tail + 1] += 1
