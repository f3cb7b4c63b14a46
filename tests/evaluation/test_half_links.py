"""The baseline of half-links, against a slow count over all pairs."""

import tracemalloc

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from nodepiece.evaluation.baselines import WITH_SHORTCUT, WITHOUT_SHORTCUT, divide_by_shortcut
from nodepiece.evaluation.half_links import half_links_of
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses

NUM_NODES, NUM_RELATIONS = 5, 2

facts = st.sets(
    st.tuples(
        st.integers(0, NUM_NODES - 1),
        st.integers(0, NUM_RELATIONS - 1),
        st.integers(0, NUM_NODES - 1),
    ),
    min_size=1,
    max_size=12,
)


def graph_of(triples: set[tuple[int, int, int]]) -> KnowledgeGraph:
    return KnowledgeGraph(np.array(sorted(triples), np.int32), NUM_NODES, NUM_RELATIONS)


def slow_score(graph: KnowledgeGraph, head: int, relation: int, tail: int) -> float:
    edges = {tuple(edge) for edge in with_inverses(graph).tolist()}
    of_relation = [edge for edge in with_inverses(graph).tolist() if edge[1] == relation]
    best = sum(edge[2] == tail for edge in of_relation) / max(1, len(of_relation))
    for other in range(2 * NUM_RELATIONS):
        if other != relation and (head, other, tail) in edges:
            pairs = {(h, t) for h, r, t in edges if r == other}
            both = [pair for pair in pairs if (pair[0], relation, pair[1]) in edges]
            best = max(best, len(both) / len(pairs))
    return best


@given(facts)
def test_scores_are_those_of_counting_by_hand(triples: set[tuple[int, int, int]]) -> None:
    graph = graph_of(triples)
    relations = torch.arange(2 * NUM_RELATIONS).repeat_interleave(NUM_NODES)
    heads = torch.arange(NUM_NODES).repeat(2 * NUM_RELATIONS)
    found = half_links_of(graph).score_tails(heads, relations).numpy()
    expected = [
        [slow_score(graph, head, relation, tail) for tail in range(NUM_NODES)]
        for head, relation in zip(heads.tolist(), relations.tolist(), strict=True)
    ]
    np.testing.assert_allclose(found, expected)


def pairs_of_nodes() -> tuple[torch.Tensor, torch.Tensor]:
    nodes = torch.arange(NUM_NODES)
    return nodes.repeat_interleave(NUM_NODES), nodes.repeat(NUM_NODES)


def slow_naive_bayes(graph: KnowledgeGraph, head: int, tail: int) -> list[float]:
    edges = with_inverses(graph).tolist()
    products = []
    for relation in range(2 * NUM_RELATIONS):
        of_relation = [edge for edge in edges if edge[1] == relation]
        number = len(of_relation)
        of_head = sum(edge[0] == head for edge in of_relation) + 1 / NUM_NODES
        of_tail = sum(edge[2] == tail for edge in of_relation) + 1 / NUM_NODES
        products.append(number * (of_head / (number + 1)) * (of_tail / (number + 1)))
    return [product / sum(products) for product in products]


def slow_confidence(graph: KnowledgeGraph, head: int, relation: int, tail: int) -> float:
    edges = {tuple(edge) for edge in with_inverses(graph).tolist()}
    best = 0.0
    for other in range(2 * NUM_RELATIONS):
        if other != relation and (head, other, tail) in edges:
            pairs = {(h, t) for h, r, t in edges if r == other}
            best = max(best, sum((h, relation, t) in edges for h, t in pairs) / len(pairs))
    return best


@given(facts)
def test_relations_of_a_pair_are_scored_as_by_hand(triples: set[tuple[int, int, int]]) -> None:
    graph = graph_of(triples)
    heads, tails = pairs_of_nodes()
    links = half_links_of(graph)
    expected = [
        slow_naive_bayes(graph, head, tail)
        for head, tail in zip(heads.tolist(), tails.tolist(), strict=True)
    ]
    np.testing.assert_allclose(links.naive_bayes.score_relations(heads, tails), expected)
    larger = [
        [
            max(chance, slow_confidence(graph, head, relation, tail))
            for relation, chance in enumerate(row)
        ]
        for head, tail, row in zip(heads.tolist(), tails.tolist(), expected, strict=True)
    ]
    np.testing.assert_allclose(links.score_relations(heads, tails), larger)


def test_a_head_with_given_edges_is_scored_like_one_of_the_graph() -> None:
    graph = graph_of({(0, 0, 1), (0, 1, 1), (0, 1, 2), (3, 0, 4), (3, 1, 4), (2, 0, 2)})
    links, heads = half_links_of(graph), torch.tensor([3, 0, 1])
    relations = torch.tensor([1, 0, 3])
    query, edge = links.edges_of(heads)
    found = links.score_from(query, links.relations[edge], links.tails[edge], relations)
    assert torch.equal(found, links.score_tails(heads, relations))


def test_queries_are_divided_by_whether_half_links_answer_them() -> None:
    half_links = np.array([1.0, 1.5, 2.0, 1.0])
    divided = divide_by_shortcut(np.array([3.0, 4.0, 5.0, 6.0]), half_links)
    assert divided[WITH_SHORTCUT]["mean_rank"] == (3 + 6) / 2
    assert divided[WITHOUT_SHORTCUT]["mean_rank"] == (4 + 5) / 2


def test_tens_of_thousands_of_relations_take_memory_for_those_that_come_together() -> None:
    """A matrix of all pairs of 40,000 relations would take 12.8 GB."""
    facts = np.array([[0, relation, 1] for relation in (0, 19_999)] + [[1, 7, 2]])
    tracemalloc.start()
    links = half_links_of(KnowledgeGraph(facts, 3, 20_000))
    scores = links.score_tails(torch.tensor([0]), torch.tensor([19_999]))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert scores[0].tolist() == [0.0, 1.0, 0.0]
    assert most < 20e6


def test_pairs_with_a_hub_take_memory_for_the_edges_between_them() -> None:
    """All edges of the hub, for each of 2,000 pairs, would take 320 MB."""
    leaves = np.arange(1, 10_001, dtype=np.int32)
    facts = np.stack([np.zeros_like(leaves), np.zeros_like(leaves), leaves], axis=1)
    links = half_links_of(KnowledgeGraph(facts, 10_001, 1))
    tails = torch.from_numpy(leaves[:2_000]).long()
    tracemalloc.start()
    scores = links.score_relations(torch.zeros_like(tails), tails)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (scores[:, 0] > scores[:, 1]).all()
    assert most < 5e6
