"""The popularity baseline, worked out by hand on five nodes.

a -likes-> b, c -likes-> b, d -likes-> b, a -likes-> c, b -knows-> e
"""

import numpy as np
import pytest
import torch

from nodepiece.evaluation.known_answers import known_tails
from nodepiece.evaluation.popularity import count_tails
from nodepiece.evaluation.ranking import rank_links
from nodepiece.graph.knowledge_graph import KnowledgeGraph

A, B, C, D, E = range(5)
LIKES, KNOWS, LIKED_BY, KNOWN_BY = range(4)
GRAPH = KnowledgeGraph(
    np.array([[A, LIKES, B], [C, LIKES, B], [D, LIKES, B], [A, LIKES, C], [B, KNOWS, E]], np.int32),
    num_nodes=5,
    num_relations=2,
)


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        (LIKES, [0, 3, 1, 0, 0]),
        (KNOWS, [0, 0, 0, 0, 1]),
        (LIKED_BY, [2, 0, 1, 1, 0]),
        (KNOWN_BY, [0, 1, 0, 0, 0]),
    ],
)
def test_a_node_scores_how_often_it_is_the_tail_of_the_relation(
    relation: int, expected: list[int]
) -> None:
    scores = count_tails(GRAPH).score_tails(torch.tensor([A, E]), torch.tensor([relation] * 2))

    assert scores.tolist() == [expected, expected]  # for any head


def test_it_is_ranked_like_any_model() -> None:
    """Who does e like? b has 3 votes, c has 1, the other three none and tie.

    Who likes c? a has 2 votes but is known to, so it is out; c and d have 1, b and e none: e is
    behind two and ties with one.
    """
    asked = np.array([[E, LIKES, C]], np.int32)
    known = known_tails(np.concatenate([GRAPH.triples, asked]), 5, 2)

    ranks = rank_links(
        count_tails(GRAPH).score_tails, asked, known, memory_budget=10**6, device="cpu"
    )

    assert ranks.tail.tolist() == [2.0]
    assert ranks.head.tolist() == [3.5]


@pytest.mark.parametrize("seed", range(3))
def test_ranks_by_counts_are_those_of_scoring_every_node(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.evaluation.popularity.MAX_KNOWN", 50)  # in several parts
    rng = np.random.default_rng(seed)
    facts = np.unique(rng.integers((12, 3, 12), size=(90, 3)), axis=0).astype(np.int32)
    rng.shuffle(facts)
    train, test = facts[:-20], facts[-20:]
    graph, known = KnowledgeGraph(train, 12, 3), known_tails(facts, 12, 3)
    popularity = count_tails(graph)

    expected = rank_links(popularity.score_tails, test, known, memory_budget=10**6, device="cpu")

    found = popularity.rank_links(test, known)
    assert found.tail.tolist() == expected.tail.tolist()
    assert found.head.tolist() == expected.head.tolist()


def test_candidates_score_as_they_do_among_all_nodes() -> None:
    popularity = count_tails(GRAPH)
    heads, relations = torch.tensor([A, E]), torch.tensor([LIKES, KNOWN_BY])
    candidates = torch.tensor([[B, C, E], [A, B, D]])

    found = popularity.score_candidates(heads, relations, candidates)

    everything = popularity.score_tails(heads, relations)
    assert found.tolist() == everything.gather(1, candidates).tolist()
