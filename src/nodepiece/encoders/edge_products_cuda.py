"""The inner loops of `sum_products` and `products_along` on a GPU, in Triton.

A complex product needs rows of even length, which `GraphLayerSettings.check_dim` ensures.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from nodepiece.encoders.edge_products import Side, SideOfEdges
from nodepiece.encoders.segments_cuda import COLUMNS_AT_ONCE, EDGES_AT_ONCE, warps_for

MULTIPLY, ROTATE, ROTATE_BACK = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
NUMBER_OF = {"multiply": 0, "rotate": 1, "rotate back": 2}


@triton.jit
def _rows_at(values, row, offset, column, mask, dim):  # type: ignore[no-untyped-def]
    cells = row[:, None] * dim + offset + column[None, :]
    return tl.load(values + cells, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def _products(left, left_row, right, right_row, column, mask, dim, HOW: tl.constexpr):  # type: ignore[no-untyped-def]
    """The products of rows (EDGES,) in columns (COLUMNS,), and their imaginary half."""
    one = _rows_at(left, left_row, 0, column, mask, dim)
    other = _rows_at(right, right_row, 0, column, mask, dim)
    product = one * other
    imaginary = product
    if HOW != MULTIPLY:
        one_too = _rows_at(left, left_row, dim // 2, column, mask, dim)
        other_too = _rows_at(right, right_row, dim // 2, column, mask, dim)
        if HOW == ROTATE:
            product -= one_too * other_too
            imaginary = one_too * other + one * other_too
        else:
            product += one_too * other_too
            imaginary = one_too * other - one * other_too
    return product, imaginary


@triton.jit
def _sum_products(  # type: ignore[no-untyped-def]
    left,
    left_rows,
    right,
    right_rows,
    weights,
    edges,
    offsets,
    sums,
    dim,
    width,  # columns: dim, or half of it where the other half comes along
    HAS_ROWS: tl.constexpr,
    HAS_WEIGHTS: tl.constexpr,
    HOW: tl.constexpr,
    BLOCK: tl.constexpr,
    EDGES: tl.constexpr,
):
    bag = tl.program_id(0)
    start = tl.load(offsets + bag)
    stop = tl.load(offsets + bag + 1)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    total_imaginary = tl.zeros([BLOCK], tl.float32)
    for first in range(start, stop, EDGES):
        position = first + tl.arange(0, EDGES)
        inside = position < stop
        edge = tl.load(edges + position, mask=inside, other=0).to(tl.int64)
        left_row = edge
        if HAS_ROWS:
            left_row = tl.load(left_rows + edge, mask=inside, other=0)
        right_row = tl.load(right_rows + edge, mask=inside, other=0)
        mask = inside[:, None] & (column < width)[None, :]
        product, imaginary = _products(left, left_row, right, right_row, column, mask, dim, HOW)
        if HAS_WEIGHTS:
            weight = tl.load(weights + edge, mask=inside, other=0.0).to(tl.float32)[:, None]
            product *= weight
            imaginary *= weight
        total += tl.sum(product, axis=0)
        if HOW != MULTIPLY:
            total_imaginary += tl.sum(imaginary, axis=0)
    cells = sums + bag.to(tl.int64) * dim + column
    tl.store(cells, total, mask=column < width)
    if HOW != MULTIPLY:
        tl.store(cells + width, total_imaginary, mask=column < width)


def sum_products(
    left: Side | SideOfEdges,
    right: Side,
    weights: Tensor | None,
    edges: Tensor,
    offsets: Tensor,
    how: str,
) -> Tensor:
    """Bag i is the sum over its edges of weight * left row * right row, added up in float32.

    weights (num_edges,); edges (num_members,), offsets (num_bags + 1,) -> (num_bags, dim).
    """
    num_bags, dim = len(offsets) - 1, left[0].shape[1]
    sums = _numbers_for(left, right, num_bags)
    if sums.numel():
        width, block = _columns(dim, how)
        _sum_products[(num_bags, triton.cdiv(width, block))](
            *left,
            *right,
            weights,
            edges,
            offsets,
            sums,
            dim,
            width,
            HAS_ROWS=left[1] is not None,
            HAS_WEIGHTS=weights is not None,
            HOW=NUMBER_OF[how],
            BLOCK=block,
            EDGES=EDGES_AT_ONCE,
            num_warps=warps_for(block),
        )
    return sums


def _numbers_for(left: Side | SideOfEdges, right: Side, num_rows: int) -> Tensor:
    """An uninitialized tensor for products or sums of products: (num_rows, dim)."""
    one, other = left[0], right[0]
    return one.new_empty(num_rows, one.shape[1], dtype=torch.result_type(one, other))


def _columns(dim: int, how: str) -> tuple[int, int]:
    """The number of columns in all, and of each program.

    Wide rows are divided into more programs than they need: a sum over the edges of FB15k-237 of
    rows of 1024 numbers takes .37 ms so, .82 ms with twice the columns (one H200,
    `benchmarks/message_kernels.py`).
    """
    width = dim if how == "multiply" else dim // 2
    if width > COLUMNS_AT_ONCE:
        return width, COLUMNS_AT_ONCE // 2
    return width, triton.next_power_of_2(width)


@triton.jit
def _multiply_rows(  # type: ignore[no-untyped-def]
    left,
    left_rows,
    right,
    right_rows,
    products,
    num_edges,
    dim,
    width,
    HOW: tl.constexpr,
    BLOCK: tl.constexpr,
    EDGES: tl.constexpr,
):
    edge = tl.program_id(0).to(tl.int64) * EDGES + tl.arange(0, EDGES)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = edge < num_edges
    left_row = tl.load(left_rows + edge, mask=inside, other=0)
    right_row = tl.load(right_rows + edge, mask=inside, other=0)
    mask = inside[:, None] & (column < width)[None, :]
    product, imaginary = _products(left, left_row, right, right_row, column, mask, dim, HOW)
    cells = products + edge[:, None] * dim + column[None, :]
    tl.store(cells, product, mask=mask)
    if HOW != MULTIPLY:
        tl.store(cells + width, imaginary, mask=mask)


def multiply_rows(left: Side, right: Side, how: str) -> Tensor:
    """The product of every edge: (num_edges, dim)."""
    num_edges, dim = len(left[1]), left[0].shape[1]
    products = _numbers_for(left, right, num_edges)
    if products.numel():
        width, block = _columns(dim, how)
        _multiply_rows[(triton.cdiv(num_edges, EDGES_AT_ONCE), triton.cdiv(width, block))](
            *left,
            *right,
            products,
            num_edges,
            dim,
            width,
            HOW=NUMBER_OF[how],
            BLOCK=block,
            EDGES=EDGES_AT_ONCE,
            num_warps=warps_for(block),
        )
    return products
