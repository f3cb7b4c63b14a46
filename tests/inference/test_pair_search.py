"""The pairs of highest score, by computing them all."""

import numpy as np
import pytest
import torch

from nodepiece.inference import pair_search
from nodepiece.inference.pair_search import Best, Pairs, sample_pairs, search_pairs


def pairs_of(num_queries: int, num_nodes: int, dim: int, *, is_distance: bool, seed: int) -> Pairs:
    """Vectors of different lengths, most of them along a few axes."""
    generator = torch.Generator().manual_seed(seed)
    scale = torch.arange(dim).float().neg().mul(0.15).exp()
    queries, nodes = (
        torch.randn(num, dim, generator=generator)
        * scale
        * torch.randn(num, 1, generator=generator).exp()
        for num in (num_queries, num_nodes)
    )
    ids = np.arange(num_queries), np.arange(num_nodes)
    return Pairs(3, *ids, queries, nodes, is_distance)


def everything(pairs: Pairs) -> torch.Tensor:
    if pairs.is_distance:
        return -torch.cdist(pairs.queries.double(), pairs.nodes.double())
    return pairs.queries.double() @ pairs.nodes.double().T


@pytest.mark.parametrize("is_distance", [False, True])
@pytest.mark.parametrize("dim", [8, 40, 80])
@pytest.mark.parametrize("most", [1, 30, 600])
def test_the_best_pairs_are_found_with_their_scores(
    is_distance: bool, dim: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_search, "ROWS", 16)
    monkeypatch.setattr(pair_search, "COLUMNS", 32)
    pairs = pairs_of(70, 150, dim, is_distance=is_distance, seed=dim + most)
    best = Best(most)

    search_pairs(pairs, best, lambda triples: (triples[:, 0] + triples[:, 2]) % 5 != 0)
    best.settle()

    scores = everything(pairs).numpy()
    is_allowed = np.add.outer(np.arange(70), np.arange(150)) % 5 != 0
    expected = np.sort(scores[is_allowed])[::-1][:most]
    np.testing.assert_allclose(best.scores, expected, atol=1e-4)
    rows, relations, columns = best.triples.T
    np.testing.assert_allclose(scores[rows, columns], best.scores, atol=1e-4)
    assert set(relations.tolist()) == {3}
    assert len({*zip(rows.tolist(), columns.tolist(), strict=True)}) == most


def test_blocks_of_short_vectors_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_search, "ROWS", 16)
    monkeypatch.setattr(pair_search, "COLUMNS", 32)
    pairs = pairs_of(160, 320, 40, is_distance=False, seed=0)
    sampled = Best(10)
    sample_pairs(pairs, sampled, lambda triples: np.ones(len(triples), np.bool_))
    sampled.settle()

    num_computed = search_pairs(
        pairs, Best(10, sampled.least - 1e-3), lambda triples: np.ones(len(triples), np.bool_)
    )

    assert 0 < num_computed < pairs.count / 4


def test_of_equal_scores_the_first_facts_are_kept() -> None:
    best = Best(2)

    best.add(np.array([1.0, 1.0, 1.0]), np.array([[2, 0, 1], [1, 0, 3], [1, 0, 2]]))

    best.settle()
    assert best.triples.tolist() == [[1, 0, 2], [1, 0, 3]]
    assert best.least == 1.0
