"""The inner loops of `message_moments` on a GPU, in Triton.

A row of states or relations is (num_queries, dim), one number after the other; a row of moments is
(num_queries, 5, dim). dim is a power of 2.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.message_moments import (
    NUM_MOMENTS,
    SMALLEST_VARIANCE,
    variance_of_constants,
)

# Small programs: with more numbers or warps, fewer of them have room on a GPU side by side. On one
# H200 the moments of FB15k-237 take .48 ms so, and .94 ms with 1024 numbers and two warps, the
# gradients .71 and .86 ms (`benchmarks/message_kernels.py`).
COLUMNS_AT_ONCE = 128
NUMBERS_AT_ONCE = 256  # columns times edges of a program of the moments
GRADIENTS_AT_ONCE = 512  # and of the gradients
WARPS = 1
PARTIALS = tl.constexpr(4)  # sum, sum of squares, maximum, minimum


@triton.jit
def _messages(states, source, relations, relation, column, mask, width):  # type: ignore[no-untyped-def]
    """(EDGES, BLOCK) products, rounded as they would be stored, so that extremes can be found."""
    state = tl.load(states + source[:, None] * width + column[None, :], mask=mask, other=0.0)
    factor = tl.load(relations + relation[:, None] * width + column[None, :], mask=mask, other=0.0)
    product = state.to(tl.float32) * factor.to(tl.float32)
    return product.to(states.dtype.element_ty).to(tl.float32)


@triton.jit
def _finish(  # type: ignore[no-untyped-def]
    node, column, total, squares, high, low, number, states, boundary, heads, found, counts,
    width, DIM: tl.constexpr, VARIANCE: tl.constexpr,
):  # fmt: skip
    """Add the message of the boundary and store the moments of a node."""
    inside = column < width
    head = tl.load(heads + column // DIM, mask=inside, other=-1)
    first = tl.load(boundary + column, mask=inside, other=0.0).to(tl.float32)
    first = tl.where(head == node, first, 0.0)
    number += 1.0
    mean = (total + first) / number
    variance = tl.maximum((squares + first * first) / number - mean * mean, 0.0)
    cell = node.to(tl.int64) * width
    state = tl.load(states + cell + column, mask=inside, other=0.0)
    place = found + 5 * cell + (column // DIM) * (5 * DIM) + column % DIM
    tl.store(place, mean, mask=inside)
    tl.store(place + DIM, tl.sqrt(variance + VARIANCE), mask=inside)
    tl.store(place + 2 * DIM, tl.maximum(high, first), mask=inside)
    tl.store(place + 3 * DIM, tl.minimum(low, first), mask=inside)
    tl.store(place + 4 * DIM, state, mask=inside)
    tl.store(counts + node, number)


@triton.jit
def _moments(  # type: ignore[no-untyped-def]
    states, relations, boundary, heads, edge_mask, sources, relation_rows, chunks,
    found, counts, partials, numbers,
    width, DIM: tl.constexpr, VARIANCE: tl.constexpr, BLOCK: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(0)
    node = tl.load(chunks + 4 * chunk)
    start = tl.load(chunks + 4 * chunk + 1)
    stop = tl.load(chunks + 4 * chunk + 2)
    slot = tl.load(chunks + 4 * chunk + 3)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    has_column = column < width
    totals = tl.zeros([EDGES, BLOCK], tl.float32)
    squares = tl.zeros([EDGES, BLOCK], tl.float32)
    highs = tl.full([EDGES, BLOCK], -float("inf"), tl.float32)
    lows = tl.full([EDGES, BLOCK], float("inf"), tl.float32)
    number = tl.zeros([EDGES], tl.float32)
    for begin in range(start, stop, EDGES):
        position = begin + tl.arange(0, EDGES)
        inside = position < stop
        visible = tl.load(edge_mask + position, mask=inside, other=0.0) > 0
        source = tl.load(sources + position, mask=inside, other=0)
        relation = tl.load(relation_rows + position, mask=inside, other=0)
        mask = visible[:, None] & has_column[None, :]
        message = _messages(states, source, relations, relation, column, mask, width)
        totals += message
        squares += message * message
        highs = tl.maximum(highs, tl.where(mask, message, -float("inf")))
        lows = tl.minimum(lows, tl.where(mask, message, float("inf")))
        number += visible.to(tl.float32)
    total = tl.sum(totals, axis=0)
    square = tl.sum(squares, axis=0)
    high = tl.max(highs, axis=0)
    low = tl.min(lows, axis=0)
    messages = tl.sum(number, axis=0)
    if slot < 0:
        _finish(
            node, column, total, square, high, low, messages, states, boundary, heads, found,
            counts, width, DIM, VARIANCE,
        )  # fmt: skip
    else:
        place = partials + slot.to(tl.int64) * (PARTIALS * width) + column
        tl.store(place, total, mask=has_column)
        tl.store(place + width, square, mask=has_column)
        tl.store(place + 2 * width, high, mask=has_column)
        tl.store(place + 3 * width, low, mask=has_column)
        tl.store(numbers + slot, messages)


@triton.jit
def _combine(  # type: ignore[no-untyped-def]
    states, boundary, heads, split, partials, numbers, found, counts,
    width, DIM: tl.constexpr, VARIANCE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    node = tl.load(split + 3 * row)
    start = tl.load(split + 3 * row + 1)
    stop = tl.load(split + 3 * row + 2)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    total = tl.zeros([BLOCK], tl.float32)
    square = tl.zeros([BLOCK], tl.float32)
    high = tl.full([BLOCK], -float("inf"), tl.float32)
    low = tl.full([BLOCK], float("inf"), tl.float32)
    number = 0.0
    place = partials + start.to(tl.int64) * (PARTIALS * width) + column
    for slot in range(start, stop):
        total += tl.load(place, mask=inside, other=0.0)
        square += tl.load(place + width, mask=inside, other=0.0)
        high = tl.maximum(high, tl.load(place + 2 * width, mask=inside, other=0.0))
        low = tl.minimum(low, tl.load(place + 3 * width, mask=inside, other=0.0))
        number += tl.load(numbers + slot)
        place += PARTIALS * width
    _finish(
        node, column, total, square, high, low, number, states, boundary, heads, found, counts,
        width, DIM, VARIANCE,
    )  # fmt: skip


def moments(
    states: Tensor,
    relations: Tensor,
    boundary: Tensor,
    heads: Tensor,
    edge_mask: Tensor,
    edges: EdgeIndex,
) -> tuple[Tensor, Tensor]:
    """See `message_moments.moments`; float32 sums in a fixed order."""
    num_nodes, num_queries, dim = states.shape
    width = num_queries * dim
    found = states.new_empty(num_nodes, num_queries, NUM_MOMENTS + 1, dim)
    counts = torch.empty(num_nodes, device=states.device)
    chunks, split = edges.chunks
    num_slots = len(chunks) if len(split) else 0
    if not found.numel():
        return found, counts
    partials = torch.empty(num_slots, NUM_MOMENTS, width, device=states.device)
    numbers = torch.empty(num_slots, device=states.device)
    block = min(COLUMNS_AT_ONCE, triton.next_power_of_2(width))
    columns = triton.cdiv(width, block)
    _moments[(len(chunks), columns)](
        states, relations, boundary, heads, edge_mask, edges.source.rows, edges.relation.rows,
        chunks, found, counts, partials, numbers,
        width, DIM=dim, VARIANCE=SMALLEST_VARIANCE, BLOCK=block, EDGES=NUMBERS_AT_ONCE // block,
        num_warps=WARPS,
    )  # fmt: skip
    if len(split):
        _combine[(len(split), columns)](
            states, boundary, heads, split, partials, numbers, found, counts,
            width, DIM=dim, VARIANCE=SMALLEST_VARIANCE, BLOCK=block, num_warps=WARPS,
        )  # fmt: skip
    return found, counts


@triton.jit
def _gradients(  # type: ignore[no-untyped-def]
    states, relations, edge_mask, sources, relation_rows, chunks, found, counts, gradient,
    gradients, width, DIM: tl.constexpr, CONSTANT: tl.constexpr, BLOCK: tl.constexpr,
    EDGES: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(0)
    node = tl.load(chunks + 4 * chunk)
    start = tl.load(chunks + 4 * chunk + 1)
    stop = tl.load(chunks + 4 * chunk + 2)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    has_column = column < width
    cells = node.to(tl.int64) * (5 * width) + (column // DIM) * (5 * DIM) + column % DIM
    number = tl.load(counts + node)
    mean = tl.load(found + cells, mask=has_column, other=0.0).to(tl.float32)
    deviation = tl.load(found + cells + DIM, mask=has_column, other=1.0).to(tl.float32)
    high = tl.load(found + cells + 2 * DIM, mask=has_column, other=0.0).to(tl.float32)
    low = tl.load(found + cells + 3 * DIM, mask=has_column, other=0.0).to(tl.float32)
    of_mean = tl.load(gradient + cells, mask=has_column, other=0.0).to(tl.float32)
    of_deviation = tl.load(gradient + cells + DIM, mask=has_column, other=0.0).to(tl.float32)
    of_high = tl.load(gradient + cells + 2 * DIM, mask=has_column, other=0.0).to(tl.float32)
    of_low = tl.load(gradient + cells + 3 * DIM, mask=has_column, other=0.0).to(tl.float32)
    is_constant = deviation * deviation <= CONSTANT
    curve = tl.where(is_constant, 0.0, of_deviation / deviation) / number
    slope = of_mean / number
    for begin in range(start, stop, EDGES):
        position = begin + tl.arange(0, EDGES)
        inside = position < stop
        visible = tl.load(edge_mask + position, mask=inside, other=0.0) > 0
        source = tl.load(sources + position, mask=inside, other=0)
        relation = tl.load(relation_rows + position, mask=inside, other=0)
        mask = visible[:, None] & has_column[None, :]
        message = _messages(states, source, relations, relation, column, mask, width)
        value = slope[None, :] + curve[None, :] * (message - mean[None, :])
        value += tl.where(message == high[None, :], of_high[None, :], 0.0)
        value += tl.where(message == low[None, :], of_low[None, :], 0.0)
        value = tl.where(mask, value, 0.0)
        place = position.to(tl.int64)[:, None] * width + column[None, :]
        tl.store(gradients + place, value, mask=inside[:, None] & has_column[None, :])


def message_gradients(
    states: Tensor,
    relations: Tensor,
    edge_mask: Tensor,
    found: Tensor,
    count: Tensor,
    gradient: Tensor,
    edges: EdgeIndex,
) -> Tensor:
    """See `message_moments.message_gradients`."""
    _, num_queries, dim = states.shape
    width = num_queries * dim
    gradients = states.new_empty(edges.num_edges, num_queries, dim)
    if gradients.numel():
        block = min(COLUMNS_AT_ONCE, triton.next_power_of_2(width))
        chunks, _ = edges.chunks
        _gradients[(len(chunks), triton.cdiv(width, block))](
            states, relations, edge_mask, edges.source.rows, edges.relation.rows, chunks,
            found, count, gradient, gradients,
            width, DIM=dim, CONSTANT=variance_of_constants(states.dtype), BLOCK=block,
            EDGES=GRADIENTS_AT_ONCE // block, num_warps=WARPS,
        )  # fmt: skip
    return gradients
