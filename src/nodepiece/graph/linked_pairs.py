"""Pairs of nodes with edges between them, and which relations such pairs have in common."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array, csr_array

from nodepiece.graph.arrays import FloatArray, IntArray, LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses


@dataclass(frozen=True, eq=False)
class LinkedPairs:
    """Every ordered pair of nodes that an edge leads from and to, with the relations of its edges.

    Facts count with their inverses, so a pair is there in both directions.
    """

    heads: IntArray  # (num_pairs,)
    tails: IntArray  # (num_pairs,)
    starts: LongArray  # (num_pairs,) where the relations of a pair start
    relations: IntArray  # (num_edges,) from head to tail, inverses included
    degrees: LongArray  # (num_nodes,) the number of edges of a node, inverses included

    def __len__(self) -> int:
        return len(self.heads)


def linked_pairs(graph: KnowledgeGraph) -> LinkedPairs:
    """All linked pairs of a graph, sorted by head and tail. Time is that of sorting the edges."""
    head, relation, tail = with_inverses(graph).T
    code = head.astype(np.int64) * graph.num_nodes + tail
    order = np.argsort(code, kind="stable")
    code = code[order]
    starts = np.flatnonzero(np.diff(code, prepend=-1))
    heads, tails = np.divmod(code[starts], max(1, graph.num_nodes))
    return LinkedPairs(
        heads.astype(np.int32),
        tails.astype(np.int32),
        starts,
        relation[order],
        np.bincount(head, minlength=graph.num_nodes),
    )


def confidences(linked: LinkedPairs, num_relations: int) -> csc_array:
    """Of the pairs with one relation, the share that has another one: (num_relations,) twice.

    Element (one, other) is the confidence of the rule (head, one, tail) -> (head, other, tail);
    num_relations counts inverses.
    """
    ends = np.append(linked.starts, len(linked.relations))
    pairs = np.repeat(np.arange(len(linked)), np.diff(ends))
    ones = np.ones(len(pairs), np.float64)
    has = csr_array((ones, (pairs, linked.relations)), shape=(len(linked), num_relations))
    has.data[:] = 1.0  # a fact that is stated twice counts once
    together = csc_array(has.T @ has)
    number = np.maximum(together.diagonal(), 1.0)
    return csc_array(together.multiply(1 / number[:, None]))


def best_confidence(linked: LinkedPairs, of_relations: FloatArray) -> FloatArray:
    """The largest value among the relations of each pair: (num_relations,) -> (num_pairs,)."""
    if not len(linked):
        return np.empty(0)
    return np.maximum.reduceat(of_relations[linked.relations], linked.starts)
