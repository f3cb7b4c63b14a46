"""The files of a token table written in blocks of nodes: the table is never in memory as a whole.

The bytes are those that `save_tokens` writes for the table of `tokenize`. Anchors and relations are
written one after the other, so that neighbours and relations of edges are not in memory at once.
"""

from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nodepiece.compiled import njit, prange
from nodepiece.graph.arrays import LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.nearest import NearestSources, find_nearest
from nodepiece.graph.neighbours import Neighbours, cuts_of_offsets, edge_offsets, place_edges
from nodepiece.tokenizer.array_file import array_file
from nodepiece.tokenizer.context import RelationSets
from nodepiece.tokenizer.statistics import add_anchor_hashes, add_relation_hashes
from nodepiece.tokenizer.tokens import NO_DISTANCE, Salts, assign_anchors
from nodepiece.tokenizer.vocabulary import Vocabulary

BLOCK_NODES = 1 << 18  # written at a time

Hashes = NDArray[np.uint64]  # (num_nodes,) of all pieces of a node, as `row_hashes`


def assign_in_few_bytes(
    neighbours: Neighbours, vocabulary: Vocabulary, salts: Salts
) -> NearestSources:
    """The anchors of every node and their distances, as `assign_anchors` chooses them."""
    settings = vocabulary.settings
    if settings.select == "nearest":
        salt = salts.anchors if settings.ties == "per-node" else None
        return find_nearest(neighbours, vocabulary.anchors, settings.anchors_per_node, salt=salt)
    chosen, distances = assign_anchors(neighbours, vocabulary, salts.anchors)
    return NearestSources(chosen, distances, np.count_nonzero(chosen >= 0, axis=1))


def write_anchors(
    found: NearestSources,
    vocabulary: Vocabulary,
    folder: Path,
    hashes: Hashes,
    *,
    part_bytes: int | None = None,
) -> None:
    """Write anchors.npy and distances.npy; what they add to the hashes is added."""
    num_nodes, k = found.sources.shape
    with (
        array_file(folder / "anchors.npy", (num_nodes, k), np.int32, part_bytes) as append_anchors,
        array_file(
            folder / "distances.npy", (num_nodes, k), np.int16, part_bytes
        ) as append_distances,
    ):
        for start in range(0, num_nodes, BLOCK_NODES):
            size = min(BLOCK_NODES, num_nodes - start)
            anchors, distances = np.empty((size, k), np.int32), np.empty((size, k), np.int16)
            _token_rows(
                found.sources[start : start + size],
                found.distances[start : start + size],
                found.num_found[start : start + size],
                vocabulary.padding,
                vocabulary.settings.distances,
                anchors,
                distances,
            )
            add_anchor_hashes(anchors, distances, True, hashes[start : start + size])
            append_anchors(anchors)
            append_distances(distances)


@njit(parallel=True, cache=True)
def _token_rows(sources, hops, num_found, padding, keep_distances, anchors, distances):  # type: ignore[no-untyped-def]
    """The rows of both tables for some nodes; `vocabulary.anchor_tokens` has the same rules."""
    for i in prange(len(anchors)):
        found = num_found[i]
        fill = padding if found > 0 else padding + 1  # [PAD] or [DISCONNECTED]
        for slot in range(anchors.shape[1]):
            is_there = slot < found
            anchors[i, slot] = sources[i, slot] if is_there else fill
            distances[i, slot] = hops[i, slot] if is_there and keep_distances else NO_DISTANCE


def write_relations(
    graph: KnowledgeGraph,
    vocabulary: Vocabulary,
    salts: Salts,
    folder: Path,
    hashes: Hashes,
    *,
    part_bytes: int | None = None,
) -> None:
    """Write relations.npy and the relation sets; what they add to the hashes is added."""
    settings, num_nodes = vocabulary.settings, vocabulary.num_nodes
    m = settings.relations_per_node
    offsets, values, num_distinct = _distinct_in_place(graph)
    total = int(num_distinct.sum())
    with ExitStack() as stack:
        append_rows, append_offsets, append_values = (
            stack.enter_context(array_file(folder / f"{name}.npy", shape, dtype, part_bytes))
            for name, shape, dtype in (
                ("relations", (num_nodes, m), np.int32),
                ("relation_sets_offsets", (num_nodes + 1,), np.int64),
                ("relation_sets_values", (total,), np.int32),
            )
        )
        append_offsets(np.zeros(1, np.int64))
        written = 0
        for start in range(0, num_nodes, BLOCK_NODES):
            rows = slice(start, min(start + BLOCK_NODES, num_nodes))
            block = np.concatenate([[0], np.cumsum(num_distinct[rows], dtype=np.int64)])
            sets = RelationSets(block, _gather(offsets[rows], num_distinct[rows], values, block))
            sample = sets.sample_by(
                salts.relations,
                m,
                vocabulary.num_relations,
                ascending=settings.relation_order == "ascending",
                first_node=start,
            )
            tokens = vocabulary.relation_tokens(sample)
            add_relation_hashes(tokens, hashes[rows])
            append_rows(tokens)
            append_offsets(block[1:] + written)
            append_values(sets.values)
            written += int(block[-1])


def _distinct_in_place(
    graph: KnowledgeGraph,
) -> tuple[LongArray, NDArray[np.integer], NDArray[np.int32]]:
    """The distinct relations of every node, ascending, in front of the place of all its relations.

    Returns offsets of the places, the values, and how many are distinct: (num_nodes,).
    """
    num_kinds = 2 * graph.num_relations
    offsets = edge_offsets(graph)
    size = 2 * graph.num_triples
    values: NDArray[np.integer] = np.empty(size, np.int32 if num_kinds > 2**16 else np.uint16)
    place_edges(graph, offsets, _place_relations, values, graph.num_relations)
    num_distinct = np.empty(graph.num_nodes, np.int32)
    _keep_distinct(offsets, values, cuts_of_offsets(offsets), num_kinds, num_distinct)
    return offsets, values, num_distinct


@njit(parallel=True, cache=True)
def _place_relations(triples, parts, free, relations, num_direct):  # type: ignore[no-untyped-def]
    for part in prange(len(parts) - 1):
        first, end = parts[part], parts[part + 1]
        for i in range(len(triples)):
            head, relation, tail = triples[i, 0], triples[i, 1], triples[i, 2]
            if first <= head < end:
                relations[free[head + 1]] = relation
                free[head + 1] += 1
            if first <= tail < end:
                relations[free[tail + 1]] = relation + num_direct
                free[tail + 1] += 1


@njit(parallel=True, cache=True)
def _keep_distinct(offsets, values, chunks, num_kinds, num_distinct):  # type: ignore[no-untyped-def]
    for chunk in prange(len(chunks) - 1):
        last_node = np.full(num_kinds, -1, np.int32)
        for node in range(chunks[chunk], chunks[chunk + 1]):
            first = offsets[node]
            end = first
            for edge in range(first, offsets[node + 1]):
                relation = values[edge]
                if last_node[relation] != node:
                    last_node[relation] = node
                    values[end] = relation
                    end += 1
            values[first:end].sort()
            num_distinct[node] = end - first


@njit(parallel=True, cache=True)
def _gather(places, num_distinct, values, block):  # type: ignore[no-untyped-def]
    gathered = np.empty(block[-1], np.int32)
    for i in prange(len(places)):
        for position in range(num_distinct[i]):
            gathered[block[i] + position] = values[places[i] + position]
    return gathered
