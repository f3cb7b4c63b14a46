"""The baseline of half-links, against a slow count over all pairs."""

import tracemalloc

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from nodepiece.evaluation.baselines import WITH_SHORTCUT, WITHOUT_SHORTCUT, divide_by_shortcut
from nodepiece.evaluation.half_links import half_links_of
from nodepiece.evaluation.ranking import LinkRanks
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


def test_queries_are_divided_by_whether_half_links_answer_them() -> None:
    relation = np.zeros(2, np.int32)
    half_links = LinkRanks(np.array([1.0, 1.5]), np.array([2.0, 1.0]), relation)
    ranks = LinkRanks(np.array([3.0, 4.0]), np.array([5.0, 6.0]), relation)
    divided = divide_by_shortcut(ranks, half_links)
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
