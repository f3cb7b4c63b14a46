"""Tokens of new nodes from those of their neighbours, against tokenizing the graph with them."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.tokenizer.new_nodes import tokens_of_new
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.token_rows import TokenRows
from nodepiece.tokenizer.tokens import TokenTable, stored_anchors, tokenize, tokenize_by
from nodepiece.tokenizer.vocabulary import fit_vocabulary

NUM_NODES, NUM_RELATIONS = 25, 3


def random_graph(rng: np.random.Generator) -> KnowledgeGraph:
    limits = (NUM_NODES, NUM_RELATIONS, NUM_NODES)
    facts = rng.integers(limits, size=(int(rng.integers(1, 60)), 3), dtype=np.int32)
    return KnowledgeGraph(np.unique(facts, axis=0), NUM_NODES, NUM_RELATIONS)


def new_rows(
    graph: KnowledgeGraph, table: TokenTable, edges: IntArray, left_out: list[int]
) -> TokenRows:
    """One new node for each of `left_out`, all with the same id and edges but for that one."""
    number = len(left_out)
    nodes = np.full(number, NUM_NODES, np.int32)
    first, end = np.zeros(number, np.int64), np.full(number, len(edges), np.int64)
    held = stored_anchors(table, build_adjacency(graph))
    places = np.array(left_out, np.int64)
    return tokens_of_new(
        table, held, nodes, first, end, places, edges[:, 0].copy(), edges[:, 1].copy()
    )


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["global", "per-node"]), st.booleans())
def test_a_new_node_gets_the_tokens_it_would_have_in_the_graph(
    seed: int, ties: str, distances: bool
) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng)
    chosen = TokenizerSettings(
        num_anchors=6, anchors_per_node=3, relations_per_node=2, ties=ties, distances=distances
    )
    table = tokenize(graph, fit_vocabulary(graph, chosen, rng=rng), rng=rng)
    assert table.salts is not None
    limits = (2 * NUM_RELATIONS, NUM_NODES)
    edges = rng.integers(limits, size=(int(rng.integers(1, 5)), 2), dtype=np.int32)
    left_out = [-1, *range(len(edges))]
    rows = new_rows(graph, table, edges, left_out)
    vocabulary = replace(table.vocabulary, num_nodes=NUM_NODES + 1)
    for row, place in enumerate(left_out):
        kept = [edge for i, edge in enumerate(edges.tolist()) if i != place]
        facts = [
            (NUM_NODES, relation, other)
            if relation < NUM_RELATIONS
            else (other, relation - NUM_RELATIONS, NUM_NODES)
            for relation, other in kept
        ]
        triples = np.concatenate([graph.triples, np.array(facts, np.int32).reshape(-1, 3)])
        grown = KnowledgeGraph(triples, NUM_NODES + 1, NUM_RELATIONS)
        fresh = tokenize_by(table.salts, build_adjacency(grown), vocabulary)
        np.testing.assert_array_equal(rows.distances[row], fresh.distances[-1])
        np.testing.assert_array_equal(rows.relations[row], fresh.relations[-1])
        if ties == "global":
            np.testing.assert_array_equal(rows.anchors[row], fresh.anchors[-1])


def test_without_edges_nothing_is_known_of_a_new_node() -> None:
    rng = np.random.default_rng(0)
    graph = random_graph(rng)
    chosen = TokenizerSettings(num_anchors=6, anchors_per_node=3, relations_per_node=2)
    table = tokenize(graph, fit_vocabulary(graph, chosen, rng=rng), rng=rng)
    rows = new_rows(graph, table, np.array([[0, 1]], np.int32), [0])
    vocabulary = table.vocabulary
    assert rows.anchors.tolist() == [[vocabulary.disconnected] * 3]
    assert rows.relations.tolist() == [[vocabulary.padding] * 2]
