import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from nodepiece.evaluation.personalized_pagerank import PersonalizedPageRank, walk_over
from nodepiece.graph.arrays import FloatArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph


def random_graph(seed: int) -> KnowledgeGraph:
    rng = np.random.default_rng(seed)
    drawn = rng.integers((20, 2, 20), size=(25, 3), dtype=np.int32)
    facts = np.unique(drawn, axis=0)  # some nodes have none
    return KnowledgeGraph(facts, 20, 2)


@pytest.mark.parametrize("seed", range(5))
def test_chances_solve_the_equation_of_personalized_pagerank(seed: int) -> None:
    graph = random_graph(seed)
    adjacency = np.zeros((20, 20))
    for head, _, tail in graph.triples:
        adjacency[head, tail] += 1
        adjacency[tail, head] += 1
    walk = adjacency / np.maximum(adjacency.sum(axis=1, keepdims=True), 1)
    expected = 0.15 * np.linalg.inv(np.eye(20) - 0.85 * walk.T)
    found = walk_over(graph).from_nodes(np.arange(20))
    np.testing.assert_allclose(found, expected.T, atol=1e-7)


def test_scores_are_the_same_for_every_relation_and_nothing_for_the_head_itself() -> None:
    """0 - 1 - 2, and 3 is far from all."""
    graph = KnowledgeGraph(np.array([[0, 0, 1], [1, 1, 2]]), 4, 2)
    scores = walk_over(graph).score_tails(torch.tensor([0, 2, 0]), torch.tensor([0, 1, 3]))
    assert scores.shape == (3, 4)
    assert torch.equal(scores[0], scores[2])
    assert scores[0, 1] > scores[0, 2] > 0
    assert scores[0, 0] == scores[0, 3] == scores[1, 2] == 0


def test_a_head_with_given_neighbours_is_the_mean_over_them_and_without_any_nothing() -> None:
    walk = walk_over(random_graph(0))
    scores = walk.score_from(np.array([0, 0, 0, 2]), np.array([3, 5, 3, 7]), 3).numpy()
    from_nodes = walk.from_nodes(np.arange(20))
    np.testing.assert_allclose(scores[0], (2 * from_nodes[3] + from_nodes[5]) / 3)
    assert not scores[1].any()
    np.testing.assert_allclose(scores[2], from_nodes[7])
    assert walk.score_from(np.empty(0, np.int64), np.empty(0, np.int32), 2).shape == (2, 20)


def test_a_head_with_many_neighbours_takes_one_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """One from each neighbour would take memory for neighbours times nodes."""
    sizes = []
    compute = PersonalizedPageRank.from_distributions

    def recorded(self: PersonalizedPageRank, starts: csr_array) -> FloatArray:
        found = compute(self, starts)
        sizes.append(found.shape)
        return found

    monkeypatch.setattr(PersonalizedPageRank, "from_distributions", recorded)
    neighbours = np.arange(20, dtype=np.int32)
    walk_over(random_graph(0)).score_from(np.zeros(20, np.int64), neighbours, 1)
    assert sizes == [(1, 20)]
