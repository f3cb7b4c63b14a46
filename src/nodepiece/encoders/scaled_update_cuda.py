"""The kernels of `scaled_update`, in Triton. dim is a power of 2."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from nodepiece.encoders.scaled_update import EPSILON

ROWS_AT_ONCE = 64
NUM_PROGRAMS = 1024  # of the backward pass; each adds up the gradients of vectors over its rows


@triton.jit
def _normalized(  # type: ignore[no-untyped-def]
    parts, scalers, bias, row, inside, num_queries, DIM: tl.constexpr, EPS: tl.constexpr
):  # fmt: skip
    """(ROWS, DIM) normalized rows, one over their deviations, and the three scalers of the rows."""
    column = tl.arange(0, DIM)
    node = row // num_queries
    mask = inside[:, None]
    one = tl.load(scalers + 3 * node, mask=inside, other=0.0)[:, None]
    two = tl.load(scalers + 3 * node + 1, mask=inside, other=0.0)[:, None]
    three = tl.load(scalers + 3 * node + 2, mask=inside, other=0.0)[:, None]
    cell = parts + row[:, None] * (3 * DIM) + column[None, :]
    value = one * tl.load(cell, mask=mask, other=0.0).to(tl.float32)
    value += two * tl.load(cell + DIM, mask=mask, other=0.0).to(tl.float32)
    value += three * tl.load(cell + 2 * DIM, mask=mask, other=0.0).to(tl.float32)
    value += tl.load(bias + column)[None, :]
    value -= tl.sum(value, axis=1)[:, None] / DIM
    rate = 1 / tl.sqrt(tl.sum(value * value, axis=1)[:, None] / DIM + EPS)
    return value * rate, rate, one, two, three


@triton.jit
def _forward(  # type: ignore[no-untyped-def]
    parts, scalers, states, bias, scale, shift, updated, num_rows, num_queries,
    DIM: tl.constexpr, EPS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < num_rows
    column = tl.arange(0, DIM)
    normal, _, _, _, _ = _normalized(parts, scalers, bias, row, inside, num_queries, DIM, EPS)
    value = normal * tl.load(scale + column)[None, :] + tl.load(shift + column)[None, :]
    cell = row[:, None] * DIM + column[None, :]
    state = tl.load(states + cell, mask=inside[:, None], other=0.0).to(tl.float32)
    tl.store(updated + cell, tl.maximum(value, 0.0) + state, mask=inside[:, None])


def forward(
    parts: Tensor, scalers: Tensor, states: Tensor, bias: Tensor, scale: Tensor, shift: Tensor
) -> Tensor:
    updated = torch.empty_like(states)
    num_nodes, num_queries, dim = states.shape
    num_rows = num_nodes * num_queries
    if num_rows:
        _forward[(triton.cdiv(num_rows, ROWS_AT_ONCE),)](
            parts, scalers, states, bias, scale, shift, updated, num_rows, num_queries,
            DIM=dim, EPS=EPSILON, ROWS=ROWS_AT_ONCE,
        )  # fmt: skip
    return updated


@triton.jit
def _backward(  # type: ignore[no-untyped-def]
    parts, scalers, bias, scale, shift, gradient, of_parts, of_vectors, num_rows, num_queries,
    DIM: tl.constexpr, EPS: tl.constexpr, ROWS: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    column = tl.arange(0, DIM)
    factor = tl.load(scale + column)[None, :]
    offset = tl.load(shift + column)[None, :]
    of_bias = tl.zeros([ROWS, DIM], tl.float32)
    of_scale = tl.zeros([ROWS, DIM], tl.float32)
    of_shift = tl.zeros([ROWS, DIM], tl.float32)
    for start in range(program * ROWS, num_rows, PROGRAMS * ROWS):
        row = (start + tl.arange(0, ROWS)).to(tl.int64)
        inside = row < num_rows
        mask = inside[:, None]
        normal, rate, one, two, three = _normalized(
            parts, scalers, bias, row, inside, num_queries, DIM, EPS
        )
        cell = row[:, None] * DIM + column[None, :]
        given = tl.load(gradient + cell, mask=mask, other=0.0).to(tl.float32)
        given = tl.where(normal * factor + offset > 0, given, 0.0)
        of_scale += given * normal
        of_shift += given
        slope = given * factor
        average = tl.sum(slope, axis=1)[:, None] / DIM
        along = tl.sum(slope * normal, axis=1)[:, None] / DIM
        slope = rate * (slope - average - normal * along)
        of_bias += tl.where(mask, slope, 0.0)
        place = of_parts + row[:, None] * (3 * DIM) + column[None, :]
        tl.store(place, one * slope, mask=mask)
        tl.store(place + DIM, two * slope, mask=mask)
        tl.store(place + 2 * DIM, three * slope, mask=mask)
    place = of_vectors + program * (3 * DIM) + column
    tl.store(place, tl.sum(of_bias, axis=0))
    tl.store(place + DIM, tl.sum(of_scale, axis=0))
    tl.store(place + 2 * DIM, tl.sum(of_shift, axis=0))


def backward(
    parts: Tensor, scalers: Tensor, bias: Tensor, scale: Tensor, shift: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of parts, bias, scale and shift."""
    of_parts = torch.empty_like(parts)
    num_nodes, num_queries, dim = gradient.shape
    num_rows = num_nodes * num_queries
    of_vectors = torch.zeros(NUM_PROGRAMS, 3, dim, device=parts.device)
    if num_rows:
        _backward[(NUM_PROGRAMS,)](
            parts, scalers, bias, scale, shift, gradient, of_parts, of_vectors, num_rows,
            num_queries, DIM=dim, EPS=EPSILON, ROWS=ROWS_AT_ONCE, PROGRAMS=NUM_PROGRAMS,
        )  # fmt: skip
    of_bias, of_scale, of_shift = of_vectors.sum(dim=0)
    return of_parts, of_bias, of_scale, of_shift
