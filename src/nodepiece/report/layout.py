"""Positions of vectors in two dimensions, such that similar vectors are near each other."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray

from nodepiece.errors import InputError, MissingExtra
from nodepiece.evaluation.ranking import Progress
from nodepiece.evaluation.top_scores import top_scores

Vectors = NDArray[np.float32]  # (num_vectors, dim)
Positions = NDArray[np.float32]  # (num_vectors, 2)

MAX_DIM = 50  # principal components that neighbours are compared by
CELLS_AT_ONCE = 1 << 22  # distances in memory
PERPLEXITY = 30.0  # of t-SNE: about as many neighbours count for each node
EARLY, LATE = 250, 500  # iterations of t-SNE, with attraction times EXAGGERATION and without
EXAGGERATION = 12.0
UMAP_NEIGHBOURS = 15
ITERATIONS_PER_CALL = 10  # between two calls of `progress`
FFT_FROM = 3000  # vectors; for fewer, Barnes-Hut is quicker than interpolation by FFT
MIN_VECTORS = 5  # fewer vectors are placed by their principal components


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest of every vector without itself, nearest first."""

    ids: NDArray[np.int64]  # (num_vectors, k)
    distances: NDArray[np.float32]  # (num_vectors, k)


def place(
    vectors: Vectors, *, method: str = "t-sne", seed: int, progress: Progress | None = None
) -> Positions:
    """The positions of vectors in two dimensions, by t-SNE or UMAP: (num_vectors, 2).

    Vectors are scaled to length 1, so that near means a large cosine, and reduced to their 50
    largest principal components; the first two are where the layout begins. The same seed gives
    the same positions on the same machine. `progress` gets the iterations done and in all.
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise InputError("the vectors have values that are not finite; lower the learning rate")
    points = principal_components(unit_length(vectors))
    if len(points) < MIN_VECTORS:
        padded = np.zeros((len(points), 2), np.float32)
        padded[:, : points.shape[1]] = points[:, :2]
        return padded
    return METHODS[method](points, seed, progress)


def unit_length(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, np.where(lengths > 0, lengths, 1), dtype=np.float32)


def principal_components(vectors: Vectors) -> Vectors:
    """The coordinates along the directions of largest variance, largest first: (num, MAX_DIM)."""
    centred = vectors - vectors.mean(axis=0, keepdims=True) if len(vectors) else vectors
    _, directions = np.linalg.eigh(centred.T @ centred)  # ascending
    largest = directions[:, ::-1][:, :MAX_DIM]
    # the sign of an eigenvector is arbitrary: its largest entry is made positive
    signs = np.sign(largest[np.abs(largest).argmax(axis=0), np.arange(largest.shape[1])])
    return np.ascontiguousarray(centred @ (largest * signs), np.float32)


def nearest_neighbours(points: Vectors, k: int) -> Neighbours:
    """The k nearest points of every point, exact; time grows with the square of their number."""
    every = torch.from_numpy(points)
    squares, ones = every.square().sum(dim=1, keepdim=True), torch.ones(len(points), 1)
    left = torch.cat([2 * every, -squares, -ones], dim=1)  # left @ right: -squared distances
    right = torch.cat([every, ones, squares], dim=1).T.contiguous()
    rows_at_once = min(len(points), max(1, CELLS_AT_ONCE // len(points)))
    buffer = torch.empty(rows_at_once, len(points))
    ids = np.empty((len(points), k), np.int64)
    distances = np.empty((len(points), k), np.float32)
    for start in range(0, len(points), rows_at_once):
        rows = slice(start, min(start + rows_at_once, len(points)))
        nearness = torch.mm(left[rows], right, out=buffer[: rows.stop - start])
        own = torch.arange(rows.stop - start)
        nearness[own, own + start] = -torch.inf
        best = top_scores(nearness, k)
        ids[rows] = best.candidate.reshape(-1, k)
        distances[rows] = np.sqrt(np.maximum(0, -best.score)).reshape(-1, k)
    return Neighbours(ids, distances)


def start_of(points: Vectors, spread: float) -> NDArray[np.float64]:
    """The first two components, scaled to a standard deviation of `spread`: (num_points, 2)."""
    start = np.zeros((len(points), 2))
    start[:, : points.shape[1]] = points[:, :2]
    deviation = start[:, 0].std()
    return start * (spread / deviation if deviation > 0 else 1.0)


def t_sne(points: Vectors, seed: int, progress: Progress | None) -> Positions:
    """van der Maaten and Hinton, 2008; repulsion by interpolation (Linderman et al., 2019)."""
    try:
        from openTSNE import TSNEEmbedding
        from openTSNE.affinity import PerplexityBasedNN
        from openTSNE.nearest_neighbors import PrecomputedNeighbors
    except ModuleNotFoundError as error:
        raise missing("openTSNE") from error
    perplexity = min(PERPLEXITY, (len(points) - 1) / 3)
    near = nearest_neighbours(points, min(len(points) - 1, round(3 * perplexity)))
    threads = numba.get_num_threads()
    affinities = PerplexityBasedNN(
        perplexity=perplexity,
        knn_index=PrecomputedNeighbors(near.ids, near.distances),
        n_jobs=threads,
    )
    layout = TSNEEmbedding(
        start_of(points, 1e-4),
        affinities,
        negative_gradient_method="fft" if len(points) >= FFT_FROM else "bh",
        n_jobs=threads,
        random_state=seed,
    )
    stages = ((EARLY, EXAGGERATION, 0.5, 0), (LATE, 1.0, 0.8, EARLY))
    for iterations, exaggeration, momentum, before in stages:
        layout = layout.optimize(
            n_iter=iterations,
            exaggeration=exaggeration,
            momentum=momentum,
            callbacks=[iteration_callback(before, progress)],
            callbacks_every_iters=ITERATIONS_PER_CALL,
        )
    return np.asarray(layout, np.float32)


def iteration_callback(before: int, progress: Progress | None) -> Callable[..., bool]:
    def callback(iteration: int, *_: Any) -> bool:
        if progress is not None:
            progress(before + iteration, EARLY + LATE)
        return False  # do not stop

    return callback


def umap(points: Vectors, seed: int, progress: Progress | None) -> Positions:
    """McInnes et al., 2018. It has no callback, so `progress` gets its beginning and end only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TensorFlow is missing; new data cannot be placed
        try:
            from umap import UMAP
        except ModuleNotFoundError as error:
            raise missing("umap-learn") from error
        if progress is not None:
            progress(0, 1)
        k = min(UMAP_NEIGHBOURS, len(points))
        near = nearest_neighbours(points, k - 1)
        own = np.arange(len(points))[:, None]  # UMAP counts a point as its own nearest
        known = (
            np.concatenate([own, near.ids], axis=1),
            np.concatenate([np.zeros_like(own, np.float32), near.distances], axis=1),
        )
        layout = UMAP(
            n_neighbors=k,
            init=start_of(points, 5.0).astype(np.float32),
            precomputed_knn=known,
            random_state=seed,
            n_jobs=1,
        ).fit_transform(points)
    if progress is not None:
        progress(1, 1)
    return np.asarray(layout, np.float32)


def missing(package: str) -> InputError:
    return MissingExtra(f"a map needs {package}", "figures")


METHODS: dict[str, Callable[[Vectors, int, Progress | None], Positions]] = {
    "t-sne": t_sne,
    "umap": umap,
}
