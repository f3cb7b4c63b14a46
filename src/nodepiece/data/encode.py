"""Encoding of names as ids."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nodepiece.data.blocks import Block
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names

STEP = 1 << 20  # facts processed at a time, to save memory
MAX_KEY = 2**63  # of int64


@dataclass(frozen=True, eq=False)
class EncodedFacts:
    """All facts of a file, duplicates included."""

    triples: IntArray  # (num_facts, 3)
    names: Names
    num_literals: int


def encode_facts(blocks: Iterable[Block]) -> EncodedFacts:
    """Facts by ids, which are given to names by first appearance: head, then tail, fact by fact.

    Each block is encoded separately, then the names of all blocks together, so that the text of a
    block can be freed after it is read. The ids do not depend on where blocks begin.
    """
    nodes: list[pa.Array] = []  # the names in each block's heads, in its tails, and so on
    relations: list[pa.Array] = []
    local_ids: list[list[IntArray]] = []  # per block: of heads, relations and tails
    num_literals = 0
    for block in blocks:
        columns = [c.dictionary_encode() for c in (block.heads, block.relations, block.tails)]
        head, relation, tail = (column.dictionary.cast(pa.large_string()) for column in columns)
        nodes += [head, tail]
        relations.append(relation)
        local_ids.append([column.indices.to_numpy() for column in columns])
        num_literals += block.num_literals
    triples = np.empty((sum(len(ids[0]) for ids in local_ids), 3), dtype=np.int32)
    relation_names = unify(relations, [ids[1:2] for ids in local_ids], triples, columns=[1])
    node_names = unify(nodes, [ids[0::2] for ids in local_ids], triples, columns=[0, 2])
    return EncodedFacts(triples, Names(node_names, relation_names), num_literals)


def unify(
    dictionaries: list[pa.Array],
    local_ids: list[list[IntArray]],
    triples: IntArray,
    *,
    columns: list[int],
) -> pa.LargeStringArray:
    """Write the final ids to `columns` of `triples`; returns the names.

    local_ids: for each block and column, positions in the dictionary of that block and column.
    """
    encoded = pa.chunked_array(dictionaries, pa.large_string()).dictionary_encode()
    if not encoded.num_chunks:
        return pa.array([], pa.large_string())
    mappings = iter([chunk.indices.to_numpy() for chunk in encoded.chunks])
    start = 0
    for block in local_ids:
        end = start + len(block[0])
        for column, ids in zip(columns, block, strict=True):
            triples[start:end, column] = next(mappings)[ids]
        start = end
    distinct = encoded.chunk(0).dictionary
    order = first_appearances(triples, columns, len(distinct))
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    for start in range(0, len(triples), STEP):
        for column in columns:
            part = triples[start : start + STEP, column]
            part[:] = rank[part]
    return without_null_bitmap(distinct.take(pa.array(order)))


def without_null_bitmap(column: pa.LargeStringArray) -> pa.LargeStringArray:
    _, offsets, text = column.buffers()
    return pa.LargeStringArray.from_buffers(len(column), offsets, text)


def first_appearances(triples: IntArray, columns: list[int], num_ids: int) -> LongArray:
    """The ids in the order in which they appear, reading `columns` fact by fact: (num_ids,)."""
    first = np.empty(num_ids, dtype=np.int64)
    for start in reversed(range(0, len(triples), STEP)):
        ids = triples[start : start + STEP, columns].ravel()
        position = start * len(columns) + np.arange(len(ids))
        first[ids[::-1]] = position[::-1]  # in reverse: the first appearance is written last
    return np.argsort(first)


def drop_duplicates(triples: IntArray, num_nodes: int, num_relations: int) -> IntArray:
    """Every fact once, at its first position.

    One sort finds the facts that occur more than once; there are usually few, or none, and only
    their positions are sorted.
    """
    keys = fact_keys(triples, num_nodes, num_relations)
    ordered = np.sort(keys)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(repeated):
        return triples
    places = positions_of(keys, repeated)
    places = places[np.argsort(keys[places], kind="stable")]
    again = places[1:][keys[places[1:]] == keys[places[:-1]]]
    return np.delete(triples, again, axis=0)


def positions_of(keys: LongArray, wanted: LongArray) -> LongArray:
    """The positions in `keys` of the `wanted` keys, which are sorted; ascending."""
    found = []
    for start in range(0, len(keys), STEP):
        part = keys[start : start + STEP]
        nearest = np.searchsorted(wanted, part).clip(max=len(wanted) - 1)
        found.append(start + np.flatnonzero(wanted[nearest] == part))
    return np.concatenate(found)


def fact_keys(triples: IntArray, num_nodes: int, num_relations: int) -> LongArray:
    """One number for every fact, different for different facts: (num_facts,)."""
    head, relation, tail = triples.T
    pair = head.astype(np.int64) * num_relations + relation
    if num_nodes * num_relations * num_nodes > MAX_KEY:
        pair = np.unique(pair, return_inverse=True)[1]  # fewer than the facts, so this fits
    pair *= num_nodes
    pair += tail
    return pair


def encode_like(graph: KnowledgeGraph, names: Names) -> tuple[IntArray, int]:
    """The facts of `graph` by the ids of `names`, and the number of facts with other names."""
    if graph.names is None:
        raise ValueError("a graph without names cannot be encoded by other names")
    node = ids_in(graph.names.nodes, names.nodes)
    relation = ids_in(graph.names.relations, names.relations)
    head, kind, tail = graph.triples.T
    triples = np.stack([node[head], relation[kind], node[tail]], axis=1)
    known = np.flatnonzero((triples >= 0).all(axis=1))
    return triples[known], len(triples) - len(known)


def ids_in(wanted: pa.LargeStringArray, names: pa.LargeStringArray) -> IntArray:
    """The position of each wanted name in `names`, -1 where it is not there."""
    return pc.fill_null(pc.index_in(wanted, value_set=names), -1).to_numpy()
