"""The inner loops of `weighted_sum` on a GPU, in Triton: no row is copied for an edge."""

import torch
import triton
import triton.language as tl
from torch import Tensor

EDGES_AT_ONCE = 8


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
    BLOCK: tl.constexpr,
    EDGES: tl.constexpr,
):
    bag = tl.program_id(0)
    start = tl.load(offsets + bag)
    stop = tl.load(offsets + bag + 1)
    column = tl.arange(0, BLOCK)
    head = column // head_dim
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(start, stop, EDGES):
        position = first + tl.arange(0, EDGES)
        inside = position < stop
        edge = tl.load(edges + position, mask=inside, other=0).to(tl.int64)
        row = tl.load(ends + edge, mask=inside, other=0)
        mask = inside[:, None] & (column < dim)[None, :]
        value = tl.load(rows + row[:, None] * dim + column[None, :], mask=mask, other=0.0)
        weight = tl.load(weights + edge[:, None] * heads + head[None, :], mask=mask, other=0.0)
        total += tl.sum(value.to(tl.float32) * weight.to(tl.float32), axis=0)
    tl.store(sums + bag.to(tl.int64) * dim + column, total, mask=column < dim)


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
        block = triton.next_power_of_2(dim)
        _add_weighted[(num_bags,)](
            rows,
            weights,
            ends,
            edges,
            offsets,
            sums,
            dim,
            heads,
            dim // heads,
            BLOCK=block,
            EDGES=EDGES_AT_ONCE,
            num_warps=min(8, max(1, block * rows.element_size() // (16 * 32))),
        )
    return sums


@triton.jit
def _multiply_ends(  # type: ignore[no-untyped-def]
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


def products_of_ends(
    left: Tensor, right: Tensor, starts: Tensor, ends: Tensor, heads: int
) -> Tensor:
    """left[starts] times right[ends], summed within heads: (num_edges, heads)."""
    num_edges, dim = len(starts), left.shape[1]
    products = torch.empty(num_edges, heads, dtype=left.dtype, device=left.device)
    if products.numel():
        _multiply_ends[(triton.cdiv(num_edges, 4 * EDGES_AT_ONCE),)](
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
