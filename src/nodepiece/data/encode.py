"""Encoding of names as ids."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nodepiece.compiled import njit
from nodepiece.data.blocks import Block
from nodepiece.data.fact_store import FactStore, selected
from nodepiece.data.id_table import IdTable
from nodepiece.data.name_table import NameTable
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.fact_blocks import fact_blocks
from nodepiece.graph.hashing import mix
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names

FILTER_BITS = 1 << 24  # bytes of a table that shows which facts are stated once
MAX_KEY = 2**63  # of int64


@dataclass(frozen=True, eq=False)
class EncodedFacts:
    """All facts of a file, duplicates included."""

    triples: IntArray  # (num_facts, 3)
    names: Names
    num_literals: int


def encode_facts(
    blocks: Iterable[Block],
    *,
    largest: tuple[int, int] | None = None,
    spill: Path | None = None,
) -> EncodedFacts:
    """Facts by ids, which are given to names by first appearance: head, then tail, fact by fact.

    Each block is encoded as it is read; the ids do not depend on where blocks begin. `largest`: the
    largest node and the largest relation of blocks of integers; None: names are text. `spill` is a
    folder for facts and names of integers, which are then mapped and not held in memory.
    """
    nodes, relations = (
        NameTable() if largest is None else IdTable(largest[place]) for place in (0, 1)
    )
    facts, num_literals = FactStore(spill and spill / "facts"), 0
    for block in blocks:
        head, tail = nodes.encode(block.heads, block.tails)
        (relation,) = relations.encode(block.relations)
        facts.append(np.stack([head, relation, tail], axis=1))
        num_literals += block.num_literals
    pa.default_memory_pool().release_unused()  # of the blocks
    names = Names(names_of(nodes, spill), names_of(relations, None))
    return EncodedFacts(facts.finish(), names, num_literals)


def names_of(table: NameTable | IdTable, spill: Path | None) -> pa.LargeStringArray:
    if isinstance(table, NameTable):
        return table.names()
    return table.names(spill and spill / "nodes")


def drop_duplicates(
    triples: IntArray, num_nodes: int, num_relations: int, *, spill: Path | None = None
) -> IntArray:
    """Every fact once, at its first position.

    One sort finds the facts that occur more than once; there are usually few, or none, and only
    these are looked for. With `spill`, a folder, the facts that are left are mapped from a file.
    """
    if num_nodes * num_relations * num_nodes > MAX_KEY:
        return drop_duplicates_by_hash(triples, spill)
    repeated = repeated_keys(triples, lambda block: fact_keys(block, num_nodes, num_relations))
    if not len(repeated):
        return triples
    is_seen, bits = np.zeros(len(repeated), np.bool_), np.zeros(FILTER_BITS, np.bool_)
    _fill(bits, repeated)

    def stated_before(block: IntArray) -> IntArray:
        keys = fact_keys(block, num_nodes, num_relations)
        return _stated_before(keys, repeated, bits, is_seen)

    return selected(triples, stated_before, spill and spill / "distinct")


def repeated_keys(triples: IntArray, keys_of: Callable[[IntArray], LongArray]) -> LongArray:
    """The keys that several facts have, ascending. `keys_of`: those of a block of facts."""
    keys, start = np.empty(len(triples), np.int64), 0
    for block in fact_blocks(triples):
        keys[start : start + len(block)] = keys_of(block)
        start += len(block)
    keys.sort()
    found: LongArray = _repeated(keys)
    return found


@njit(cache=True)
def _repeated(keys):  # type: ignore[no-untyped-def]
    """The distinct values that occur more than once among sorted keys."""
    number = 0
    for i in range(1, len(keys)):
        number += keys[i] == keys[i - 1] and (i == 1 or keys[i - 1] != keys[i - 2])
    repeated = np.empty(number, np.int64)
    number = 0
    for i in range(1, len(keys)):
        if keys[i] == keys[i - 1] and (i == 1 or keys[i - 1] != keys[i - 2]):
            repeated[number] = keys[i]
            number += 1
    return repeated


@njit(cache=True, inline="always")
def _bit(key):  # type: ignore[no-untyped-def]
    return np.int64(mix(np.uint64(0), key, 0) % np.uint64(FILTER_BITS))


@njit(cache=True)
def _fill(bits, repeated):  # type: ignore[no-untyped-def]
    for key in repeated:
        bits[_bit(key)] = True


@njit(cache=True)
def _stated_before(keys, repeated, bits, is_seen):  # type: ignore[no-untyped-def]
    """Positions of repeated keys that were seen before; bits exclude most others at once."""
    found, number = np.empty(len(keys), np.int64), 0
    for i in range(len(keys)):
        if not bits[_bit(keys[i])]:
            continue
        place = np.searchsorted(repeated, keys[i])
        if place < len(repeated) and repeated[place] == keys[i]:
            if is_seen[place]:
                found[number] = i
                number += 1
            is_seen[place] = True
    return found[:number]


@njit(cache=True)
def _stated_alike(facts, hashes, repeated, bits, is_seen, first, num_collisions):  # type: ignore[no-untyped-def]
    """As `_stated_before`, by hashes; `first` gets the first fact of each, others are counted."""
    found, number = np.empty(len(hashes), np.int64), 0
    for i in range(len(hashes)):
        if not bits[_bit(hashes[i])]:
            continue
        place = np.searchsorted(repeated, hashes[i])
        if place == len(repeated) or repeated[place] != hashes[i]:
            continue
        if not is_seen[place]:
            is_seen[place] = True
            first[place] = facts[i]
        elif (first[place] == facts[i]).all():
            found[number] = i
            number += 1
        else:
            num_collisions[0] += 1
    return found[:number]


def drop_duplicates_by_hash(triples: IntArray, spill: Path | None, salt: int = 0) -> IntArray:
    """Every fact once, where head, relation and tail together do not fit into 64 bits.

    Facts are sorted by a hash, in 8 bytes each. Those with a hash that occurs more than once are
    compared; should two different ones have the same hash, all is done again with another salt.
    """
    repeated = repeated_keys(triples, lambda block: _hashes(block, salt))
    if not len(repeated):
        return triples
    is_seen, bits = np.zeros(len(repeated), np.bool_), np.zeros(FILTER_BITS, np.bool_)
    _fill(bits, repeated)
    first = np.empty((len(repeated), 3), np.int32)  # the first fact with each hash
    num_collisions = np.zeros(1, np.int64)

    def stated_before(block: IntArray) -> IntArray:
        hashes = _hashes(block, salt)
        return _stated_alike(block, hashes, repeated, bits, is_seen, first, num_collisions)

    kept = selected(triples, stated_before, spill and spill / "distinct")
    if num_collisions[0]:
        return drop_duplicates_by_hash(triples, spill, salt + 1)
    return kept


@njit(cache=True)
def _hashes(triples, salt):  # type: ignore[no-untyped-def]
    hashes = np.empty(len(triples), np.int64)
    for i in range(len(triples)):
        pair = mix(np.uint64(salt), triples[i, 0], triples[i, 1])
        hashes[i] = np.int64(mix(pair, triples[i, 2], 0))
    return hashes


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
