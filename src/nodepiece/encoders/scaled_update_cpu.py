"""The loops of `scaled_update` on a CPU, in numba; queries come first in memory.

Each row is read and written once. Parallel over blocks of rows, of which there are always equally
many, so that sums have the same order for any number of threads.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodepiece.compiled import njit, prange

NUM_BLOCKS = 64
SUMS = {"reassoc", "contract"}  # sums over a row may be computed in the lanes of a register


def forward(
    parts: Tensor,
    scalers: Tensor,
    states: Tensor,
    bias: Tensor,
    scale: Tensor,
    shift: Tensor,
    epsilon: float,
) -> Tensor:
    """See `scaled_update`."""
    rows, before = _by_query(parts), _by_query(states)
    updated = torch.empty_like(before)
    _forward(
        _array(rows.flatten(end_dim=1)),
        _array(scalers.to(parts.dtype)),
        _array(before.flatten(end_dim=1)),
        (_array(bias), _array(scale), _array(shift)),
        epsilon,
        updated.flatten(end_dim=1).numpy(),
    )
    return updated.transpose(0, 1)


def backward(
    parts: Tensor,
    scalers: Tensor,
    bias: Tensor,
    scale: Tensor,
    shift: Tensor,
    gradient: Tensor,
    epsilon: float,
) -> tuple[Tensor, ...]:
    """Gradients of parts, bias, scale and shift."""
    rows, slopes = _by_query(parts), _by_query(gradient)
    of_parts = torch.empty_like(rows)
    of_vectors = rows.new_zeros(NUM_BLOCKS, 3, rows.shape[-1])
    _backward(
        _array(rows.flatten(end_dim=1)),
        _array(scalers.to(parts.dtype)),
        (_array(bias), _array(scale), _array(shift)),
        _array(slopes.flatten(end_dim=1)),
        epsilon,
        of_parts.flatten(end_dim=1).numpy(),
        of_vectors.numpy(),
    )
    return of_parts.transpose(0, 1), *of_vectors.sum(dim=0)


def _by_query(values: Tensor) -> Tensor:
    """(num_nodes, num_queries, ...) -> (num_queries, num_nodes, ...), contiguous."""
    return values.detach().transpose(0, 1).contiguous()


def _array(values: Tensor) -> Any:
    return values.detach().contiguous().numpy()


@njit(cache=True, error_model="numpy", fastmath=SUMS)
def _normalize(row, node, parts, scalers, bias, epsilon, normal):  # type: ignore[no-untyped-def]
    """Write a row before scale and shift to `normal`; return one over its deviation."""
    dim = len(bias)
    one, two, three = scalers[node, 0], scalers[node, 1], scalers[node, 2]
    mean = bias[0] * 0
    for column in range(dim):
        value = one * parts[row, 0, column] + two * parts[row, 1, column]
        value += three * parts[row, 2, column] + bias[column]
        normal[column] = value
        mean += value
    mean /= dim
    variance = mean * 0
    for column in range(dim):
        normal[column] -= mean
        variance += normal[column] * normal[column]
    rate = 1 / np.sqrt(variance / dim + epsilon)
    for column in range(dim):
        normal[column] *= rate
    return rate


@njit(cache=True, error_model="numpy")
def _forward_block(first, last, parts, scalers, states, vectors, epsilon, updated):  # type: ignore[no-untyped-def]
    """The rows from `first` to `last`; a row is a query and a node."""
    bias, scale, shift = vectors
    normal = np.empty_like(bias)
    for row in range(first, last):
        _normalize(row, row % len(scalers), parts, scalers, bias, epsilon, normal)
        for column in range(len(bias)):
            value = normal[column] * scale[column] + shift[column]
            updated[row, column] = (value if value > 0 else 0) + states[row, column]


@njit(parallel=True, cache=True)
def _forward(parts, scalers, states, vectors, epsilon, updated):  # type: ignore[no-untyped-def]
    num_rows = len(states)
    for block in prange(NUM_BLOCKS):
        first, last = block * num_rows // NUM_BLOCKS, (block + 1) * num_rows // NUM_BLOCKS
        _forward_block(first, last, parts, scalers, states, vectors, epsilon, updated)


@njit(cache=True, error_model="numpy", fastmath=SUMS)
def _backward_block(  # type: ignore[no-untyped-def]
    first, last, parts, scalers, vectors, gradient, epsilon, of_parts, of_vectors
):
    """The rows from `first` to `last`; the gradients of vectors are added to (3, dim)."""
    bias, scale, shift = vectors
    dim = len(bias)
    normal, slope = np.empty_like(bias), np.empty_like(bias)
    for row in range(first, last):
        node = row % len(scalers)
        rate = _normalize(row, node, parts, scalers, bias, epsilon, normal)
        average = along = rate * 0
        for column in range(dim):
            is_active = normal[column] * scale[column] + shift[column] > 0
            given = gradient[row, column] if is_active else rate * 0
            of_vectors[1, column] += given * normal[column]
            of_vectors[2, column] += given
            slope[column] = given * scale[column]
            average += slope[column]
            along += slope[column] * normal[column]
        average, along = average / dim, along / dim
        for column in range(dim):
            value = rate * (slope[column] - average - normal[column] * along)
            of_vectors[0, column] += value
            slope[column] = value
        for part in range(3):
            for column in range(dim):
                of_parts[row, part, column] = scalers[node, part] * slope[column]


@njit(parallel=True, cache=True)
def _backward(parts, scalers, vectors, gradient, epsilon, of_parts, of_vectors):  # type: ignore[no-untyped-def]
    num_rows = len(gradient)
    for block in prange(NUM_BLOCKS):
        first, last = block * num_rows // NUM_BLOCKS, (block + 1) * num_rows // NUM_BLOCKS
        _backward_block(
            first, last, parts, scalers, vectors, gradient, epsilon, of_parts, of_vectors[block]
        )
