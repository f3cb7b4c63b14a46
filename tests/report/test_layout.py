"""Positions in two dimensions: similar vectors are near each other."""

import sys

import numpy as np
import pytest

from nodepiece.errors import InputError
from nodepiece.report import layout
from nodepiece.report.layout import nearest_neighbours, place, principal_components


def clusters(num_vectors: int = 90, dim: int = 12) -> tuple[layout.Vectors, np.ndarray]:
    """Vectors around three centres, and which of them each is around."""
    rng = np.random.default_rng(0)
    centre = np.arange(num_vectors) % 3
    noise = rng.normal(scale=0.1, size=(num_vectors, dim))
    return (np.eye(3, dim)[centre] + noise).astype(np.float32), centre


def share_of_neighbours_of_the_own_cluster(
    positions: layout.Positions, centre: np.ndarray
) -> float:
    near = nearest_neighbours(positions, 5).ids
    return float((centre[near] == centre[:, None]).mean())


def test_the_nearest_neighbours_are_those_by_all_distances() -> None:
    points = np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32)
    every = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(every, np.inf)

    near = nearest_neighbours(points, 7)

    assert np.array_equal(near.ids, np.argsort(every, axis=1)[:, :7])
    np.testing.assert_allclose(near.distances, np.sort(every, axis=1)[:, :7], rtol=1e-4)


def test_neighbours_do_not_depend_on_how_many_rows_are_compared_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32)
    at_once = nearest_neighbours(points, 7)
    monkeypatch.setattr(layout, "CELLS_AT_ONCE", 350)
    assert np.array_equal(nearest_neighbours(points, 7).ids, at_once.ids)


def test_components_keep_distances_of_vectors_with_few_dimensions() -> None:
    vectors, _ = clusters()
    points = principal_components(vectors)
    assert np.linalg.norm(points[3] - points[8]) == pytest.approx(
        np.linalg.norm(vectors[3] - vectors[8]), rel=1e-4
    )
    assert (np.diff(points.std(axis=0)) <= 1e-6).all()


def test_t_sne_keeps_clusters_together_and_depends_on_nothing_but_the_seed() -> None:
    vectors, centre = clusters()
    positions = place(vectors, seed=0)
    assert positions.shape == (90, 2) and np.isfinite(positions).all()
    assert share_of_neighbours_of_the_own_cluster(positions, centre) > 0.95
    assert np.array_equal(place(vectors, seed=0), positions)


def test_umap_keeps_clusters_together() -> None:
    vectors, centre = clusters()
    positions = place(vectors, method="umap", seed=0)
    assert share_of_neighbours_of_the_own_cluster(positions, centre) > 0.95


def test_progress_gets_the_iterations_done_and_in_all() -> None:
    calls: list[tuple[int, int]] = []
    place(clusters()[0], seed=0, progress=lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls) and len(calls) > 10
    assert calls[-1] == (layout.EARLY + layout.LATE, layout.EARLY + layout.LATE)


@pytest.mark.parametrize("number", [0, 1, 4, 5])
def test_a_few_vectors_are_placed_too(number: int) -> None:
    positions = place(clusters(number)[0], seed=0)
    assert positions.shape == (number, 2) and np.isfinite(positions).all()


def test_equal_vectors_and_vectors_of_length_0_are_placed() -> None:
    vectors = np.zeros((40, 3), np.float32)
    vectors[20:] = 1
    assert np.isfinite(place(vectors, seed=0)).all()


def test_vectors_that_are_not_finite_are_refused() -> None:
    with pytest.raises(InputError, match="not finite"):
        place(np.full((9, 2), np.nan, np.float32), seed=0)


@pytest.mark.parametrize(("method", "module"), [("t-sne", "openTSNE"), ("umap", "umap")])
def test_without_the_extra_the_error_names_it(
    method: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r"pip install 'nodepiece\[figures\]'"):
        place(clusters()[0], method=method, seed=0)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InputError, match="choose one of t-sne, umap"):
        place(clusters()[0], method="pca", seed=0)
