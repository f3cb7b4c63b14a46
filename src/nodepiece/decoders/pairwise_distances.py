"""Scores of queries against all candidates, with little memory beyond the result."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

# Numbers in the largest temporary array of `in_chunks`: what a CPU's cache holds, or what keeps a
# GPU busy (256 MiB of float32).
CHUNK_CELLS = {"cpu": 2**19, "cuda": 2**26}
# For up to this many queries, and from this many numbers in the points on (4 MiB), the product is
# quicker with the points first on a CPU: 0.97 instead of 3.2 ms for two queries and 14,505 points
# of dimension 200 that no cache holds, 7.9 instead of 31 ms for 200,000 of dimension 128.
FEW_QUERIES, MANY_CELLS = 6, 2**20


def products(queries: Tensor, points: Tensor) -> Tensor:
    """query.point: (batch, dim), (num_points, dim) -> (batch, num_points)."""
    if not _is_quicker_with_points_first(queries, points):
        return queries @ points.T
    return (points @ _two_or_more(queries).T)[:, : len(queries)].T.contiguous()


def negative_distances(queries: Tensor, points: Tensor, squared: Tensor | None = None) -> Tensor:
    """-|query - point| in the L2 norm: (batch, dim), (num_points, dim) -> (batch, num_points).

    |query|^2 + |point|^2 - 2 query.point, cut off at 0, then its root: one matrix product
    forward, two backward, and no gradient where the distance is 0. The subtraction leaves an error
    of up to 4e-7 (|query|^2 + |point|^2) in the squared distance (float32, dim 200, measured).
    So among vectors of length 1 a distance of 1 is off by at most 4e-7 and one of 0.1 by 4e-6;
    below 0.001 it is noise and may come out as 0. TF32 products lift that last limit to some
    0.04: fit for training, not for ranking. Automatic mixed precision leaves this in float32.
    squared: `squared_lengths` of the points, which then need not be computed.
    """
    if torch.is_grad_enabled() or points.is_cuda:
        return -torch.cdist(queries, points, compute_mode="use_mm_for_euclid_dist")
    # No copy of all points is made: a quarter less time to rank on a CPU.
    of_points = squared_lengths(points) if squared is None else squared
    if _is_quicker_with_points_first(queries, points):
        found = torch.addmm(of_points[:, None], points, _two_or_more(queries).T, alpha=-2)
        found = found[:, : len(queries)].T.contiguous()
    else:
        found = torch.addmm(of_points[None], queries, points.T, alpha=-2)
    found.add_(squared_lengths(queries)[:, None])
    return found.clamp_min_(0).sqrt_().neg_()


def _is_quicker_with_points_first(queries: Tensor, points: Tensor) -> bool:
    if torch.is_grad_enabled() or points.is_cuda:
        return False
    return 0 < len(queries) <= FEW_QUERIES and points.numel() >= MANY_CELLS


def _two_or_more(queries: Tensor) -> Tensor:
    """The queries, one of them twice: a matrix and a vector take longer than two matrices."""
    return queries if len(queries) > 1 else queries.repeat(2, 1)


def squared_lengths(rows: Tensor) -> Tensor:
    """(num_rows, dim) -> (num_rows,)."""
    return torch.linalg.vector_norm(rows, dim=1).square()


def in_chunks(score: Callable[[Tensor], Tensor], candidates: Tensor, cells_each: int) -> Tensor:
    """Score candidates in chunks, for scores that are not a matrix product.

    `score` maps (num_chunk, dim) to (batch, num_chunk) and needs `cells_each` numbers of memory
    a candidate. Nothing of a chunk is kept for the backward pass, which computes it again, so
    `score` must be deterministic and change no state.
    """
    cells = CHUNK_CELLS.get(candidates.device.type, CHUNK_CELLS["cuda"])
    chunks = torch.split(candidates, max(1, cells // cells_each))
    if not torch.is_grad_enabled():
        return torch.cat([score(chunk) for chunk in chunks], dim=1)
    scores = [
        checkpoint(score, chunk, use_reentrant=False, preserve_rng_state=False) for chunk in chunks
    ]
    return torch.cat(scores, dim=1)
