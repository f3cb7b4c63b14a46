"""The tokens of nodes that are not in the graph, from the stored ones of their neighbours."""

import numpy as np

from nodepiece.compiled import njit, prange
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.nearest import Distances
from nodepiece.graph.new_nodes import nearest_of_new
from nodepiece.tokenizer.context import sample_row
from nodepiece.tokenizer.token_rows import TokenRows
from nodepiece.tokenizer.tokens import NO_DISTANCE, TokenTable


def tokens_of_new(
    table: TokenTable,
    stored: tuple[IntArray, Distances],
    nodes: IntArray,
    first: LongArray,
    end: LongArray,
    left_out: LongArray,
    relations: IntArray,
    neighbours: IntArray,
) -> TokenRows:
    """The tokens of new nodes, each described by its edges to nodes of the table.

    stored: from `stored_anchors`; nodes: (num_new,) ids beyond the table; first, end, left_out:
    (num_new,) positions in `relations` and `neighbours`, as in `nearest_of_new`.
    """
    vocabulary, settings, salts = table.vocabulary, table.vocabulary.settings, table.salts
    if salts is None or settings.select != "nearest":
        raise InputError(
            "tokens of new nodes need a table of nearest anchors with its random salts; tokenize "
            'again with select = "nearest"'
        )
    nearest, distances = nearest_of_new(
        nodes,
        first,
        end,
        left_out,
        neighbours,
        stored,
        vocabulary.num_anchors,
        salt=salts.anchors if settings.ties == "per-node" else None,
    )
    context = np.full((len(nodes), table.relations_per_node), vocabulary.num_relations, np.int32)
    ascending = settings.relation_order == "ascending"
    edges = (first, end, left_out, relations)
    _sample(nodes, edges, vocabulary.num_relations, ascending, salts.relations, context)
    if not settings.distances:
        distances[:] = NO_DISTANCE
    anchors, tokens = vocabulary.anchor_tokens(nearest), vocabulary.relation_tokens(context)
    return TokenRows(nodes, anchors, distances, tokens)


@njit(parallel=True, cache=True)
def _sample(nodes, edges, num_relations, ascending, salt, rows):  # type: ignore[no-untyped-def]
    first, end, left_out, relations = edges
    num_chunks = max(1, min(64, len(nodes)))
    for chunk in prange(num_chunks):
        last_node = np.full(num_relations, -1, np.int64)
        found = np.empty(num_relations, np.int32)
        for i in range(chunk, len(nodes), num_chunks):
            num_found = 0
            for place in range(first[i], end[i]):
                if place != left_out[i] and last_node[relations[place]] != i:
                    last_node[relations[place]] = i
                    found[num_found] = relations[place]
                    num_found += 1
            distinct = found[:num_found]
            distinct.sort()
            sample_row(distinct, nodes[i], salt, ascending, rows[i])
