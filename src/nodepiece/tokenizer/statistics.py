"""Statistics of a token table: distances, shared hashes, use of anchors, memory saved."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nodepiece.compiled import njit, prange
from nodepiece.graph.arrays import LongArray
from nodepiece.graph.hashing import mix
from nodepiece.tokenizer.tokens import NO_DISTANCE, TokenTable

BYTES_PER_PARAMETER = 4  # float32
HASH_SALT = np.uint64(0x2545F4914F6CDD1D)  # of `row_hashes`


@dataclass(frozen=True)
class TokenStatistics:
    """Counts and means over all nodes of a token table."""

    num_nodes: int
    num_relations: int  # without inverses
    num_anchors: int
    anchors_per_node: int  # k
    relations_per_node: int  # m
    distance_histogram: dict[int, int]  # hops -> slots
    mean_distance: float | None  # over all slots that hold an anchor
    mean_nearest_distance: float | None  # over nodes that reach an anchor
    max_distance: int | None
    num_disconnected: int  # nodes that reach no anchor
    num_short_of_anchors: int  # nodes with fewer than k anchors, the disconnected included
    mean_relations: float  # distinct outgoing relations of a node, before sampling
    max_relations: int
    distinct_anchor_sets: int
    distinct_with_distances: int  # by anchors and distances
    distinct_hashes: int  # by anchors, distances and relations
    top_anchor_use: float | None  # share of all slots that hold one of the 1 % most used anchors
    unused_anchors: int

    def __repr__(self) -> str:
        far = f"{self.mean_distance:.2f} hops away" if self.mean_distance else "no distances"
        return (
            f"TokenStatistics({self.num_nodes:,} nodes, {self.num_anchors:,} anchors, "
            f"{self.anchors_per_node} a node, {far}; {self.distinct_hashes:,} different hashes)"
        )

    @property
    def num_top_anchors(self) -> int:
        """The number of anchors in the top 1 %, at least one."""
        return one_percent(self.num_anchors)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class MemoryComparison:
    """Bytes of a trained vector for every node, against a vocabulary (the paper's first table)."""

    dim: int
    full_embedding: int  # num_nodes * dim
    vocabulary_embedding: int  # (anchors, relations, specials, distances) * dim
    token_table: int  # integers on disk, never trained

    @property
    def ratio(self) -> float:
        return self.full_embedding / self.vocabulary_embedding

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio}


def describe_tokens(table: TokenTable) -> TokenStatistics:
    """The statistics of a table, in a few passes over it; memory is a few words a node."""
    table.check()
    vocabulary, distances = table.vocabulary, table.distances
    per_node = (table.anchors < vocabulary.num_anchors).sum(axis=1)
    max_distance = int(distances.max(initial=NO_DISTANCE))
    by_hops = count_values(distances, max_distance + 1)
    nearest_by_hops = count_values(distances[:, :1], max_distance + 1)
    num_relations = np.diff(table.relation_sets.offsets)
    use = count_values(table.anchors, vocabulary.num_anchors)
    top = one_percent(vocabulary.num_anchors)
    return TokenStatistics(
        num_nodes=table.num_nodes,
        num_relations=vocabulary.num_relations // 2,
        num_anchors=vocabulary.num_anchors,
        anchors_per_node=table.anchors_per_node,
        relations_per_node=table.relations_per_node,
        distance_histogram={hops: int(slots) for hops, slots in enumerate(by_hops) if slots},
        mean_distance=mean_hops(by_hops),
        mean_nearest_distance=mean_hops(nearest_by_hops),
        max_distance=max_distance if len(by_hops) else None,
        num_disconnected=int((per_node == 0).sum()) if table.anchors_per_node else 0,
        num_short_of_anchors=int((per_node < table.anchors_per_node).sum()),
        mean_relations=float(num_relations.mean()) if len(num_relations) else 0.0,
        max_relations=int(num_relations.max(initial=0)),
        distinct_anchor_sets=count_distinct(table, use_distances=False, use_relations=False),
        distinct_with_distances=count_distinct(table, use_distances=True, use_relations=False),
        distinct_hashes=count_distinct(table, use_distances=True, use_relations=True),
        top_anchor_use=float(np.sort(use)[::-1][:top].sum() / use.sum()) if use.sum() else None,
        unused_anchors=int((use == 0).sum()),
    )


def one_percent(number: int) -> int:
    return max(1, round(number / 100))


def mean_hops(by_hops: LongArray) -> float | None:
    """The mean distance; `by_hops` has the number of distances 0, 1, 2, ..."""
    total = by_hops.sum()
    return float((by_hops * np.arange(len(by_hops))).sum() / total) if total else None


@njit(cache=True)
def count_values(table, size):  # type: ignore[no-untyped-def]
    """The number of occurrences of 0, ..., size - 1 in a table of any shape: (size,)."""
    counts = np.zeros(size, np.int64)
    for value in table.flat:
        if 0 <= value < size:
            counts[value] += 1
    return counts


def compare_memory(table: TokenTable, dim: int) -> MemoryComparison:
    max_distance = int(table.distances.max(initial=NO_DISTANCE))
    num_rows = len(table.vocabulary) + max_distance + 2  # distances 0..max and none
    return MemoryComparison(
        dim,
        table.num_nodes * dim * BYTES_PER_PARAMETER,
        num_rows * dim * BYTES_PER_PARAMETER,
        table.anchors.nbytes + table.distances.nbytes + table.relations.nbytes,
    )


def count_distinct(table: TokenTable, *, use_distances: bool, use_relations: bool) -> int:
    """The number of different sets of pieces that nodes have."""
    hashes = row_hashes(table, use_distances=use_distances, use_relations=use_relations)
    hashes.sort()  # np.unique takes some 15 times as long
    return int((hashes[1:] != hashes[:-1]).sum()) + min(1, len(hashes))


def row_hashes(
    table: TokenTable, *, use_distances: bool, use_relations: bool
) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """64 bits for the set of pieces of every node: (num_nodes,).

    Two different sets among N agree by accident with probability N^2 / 2^65: about one in six
    million at 2.5 million nodes.
    """
    hashes = np.zeros(table.num_nodes, np.uint64)
    add_anchor_hashes(table.anchors, table.distances, use_distances, hashes)
    if use_relations:
        add_relation_hashes(table.relations, hashes)
    return hashes


@njit(parallel=True, cache=True)
def add_anchor_hashes(anchors, distances, use_distances, hashes):  # type: ignore[no-untyped-def]
    """Add the hash of the anchors of each row, and of their distances, to the hash of the row."""
    for row in prange(len(anchors)):
        total = np.uint64(0)
        for slot in range(anchors.shape[1]):
            hops = distances[row, slot] + 2 if use_distances else 0
            total += mix(HASH_SALT, anchors[row, slot], hops)
        hashes[row] += total


@njit(parallel=True, cache=True)
def add_relation_hashes(relations, hashes):  # type: ignore[no-untyped-def]
    """Add the hash of the relations of each row to the hash of the row."""
    for row in prange(len(relations)):
        total = np.uint64(0)
        for slot in range(relations.shape[1]):
            total += mix(HASH_SALT, relations[row, slot], 1 << 20)
        hashes[row] += total


def count_repeated(hashes: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> int:
    """The number of hashes that occur more than once; they are sorted in place."""
    hashes.sort()
    is_same = hashes[1:] == hashes[:-1]
    is_first_of_several = np.count_nonzero(is_same[1:] & ~is_same[:-1]) + is_same[:1].sum()
    return int(np.count_nonzero(is_same) + is_first_of_several)
