"""Adjacency, components and relation sets against dictionaries and sets of plain Python."""

from itertools import pairwise

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nodepiece.graph.adjacency import (
    Adjacency,
    balanced_chunks,
    build_adjacency,
    components,
    distinct_relations,
)
from nodepiece.graph.knowledge_graph import KnowledgeGraph


@st.composite
def graphs(draw: st.DrawFn) -> KnowledgeGraph:
    """Few nodes and relations, so that loops, parallel edges and isolated nodes abound."""
    num_nodes, num_relations = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    node, relation = st.integers(0, num_nodes - 1), st.integers(0, num_relations - 1)
    triples = draw(st.lists(st.tuples(node, relation, node), max_size=30))
    array = np.array(triples, dtype=np.int32).reshape(-1, 3)
    return KnowledgeGraph(array, num_nodes, num_relations)


def edges_of(adjacency: Adjacency, node: int) -> list[tuple[int, int]]:
    part = slice(adjacency.offsets[node], adjacency.offsets[node + 1])
    return list(zip(adjacency.relations[part], adjacency.neighbours[part], strict=True))


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_every_fact_is_an_edge_of_its_head_and_an_inverse_edge_of_its_tail_in_order(
    graph: KnowledgeGraph,
) -> None:
    expected: dict[int, list[tuple[int, int]]] = {node: [] for node in range(graph.num_nodes)}
    for head, relation, tail in graph.triples.tolist():
        expected[head].append((relation, tail))
        expected[tail].append((relation + graph.num_relations, head))
    adjacency = build_adjacency(graph)
    assert adjacency.num_nodes == graph.num_nodes
    assert adjacency.num_relations == 2 * graph.num_relations
    assert {node: edges_of(adjacency, node) for node in expected} == expected
    assert adjacency.degrees.tolist() == [len(edges) for edges in expected.values()]


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_components_agree_with_networkx_and_are_numbered_by_their_lowest_node(
    graph: KnowledgeGraph,
) -> None:
    reference = nx.Graph()
    reference.add_nodes_from(range(graph.num_nodes))
    reference.add_edges_from(graph.triples[:, [0, 2]].tolist())
    expected = np.empty(graph.num_nodes, dtype=int)
    for number, component in enumerate(sorted(nx.connected_components(reference), key=min)):
        expected[list(component)] = number
    adjacency = build_adjacency(graph)
    found = components(adjacency.offsets, adjacency.neighbours)
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_distinct_relations_are_the_sorted_sets_of_outgoing_relations(
    graph: KnowledgeGraph,
) -> None:
    expected: list[set[int]] = [set() for _ in range(graph.num_nodes)]
    for head, relation, tail in graph.triples.tolist():
        expected[head].add(relation)
        expected[tail].add(relation + graph.num_relations)
    offsets, values = distinct_relations(build_adjacency(graph))
    found = [values[offsets[node] : offsets[node + 1]].tolist() for node in range(graph.num_nodes)]
    assert found == [sorted(relations) for relations in expected]


def test_the_relation_sets_of_many_nodes_come_from_the_right_chunks() -> None:
    rng = np.random.default_rng(0)  # more nodes than chunks, and a hub that fills several
    triples = rng.integers((3000, 40, 3000), size=(6000, 3)).astype(np.int32)
    triples[:2000, 0] = 7
    offsets, values = distinct_relations(build_adjacency(KnowledgeGraph(triples, 3000, 40)))
    outgoing: list[set[int]] = [set() for _ in range(3000)]
    for head, relation, tail in triples.tolist():
        outgoing[head].add(relation)
        outgoing[tail].add(relation + 40)
    assert np.diff(offsets).tolist() == [len(relations) for relations in outgoing]
    assert values.tolist() == [r for relations in outgoing for r in sorted(relations)]


@settings(deadline=None)
@given(st.lists(st.integers(0, 1000), max_size=400), st.integers(1, 300))
def test_chunks_cover_the_work_in_order_and_none_is_much_larger_than_its_share(
    sizes: list[int], num_chunks: int
) -> None:
    work = np.array(sizes, dtype=np.int64)
    cuts = balanced_chunks(work, num_chunks)
    assert cuts[0] == 0 and cuts[-1] == len(work)
    assert (np.diff(cuts) >= 0).all()
    share = (work.sum() + len(work)) / max(1, min(num_chunks, len(work)))
    for start, end in pairwise(cuts):
        largest = work[start:end].max(initial=0) + 1
        assert (work[start:end] + 1).sum() <= share + largest + 1


def test_the_arrays_cannot_be_written_to() -> None:
    adjacency = build_adjacency(KnowledgeGraph(np.array([[0, 0, 1]], dtype=np.int32), 2, 1))
    arrays = (adjacency.offsets, adjacency.neighbours, adjacency.relations, adjacency.degrees)
    assert not any(array.flags.writeable for array in arrays)
