"""The edges of every node, both ways, in one compressed array."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nodepiece.compiled import njit, prange
from nodepiece.graph.arrays import IntArray, LongArray, read_only
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.neighbours import Neighbours, edge_offsets, place_edges


@dataclass(frozen=True, eq=False)
class Adjacency(Neighbours):
    """Outgoing edges by node, inverses included: fact (h, r, t) is h -r-> t and t -r+R-> h."""

    relations: IntArray  # (num_edges,) in [0, num_relations)
    num_relations: int  # direct and inverse

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "relations", read_only(self.relations))

    @cached_property
    def degrees(self) -> LongArray:
        """(num_nodes,) edges of every node: its facts as head plus its facts as tail."""
        return read_only(np.diff(self.offsets))


def balanced_chunks(work: LongArray, num_chunks: int = 256) -> LongArray:
    """Positions that cut a sequence of pieces of work into runs of about equal sums."""
    num_chunks = max(1, min(num_chunks, len(work)))
    done = np.cumsum(work + 1)
    total = int(done[-1]) if len(done) else 0
    cuts = np.searchsorted(done, np.arange(1, num_chunks) * (total / num_chunks))
    return np.concatenate([[0], cuts, [len(work)]]).astype(np.int64)


def build_adjacency(graph: KnowledgeGraph) -> Adjacency:
    """Build the adjacency by a counting sort of all edges: two passes over the facts."""
    offsets = edge_offsets(graph)
    neighbours = np.empty(2 * graph.num_triples, np.int32)
    relations = np.empty(2 * graph.num_triples, np.int32)
    place_edges(graph, offsets, _place_both, neighbours, relations, graph.num_relations)
    return Adjacency(offsets, neighbours, relations, 2 * graph.num_relations)


@njit(parallel=True, cache=True)
def _place_both(triples, parts, free, neighbours, relations, num_direct):  # type: ignore[no-untyped-def]
    for part in prange(len(parts) - 1):
        first, end = parts[part], parts[part + 1]
        for i in range(len(triples)):
            head, relation, tail = triples[i, 0], triples[i, 1], triples[i, 2]
            if first <= head < end:
                neighbours[free[head + 1]] = tail
                relations[free[head + 1]] = relation
                free[head + 1] += 1
            if first <= tail < end:
                neighbours[free[tail + 1]] = head
                relations[free[tail + 1]] = relation + num_direct
                free[tail + 1] += 1


@njit(cache=True)
def components(offsets, neighbours):  # type: ignore[no-untyped-def]
    """The connected component of every node: (num_nodes,), numbered by their lowest node id."""
    num_nodes = len(offsets) - 1
    component = np.full(num_nodes, -1, np.int32)
    queue = np.empty(num_nodes, np.int32)
    num_components = 0
    for start in range(num_nodes):
        if component[start] >= 0:
            continue
        component[start] = num_components
        queue[0] = start
        first, last = 0, 1
        while first < last:
            node = queue[first]
            first += 1
            for edge in range(offsets[node], offsets[node + 1]):
                neighbour = neighbours[edge]
                if component[neighbour] < 0:
                    component[neighbour] = num_components
                    queue[last] = neighbour
                    last += 1
        num_components += 1
    return component


@njit(parallel=True, cache=True)
def _distinct_counts(offsets, relations, chunks, num_relations):  # type: ignore[no-untyped-def]
    counts = np.zeros(len(offsets), np.int64)
    for chunk in prange(len(chunks) - 1):
        last_node = np.full(num_relations, -1, np.int32)
        for node in range(chunks[chunk], chunks[chunk + 1]):
            for edge in range(offsets[node], offsets[node + 1]):
                if last_node[relations[edge]] != node:
                    last_node[relations[edge]] = node
                    counts[node + 1] += 1
    return counts


@njit(parallel=True, cache=True)
def _distinct_values(offsets, relations, chunks, num_relations, set_offsets):  # type: ignore[no-untyped-def]
    values = np.empty(set_offsets[-1], np.int32)
    for chunk in prange(len(chunks) - 1):
        last_node = np.full(num_relations, -1, np.int32)
        for node in range(chunks[chunk], chunks[chunk + 1]):
            end = set_offsets[node]
            for edge in range(offsets[node], offsets[node + 1]):
                if last_node[relations[edge]] != node:
                    last_node[relations[edge]] = node
                    values[end] = relations[edge]
                    end += 1
            values[set_offsets[node] : end].sort()
    return values


def distinct_relations(adjacency: Adjacency) -> tuple[LongArray, IntArray]:
    """The set of outgoing relations of every node, ascending, as offsets and values."""
    chunks = adjacency.chunks()
    edges = (adjacency.offsets, adjacency.relations, chunks, adjacency.num_relations)
    set_offsets = np.cumsum(_distinct_counts(*edges))
    return set_offsets, _distinct_values(*edges, set_offsets)
