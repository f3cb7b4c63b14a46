"""The inner loops of `edge_attention` on a GPU, in Triton: a program for every target."""

import torch
import triton
import triton.language as tl
from torch import Tensor

EDGES_AT_ONCE = 32
SMALLEST_SUM = torch.finfo(torch.float32).tiny


@triton.jit
def _sums_of_scores(of_messages, pairs, own, edge, inside, head, heads):  # type: ignore[no-untyped-def]
    """The node part plus the message part of some edges: [EDGES, HEADS]."""
    pair = tl.load(pairs + edge, mask=inside, other=0)
    cells = inside[:, None] & (head < heads)[None, :]
    message = tl.load(of_messages + pair[:, None] * heads + head[None, :], mask=cells, other=0.0)
    return own[None, :] + message.to(tl.float32)


@triton.jit
def _scores(  # type: ignore[no-untyped-def]
    of_messages, pairs, edge_mask, own, edge, inside, head, heads, slope, HAS_MASK: tl.constexpr
):
    """Scores of some edges, -inf where left out, and their weights: [EDGES, HEADS], [EDGES, 1]."""
    total = _sums_of_scores(of_messages, pairs, own, edge, inside, head, heads)
    score = tl.where(total > 0, total, total * slope)
    weight = tl.where(inside, 1.0, 0.0)
    if HAS_MASK:
        weight = tl.load(edge_mask + edge, mask=inside, other=0.0)
    return tl.where((weight > 0)[:, None], score, float("-inf")), weight[:, None]


@triton.jit
def _attend(  # type: ignore[no-untyped-def]
    of_nodes,
    of_messages,
    pairs,
    offsets,
    edge_mask,
    factors,
    softmax,
    shares,
    num_nodes,
    heads,
    slope,
    smallest_sum,
    HAS_MASK: tl.constexpr,
    HAS_FACTORS: tl.constexpr,
    HEADS: tl.constexpr,
    EDGES: tl.constexpr,
):
    target = tl.program_id(0)
    start = tl.load(offsets + target)
    stop = tl.load(offsets + target + 1)
    head = tl.arange(0, HEADS)
    node = (target % num_nodes).to(tl.int64)
    own = tl.load(of_nodes + node * heads + head, mask=head < heads, other=0.0).to(tl.float32)
    largest = tl.full([HEADS], float("-inf"), tl.float32)
    for first in range(start, stop, EDGES):
        edge = first + tl.arange(0, EDGES)
        score, weight = _scores(
            of_messages, pairs, edge_mask, own, edge, edge < stop, head, heads, slope, HAS_MASK
        )
        largest = tl.maximum(largest, tl.max(score, axis=0))
    largest = tl.where(largest == float("-inf"), 0.0, largest)  # all edges are left out
    total = tl.zeros([HEADS], tl.float32)
    for first in range(start, stop, EDGES):
        edge = first + tl.arange(0, EDGES)
        score, weight = _scores(
            of_messages, pairs, edge_mask, own, edge, edge < stop, head, heads, slope, HAS_MASK
        )
        total += tl.sum(tl.exp(score - largest[None, :]) * weight, axis=0)
    total = tl.maximum(total, smallest_sum)
    for first in range(start, stop, EDGES):
        edge = first + tl.arange(0, EDGES)
        score, weight = _scores(
            of_messages, pairs, edge_mask, own, edge, edge < stop, head, heads, slope, HAS_MASK
        )
        share = tl.exp(score - largest[None, :]) * weight / total[None, :]
        cell = edge.to(tl.int64)[:, None] * heads + head[None, :]
        cells = (edge < stop)[:, None] & (head < heads)[None, :]
        tl.store(softmax + cell, share, mask=cells)
        if HAS_FACTORS:
            factor = tl.load(factors + cell, mask=cells, other=0.0)
            tl.store(shares + cell, share * factor, mask=cells)


