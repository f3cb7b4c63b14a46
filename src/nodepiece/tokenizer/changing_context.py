"""The relational context of nodes whose edges come and go."""

import numpy as np
from numba import njit

from nodepiece.graph.arrays import IntArray
from nodepiece.graph.changing_adjacency import ChangingAdjacency
from nodepiece.tokenizer.context import sample_row
from nodepiece.tokenizer.tokens import Salts
from nodepiece.tokenizer.vocabulary import Vocabulary


def context_of(
    nodes: IntArray, adjacency: ChangingAdjacency, vocabulary: Vocabulary, salts: Salts
) -> IntArray:
    """The m relations of some nodes as tokens: (num_nodes, m), what `tokenize` would sample."""
    settings = vocabulary.settings
    rows = np.full((len(nodes), settings.relations_per_node), vocabulary.num_relations, np.int32)
    _sample(
        nodes,
        (adjacency.start, adjacency.count, adjacency.relations),
        np.zeros(adjacency.num_relations, np.bool_),
        settings.relation_order == "ascending",
        salts.relations,
        rows,
    )
    return vocabulary.relation_tokens(rows)


@njit(cache=True)
def _sample(nodes, edges, is_there, ascending, salt, rows):  # type: ignore[no-untyped-def]
    start, count, relations = edges
    found = np.empty(len(is_there), np.int32)
    for i in range(len(nodes)):
        node, num_found = nodes[i], 0
        for place in range(start[node], start[node] + count[node]):
            if not is_there[relations[place]]:
                is_there[relations[place]] = True
                found[num_found] = relations[place]
                num_found += 1
        distinct = found[:num_found]
        distinct.sort()
        is_there[distinct] = False
        sample_row(distinct, node, salt, ascending, rows[i])
