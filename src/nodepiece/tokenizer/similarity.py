"""Similarity of nodes: the pieces that they have in common."""

import numpy as np

from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.nearest import Distances
from nodepiece.tokenizer.statistics import count_repeated, row_hashes
from nodepiece.tokenizer.tokens import TokenTable


def count_sharing(table: TokenTable) -> int:
    """The number of nodes with exactly the same pieces as some other node."""
    hashes = row_hashes(table, use_distances=True, use_relations=True)
    return count_repeated(hashes)


def nodes_sharing(table: TokenTable, node: int) -> list[int]:
    """The other nodes with exactly the same pieces as `node`."""
    hashes = row_hashes(table, use_distances=True, use_relations=True)
    same = np.flatnonzero(hashes == hashes[node])
    return [int(other) for other in same if other != node]


def shared_pieces(table: TokenTable, node: int) -> IntArray:
    """The number of pieces that every node has in common with `node`: (num_nodes,).

    An anchor is the same piece only at the same distance; [PAD] and [DISCONNECTED] do not count.
    Computed slot by slot, so that memory is a few words a node.
    """
    table.check()
    is_anchor = table.anchors[node] < table.vocabulary.num_anchors
    anchors = anchor_distance_keys(table.anchors[node], table.distances[node])[is_anchor]
    relations = table.relations[node][table.relations[node] < table.vocabulary.padding]
    shared = np.zeros(table.num_nodes, np.int32)
    for slot in range(table.anchors_per_node):
        shared += np.isin(
            anchor_distance_keys(table.anchors[:, slot], table.distances[:, slot]), anchors
        )
    for slot in range(table.relations_per_node):
        shared += np.isin(table.relations[:, slot], relations)
    return shared


def anchor_distance_keys(anchors: IntArray, distances: Distances) -> LongArray:
    """One number for each pair of an anchor and its distance, an int16 of at least -1."""
    return (anchors.astype(np.int64) << 16) + distances + 1