def attend(
    of_nodes: Tensor,
    of_messages: Tensor,
    pairs: Tensor,  # (num_edges,) int64 the message of every edge
    offsets: Tensor,  # (num_targets + 1,) where the edges of each target start
    edge_mask: Tensor | None,
    factors: Tensor | None,  # (num_edges, heads)
    slope: float,
) -> tuple[Tensor, Tensor]:
    """The softmax of every edge, and it times `factors`: (num_edges, heads) in float32, twice."""
    heads = of_nodes.shape[1]
    softmax = of_nodes.new_empty(len(pairs), heads, dtype=torch.float32)
    shares = softmax if factors is None else torch.empty_like(softmax)
    if softmax.numel():
        _attend[(len(offsets) - 1,)](
            of_nodes,
            of_messages,
            pairs,
            offsets,
            edge_mask,
            factors,
            softmax,
            shares,
            len(of_nodes),
            heads,
            slope,
            SMALLEST_SUM,
            HAS_MASK=edge_mask is not None,
            HAS_FACTORS=factors is not None,
            HEADS=triton.next_power_of_2(heads),
            EDGES=EDGES_AT_ONCE,
            num_warps=1,
        )
    return softmax, shares


@triton.jit
def _before_dropout(gradient, factors, cell, cells, HAS_FACTORS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The gradient of the softmax of some edges."""
    slopes = tl.load(gradient + cell, mask=cells, other=0.0)
    if HAS_FACTORS:
        slopes *= tl.load(factors + cell, mask=cells, other=0.0)
    return slopes


@triton.jit
def _attend_backwards(  # type: ignore[no-untyped-def]
    gradient,
    of_nodes,
    of_messages,
    pairs,
    offsets,
    softmax,
    factors,
    of_targets,
    of_edges,
    num_nodes,
    heads,
    slope,
    HAS_FACTORS: tl.constexpr,
    HEADS: tl.constexpr,
    EDGES: tl.constexpr,
):
    target = tl.program_id(0)
    start = tl.load(offsets + target)
    stop = tl.load(offsets + target + 1)
    head = tl.arange(0, HEADS)
    node = (target % num_nodes).to(tl.int64)
    own = tl.load(of_nodes + node * heads + head, mask=head < heads, other=0.0).to(tl.float32)
    mean = tl.zeros([HEADS], tl.float32)
    for first in range(start, stop, EDGES):
        edge = first + tl.arange(0, EDGES)
        cell = edge.to(tl.int64)[:, None] * heads + head[None, :]
        cells = (edge < stop)[:, None] & (head < heads)[None, :]
        slopes = _before_dropout(gradient, factors, cell, cells, HAS_FACTORS)
        mean += tl.sum(tl.load(softmax + cell, mask=cells, other=0.0) * slopes, axis=0)
    of_target = tl.zeros([HEADS], tl.float32)
    for first in range(start, stop, EDGES):
        edge = first + tl.arange(0, EDGES)
        cell = edge.to(tl.int64)[:, None] * heads + head[None, :]
        cells = (edge < stop)[:, None] & (head < heads)[None, :]
        slopes = _before_dropout(gradient, factors, cell, cells, HAS_FACTORS)
        slopes = tl.load(softmax + cell, mask=cells, other=0.0) * (slopes - mean[None, :])
        total = _sums_of_scores(of_messages, pairs, own, edge, edge < stop, head, heads)
        slopes = tl.where(total > 0, slopes, slopes * slope)
        tl.store(of_edges + cell, slopes, mask=cells)
        of_target += tl.sum(slopes, axis=0)
    tl.store(of_targets + target.to(tl.int64) * heads + head, of_target, mask=head < heads)


def attend_backwards(
    gradient: Tensor,  # (num_edges, heads) of the shares
    of_nodes: Tensor,
    of_messages: Tensor,
    pairs: Tensor,
    offsets: Tensor,
    softmax: Tensor,
    factors: Tensor | None,
    slope: float,
) -> tuple[Tensor, Tensor]:
    """Gradients of the parts of targets and of messages: (num_targets, heads) and of every edge."""
    heads, num_targets = of_nodes.shape[1], len(offsets) - 1
    of_targets = of_nodes.new_empty(num_targets, heads, dtype=torch.float32)
    of_edges = torch.empty_like(softmax)
    if of_targets.numel():
        _attend_backwards[(num_targets,)](
            gradient,
            of_nodes,
            of_messages,
            pairs,
            offsets,
            softmax,
            factors,
            of_targets,
            of_edges,
            len(of_nodes),
            heads,
            slope,
            HAS_FACTORS=factors is not None,
            HEADS=triton.next_power_of_2(heads),
            EDGES=EDGES_AT_ONCE,
            num_warps=1,
        )
    return of_targets, of_edges
