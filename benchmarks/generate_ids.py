"""Very large scale-free graphs as a Parquet file of ids, written in blocks within little memory.

    python -m benchmarks.generate_ids --nodes 86000000 --facts 338586276 -o graph.parquet

Like the graphs of `benchmarks.generate`: heads and tails by power laws, one hub, relations by
Zipf's law, every node occurs, facts in random order, hubs with random ids. Each fact is computed
from its number by a hash, so neither the size of blocks nor the number of threads matters. Some
facts in ten thousand are drawn twice; readers keep them once.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.generate import HEAD_DECAY, HUB_SHARE, decay_of_top_share

from nodepiece.compiled import njit, prange
from nodepiece.errors import InputError
from nodepiece.files import atomic_file
from nodepiece.graph.hashing import mix

BLOCK_FACTS = 1 << 22
NUM_RELATIONS = 535
SCHEMA = pa.schema([("head", pa.int32()), ("relation", pa.int16()), ("tail", pa.int32())])
MULTIPLIERS = (0x9E3779B1, 0x85EBCA77)  # primes: ids of ranks are multiples of them


def write_ids(
    num_nodes: int, num_facts: int, path: Path, *, num_relations: int = NUM_RELATIONS, seed: int = 0
) -> None:
    """Write facts over ids below `num_nodes`; each node is the head of at least one."""
    if not 2 <= num_nodes <= num_facts:
        raise InputError(f"{num_facts} facts cannot reach {num_nodes} nodes; ask for more facts")
    decays = (HEAD_DECAY, decay_of_top_share(HUB_SHARE, num_nodes))
    cumulative = np.cumsum(1 / np.arange(1, num_relations + 1))
    with (
        atomic_file(path) as partial,
        pq.ParquetWriter(partial, SCHEMA, compression="none", use_dictionary=False) as writer,
    ):
        for start in range(0, num_facts, BLOCK_FACTS):
            size = min(BLOCK_FACTS, num_facts - start)
            columns = tuple(np.empty(size, kind) for kind in (np.int32, np.int16, np.int32))
            sizes = (start, num_facts, num_nodes)
            _draw(*columns, sizes, decays, cumulative / cumulative[-1], np.uint64(seed))
            writer.write_batch(pa.record_batch([pa.array(one) for one in columns], schema=SCHEMA))


@njit(parallel=True, cache=True)
def _draw(heads, relations, tails, sizes, decays, cumulative, seed):  # type: ignore[no-untyped-def]
    start, num_facts, num_nodes = sizes
    for i in prange(len(heads)):
        fact = start + i
        before = fact * num_nodes // num_facts
        if (fact + 1) * num_nodes // num_facts > before:
            head = _id_of(before, num_nodes, 0)  # the fact that each node has at least
        else:
            head = _id_of(_rank(_uniform(seed, fact, 0), num_nodes, decays[0]), num_nodes, 0)
        rank = _rank(_uniform(seed, fact, 1), num_nodes, decays[1])
        tail = _id_of(rank, num_nodes, 1)
        if tail == head:
            tail = _id_of((rank + 1) % num_nodes, num_nodes, 1)
        heads[i] = head
        tails[i] = tail
        relation = np.searchsorted(cumulative, _uniform(seed, fact, 2), side="right")
        relations[i] = min(relation, len(cumulative) - 1)


@njit(cache=True, inline="always")
def _uniform(seed, fact, what):  # type: ignore[no-untyped-def]
    """A number in [0, 1)."""
    return np.float64(mix(seed, fact, what) >> np.uint64(11)) * 2.0**-53


@njit(cache=True, inline="always")
def _rank(uniform, count, decay):  # type: ignore[no-untyped-def]
    """A rank below `count`, rank r in proportion to (r + 1) ** -decay: the integral, inverted."""
    power = 1 - decay
    if abs(power) < 1e-9:
        power = 1e-9
    position = np.log1p(uniform * np.expm1(power * np.log1p(count))) / power
    return min(np.int64(np.expm1(position)), count - 1)


@njit(cache=True, inline="always")
def _id_of(rank, num_nodes, which):  # type: ignore[no-untyped-def]
    """A different id for each rank, in an order without meaning."""
    multiplier = MULTIPLIERS[0] if which == 0 else MULTIPLIERS[1]
    return (rank * multiplier + 12345 * (which + 1)) % num_nodes


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a very large graph as Parquet of ids.")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--facts", type=int, required=True)
    parser.add_argument("--relations", type=int, default=NUM_RELATIONS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    sizes = {"num_relations": options.relations, "seed": options.seed}
    write_ids(options.nodes, options.facts, options.out, **sizes)
    print(f"wrote {options.out}: {options.facts:,} facts about {options.nodes:,} nodes")


if __name__ == "__main__":
    main()
