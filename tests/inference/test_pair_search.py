"""The pairs of highest score, by computing them all."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from nodepiece.graph.arrays import LongArray
from nodepiece.inference import pair_search
from nodepiece.inference.pair_search import Best, Pairs, part_of, sample_pairs, search_pairs
from nodepiece.inference.search_progress import SearchProgress


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


def any_pair(triples: LongArray) -> NDArray[np.bool_]:
    return np.ones(len(triples), np.bool_)


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

    def allowed(triples: LongArray) -> NDArray[np.bool_]:
        return np.asarray((triples[:, 0] + triples[:, 2]) % 5 != 0)

    search_pairs(pairs, best, allowed, SearchProgress())
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
    sample_pairs(pairs, sampled, any_pair)
    sampled.settle()

    num_computed = search_pairs(pairs, Best(10, sampled.least - 1e-3), any_pair, SearchProgress())

    assert 0 < num_computed < pairs.count / 4


def test_a_stopped_search_has_the_best_pairs_of_the_queries_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pair_search, "ROWS", 16)
    pairs, best = pairs_of(70, 150, 8, is_distance=False, seed=1), Best(5)
    seen: list[int] = []
    progress = SearchProgress(lambda done, _: seen.append(done), lambda: bool(seen))

    search_pairs(pairs, best, any_pair, progress)
    best.settle()

    longest = pairs.queries.norm(dim=1).argsort(descending=True)[:16]
    expected = everything(pairs)[longest].flatten().sort(descending=True).values[:5]
    assert seen == [16]
    np.testing.assert_allclose(best.scores, expected, atol=1e-4)


def test_progress_ends_with_all_queries_also_of_blocks_that_are_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pair_search, "ROWS", 16)
    for num_nodes in (0, 150):
        progress = SearchProgress()
        pairs = pairs_of(70, num_nodes, 8, is_distance=False, seed=1)
        search_pairs(pairs, Best(1, 1e9), any_pair, progress)
        assert progress.num_done == 70


@pytest.mark.parametrize("is_distance", [False, True])
def test_a_part_of_products_has_the_longest_queries_and_one_of_distances_any(
    is_distance: bool,
) -> None:
    pairs = pairs_of(70, 20, 8, is_distance=is_distance, seed=2)

    part = part_of(pairs, 0.25)

    longest = pairs.queries.norm(dim=1).argsort(descending=True)[:18].tolist()
    assert len(set(part.heads.tolist())) == 18 and part.count == 18 * 20
    assert (set(part.heads.tolist()) == set(longest)) == (not is_distance)


def test_of_equal_scores_the_first_facts_are_kept() -> None:
    best = Best(2)

    best.add(np.array([1.0, 1.0, 1.0]), np.array([[2, 0, 1], [1, 0, 3], [1, 0, 2]]))

    best.settle()
    assert best.triples.tolist() == [[1, 0, 2], [1, 0, 3]]
    assert best.least == 1.0
