"""The inner loops of `segments` on a GPU, in Triton."""

import torch
import triton
import triton.language as tl
from torch import Tensor

EDGES_AT_ONCE = 8
COLUMNS_AT_ONCE = 256
CELLS_AT_ONCE = 1024


@triton.jit
def _add_weighted(  # type: ignore[no-untyped-def]
    rows,
    weights,
    ends,
    edges,
    offsets,
    sums,
    dim,
    heads,
    head_dim,
    HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
    EDGES: tl.constexpr,
):
    bag = tl.program_id(0)
    start = tl.load(offsets + bag)
    stop = tl.load(offsets + bag + 1)
    head = tl.arange(0, HEADS)
    within = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    column = head[:, None] * head_dim + within[None, :]
    has_column = (head < heads)[:, None] & (within < head_dim)[None, :]
    total = tl.zeros([HEADS, BLOCK], tl.float32)
    for first in range(start, stop, EDGES):
        position = first + tl.arange(0, EDGES)
        inside = position < stop
        edge = tl.load(edges + position, mask=inside, other=0).to(tl.int64)
        row = tl.load(ends + edge, mask=inside, other=0)
        has_weight = inside[:, None] & (head < heads)[None, :]
        # A number for each edge and head, broadcast over columns only after it is loaded.
        cells = edge[:, None] * heads + head[None, :]
        weight = tl.load(weights + cells, mask=has_weight, other=0.0).to(tl.float32)
        mask = inside[:, None, None] & has_column[None, :, :]
        value = tl.load(rows + row[:, None, None] * dim + column[None, :, :], mask=mask, other=0.0)
        total += tl.sum(value.to(tl.float32) * weight[:, :, None], axis=0)
    tl.store(sums + bag.to(tl.int64) * dim + column, total, mask=has_column)


def sum_weighted(
    rows: Tensor, weights: Tensor, ends: Tensor, edges: Tensor, offsets: Tensor
) -> Tensor:
    """Bag i is the sum over its edges e of weights[e] * rows[ends[e]], head by head.

    rows (num_rows, dim), weights (num_edges, heads), ends (num_edges,) int64, edges (num_members,),
    offsets (num_bags + 1,) -> (num_bags, dim), summed in float32.
    """
    num_bags, dim, heads = len(offsets) - 1, rows.shape[1], weights.shape[1]
    sums = torch.empty(num_bags, dim, dtype=rows.dtype, device=rows.device)
    if sums.numel():
        block = min(COLUMNS_AT_ONCE, triton.next_power_of_2(dim // heads))
        all_heads = triton.next_power_of_2(heads)
        _add_weighted[(num_bags, triton.cdiv(dim // heads, block))](
            rows,
            weights,
            ends,
            edges,
            offsets,
            sums,
            dim,
            heads,
            dim // heads,
            HEADS=all_heads,
            BLOCK=block,
            EDGES=EDGES_AT_ONCE,
            num_warps=warps_for(all_heads * block),
        )
    return sums


def warps_for(block: int) -> int:
    """The number of warps that load a row of float32, 16 bytes a thread."""
    return min(8, max(1, block // 128))


@triton.jit
def _index_rows(values, rows, taken, num_cells, DIM: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    cell = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = cell < num_cells
    row = tl.load(rows + cell // DIM, mask=inside, other=0)
    value = tl.load(values + row * DIM + cell % DIM, mask=inside, other=0.0)
    tl.store(taken + cell, value, mask=inside)


def index_rows(values: Tensor, rows: Tensor) -> Tensor:
    """(num_rows, dim), (num_taken,) -> (num_taken, dim), number by number."""
    taken = torch.empty(len(rows), values.shape[1], dtype=values.dtype, device=values.device)
    if taken.numel():
        grid = (triton.cdiv(taken.numel(), CELLS_AT_ONCE),)
        _index_rows[grid](
            values, rows, taken, taken.numel(), DIM=values.shape[1], BLOCK=CELLS_AT_ONCE
        )
    return taken


@triton.jit
def _dot_products(  # type: ignore[no-untyped-def]
    left,
    right,
    starts,
    ends,
    products,
    num_edges,
    dim,
    heads,
    head_dim,
    BLOCK: tl.constexpr,
    EDGES: tl.constexpr,
):
    edge = tl.program_id(0).to(tl.int64) * EDGES + tl.arange(0, EDGES)
    inside = edge < num_edges
    start = tl.load(starts + edge, mask=inside, other=0)
    end = tl.load(ends + edge, mask=inside, other=0)
    within = tl.arange(0, BLOCK)
    mask = inside[:, None] & (within < head_dim)[None, :]
    for head in range(heads):
        column = head * head_dim + within
        one = tl.load(left + start[:, None] * dim + column[None, :], mask=mask, other=0.0)
        other = tl.load(right + end[:, None] * dim + column[None, :], mask=mask, other=0.0)
        product = tl.sum(one.to(tl.float32) * other.to(tl.float32), axis=1)
        tl.store(products + edge * heads + head, product, mask=inside)


def edge_dot_products(
    left: Tensor, right: Tensor, starts: Tensor, ends: Tensor, heads: int
) -> Tensor:
    """left[starts] times right[ends], summed within heads: (num_edges, heads)."""
    num_edges, dim = len(starts), left.shape[1]
    products = torch.empty(num_edges, heads, dtype=left.dtype, device=left.device)
    if products.numel():
        _dot_products[(triton.cdiv(num_edges, 4 * EDGES_AT_ONCE),)](
            left,
            right,
            starts,
            ends,
            products,
            num_edges,
            dim,
            heads,
            dim // heads,
            BLOCK=triton.next_power_of_2(dim // heads),
            EDGES=4 * EDGES_AT_ONCE,
        )
    return products
