"""The relational context of nodes whose edges change."""

import numpy as np

from nodepiece.compiled import njit
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.changed_edges import ChangedEdges, row_of
from nodepiece.tokenizer.context import sample_row
from nodepiece.tokenizer.tokens import Salts
from nodepiece.tokenizer.vocabulary import Vocabulary


def context_of(
    nodes: IntArray, edges: ChangedEdges, vocabulary: Vocabulary, salts: Salts
) -> IntArray:
    """The m relations of some nodes as tokens, sampled as by `tokenize`: (num_nodes, m)."""
    settings = vocabulary.settings
    rows = np.full((len(nodes), settings.relations_per_node), vocabulary.num_relations, np.int32)
    _sample(
        nodes,
        edges.relation_rows,
        np.zeros(edges.num_relations, np.bool_),
        settings.relation_order == "ascending",
        salts.relations,
        rows,
    )
    return vocabulary.relation_tokens(rows)


def nodes_with_other_relations(edges: ChangedEdges) -> IntArray:
    """Nodes whose set of relations changed, and possibly others: ascending ids.

    A relation is new to a node if all its edges there were added, and removed if none is left.
    For most nodes a few edges are enough to exclude both.
    """
    kinds = edges.num_relations
    new, num_new = np.unique(_node_relation_keys(edges.added, kinds), return_counts=True)
    gone = np.unique(_node_relation_keys(edges.removed, kinds))
    keys, at_most = np.concatenate([new, gone]), np.concatenate([num_new, 0 * gone])
    return np.unique(_nodes_with_few_edges(edges.relation_rows, keys, at_most, kinds))


def _node_relation_keys(facts: IntArray, num_relations: int) -> LongArray:
    """Both ends of facts, each with the relation that leaves it, as node * relations + relation."""
    head, relation, tail = facts.T.astype(np.int64)
    forth, back = head * num_relations, tail * num_relations + num_relations // 2
    return np.concatenate([forth + relation, back + relation])


@njit(cache=True)
def _nodes_with_few_edges(edges, keys, at_most, num_relations):  # type: ignore[no-untyped-def]
    """The nodes of the (node, relation) keys that have at most a given number of edges."""
    nodes, num_nodes = np.empty(len(keys), np.int32), 0
    for i in range(len(keys)):
        node, relation = keys[i] // num_relations, keys[i] % num_relations
        relations, place, end = row_of(edges, node)
        num_found = 0
        while place < end and num_found <= at_most[i]:
            num_found += relations[place] == relation
            place += 1
        if num_found <= at_most[i]:
            nodes[num_nodes] = node
            num_nodes += 1
    return nodes[:num_nodes]


@njit(cache=True)
def _sample(nodes, edges, is_there, ascending, salt, rows):  # type: ignore[no-untyped-def]
    found = np.empty(len(is_there), np.int32)
    for i in range(len(nodes)):
        node, num_found = nodes[i], 0
        relations, first, end = row_of(edges, node)
        for place in range(first, end):
            if not is_there[relations[place]]:
                is_there[relations[place]] = True
                found[num_found] = relations[place]
                num_found += 1
        distinct = found[:num_found]
        distinct.sort()
        is_there[distinct] = False
        sample_row(distinct, node, salt, ascending, rows[i])
