"""Rows spread along edges and added up again, without atomics in either direction.

Message passing needs three linear operations: give every edge the row of its end (`spread`), add up
what the edges of an end carry (`gather`), and both at once with a weight for each edge and
head (`weighted_sum`), where no row is ever copied for an edge. The gradient of each is another of
the three, over the same index, so that every sum has a fixed order.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from nodepiece.encoders.bag_sum import HAS_TRITON, Bags, has_kernel, sum_chunks, sum_members

CHUNK_CELLS = 2**17  # numbers that a CPU multiplies at a time, so that they stay in its cache
NARROW = 64  # numbers in a row, from which a GPU does well with a block of threads for each


@dataclass(frozen=True)
class Ends:
    """One end of every edge: a row of some table; and for every row, the edges that end there."""

    rows: Tensor  # (num_edges,) int64
    edges: Bags  # num_rows bags of edges


def ends_at(rows: Tensor, num_rows: int) -> Ends:
    """Costs one stable sort. rows: (num_edges,)."""
    found, edges = torch.sort(rows, stable=True)
    ids = torch.arange(num_rows + 1, device=rows.device, dtype=rows.dtype)
    offsets = torch.searchsorted(found, ids, out_int32=True)
    return Ends(rows.long().contiguous(), Bags(edges.int(), offsets, len(rows)))


def spread(values: Tensor, ends: Ends) -> Tensor:
    """(num_rows, dim) -> (num_edges, dim): for every edge the row at its end."""
    return _Spread.apply(values, ends)  # type: ignore[no-untyped-call]


def gather(values: Tensor, ends: Ends) -> Tensor:
    """(num_edges, dim) -> (num_rows, dim): for every row the sum over the edges that end there."""
    return _Gather.apply(values, ends)  # type: ignore[no-untyped-call]


def weighted_sum(rows: Tensor, weights: Tensor, source: Ends, target: Ends) -> Tensor:
    """What the edges of every target carry from their sources, weighted head by head.

    rows (num_sources, dim), weights (num_edges, heads) -> (num_targets, dim), where
    dim = heads * head_dim, and the weights of an edge scale one head each.
    """
    return _WeightedSum.apply(rows, weights, source, target)  # type: ignore[no-untyped-call]


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, ends: Ends) -> Tensor:
        ctx.ends = ends
        return take_rows(values.contiguous(), ends.rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return sum_members(gradient.contiguous(), ctx.ends.edges), None


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, ends: Ends) -> Tensor:
        ctx.ends = ends
        return sum_members(values.contiguous(), ends.edges)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return take_rows(gradient.contiguous(), ctx.ends.rows), None


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weights: Tensor, source: Ends, target: Ends) -> Tensor:
        rows, weights = rows.contiguous(), weights.to(rows.dtype).contiguous()
        ctx.save_for_backward(rows if ctx.needs_input_grad[1] else None, weights)
        ctx.source, ctx.target = source, target
        return sum_weighted(rows, weights, source, target)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        rows, weights = ctx.saved_tensors
        gradient, source, target = gradient.contiguous(), ctx.source, ctx.target
        of_rows, of_weights = None, None
        if ctx.needs_input_grad[0]:
            of_rows = sum_weighted(gradient, weights, target, source)
        if ctx.needs_input_grad[1]:
            of_weights = products_of_ends(rows, gradient, source, target, weights.shape[1])
        return of_rows, of_weights, None, None


def take_rows(values: Tensor, rows: Tensor) -> Tensor:
    """(num_rows, dim), (num_edges,) -> (num_edges, dim). PyTorch has a whole block for each row."""
    if values.is_cuda and HAS_TRITON and values.shape[1] < NARROW:
        from nodepiece.encoders import edge_sums_cuda  # imports Triton

        return edge_sums_cuda.take_rows(values, rows)
    return values.index_select(0, rows)


def sum_weighted(rows: Tensor, weights: Tensor, source: Ends, target: Ends) -> Tensor:
    """The sums of `weighted_sum`, by what suits the device."""
    if not rows.is_cuda:
        return _sum_weighted_on_cpu(rows, weights, source, target)
    if not has_kernel(rows):
        carried = rows.index_select(0, source.rows).view(*weights.shape, -1) * weights[:, :, None]
        return sum_members(carried.flatten(start_dim=1), target.edges)
    from nodepiece.encoders import edge_sums_cuda  # imports Triton

    return sum_chunks(
        target.edges,
        lambda chunks: edge_sums_cuda.sum_weighted(
            rows, weights, source.rows, target.edges.members, chunks
        ),
    )


def _sum_weighted_on_cpu(rows: Tensor, weights: Tensor, source: Ends, target: Ends) -> Tensor:
    edges, heads = target.edges, weights.shape[1]
    members = source.rows.index_select(0, edges.members)
    scales = weights.index_select(0, edges.members).T.contiguous()  # (heads, num_edges)
    sums = [
        embedding_bag(
            members,
            part.contiguous(),
            edges.offsets.long(),
            mode="sum",
            per_sample_weights=scale,
            include_last_offset=True,
        )
        for part, scale in zip(rows.chunk(heads, dim=1), scales, strict=True)
    ]
    return torch.cat(sums, dim=1)


def products_of_ends(left: Tensor, right: Tensor, source: Ends, target: Ends, heads: int) -> Tensor:
    """For every edge and head the product of the rows at both ends: (num_edges, heads)."""
    if has_kernel(left, right):
        from nodepiece.encoders import edge_sums_cuda  # imports Triton

        return edge_sums_cuda.products_of_ends(left, right, source.rows, target.rows, heads)
    num_edges, dim = len(source.rows), left.shape[1]
    size = max(1, num_edges if left.is_cuda else CHUNK_CELLS // max(1, dim))
    sums = [left.new_empty(0, heads)]
    for first in range(0, num_edges, size):
        start, end = source.rows[first : first + size], target.rows[first : first + size]
        product = left.index_select(0, start) * right.index_select(0, end)
        sums.append(product.view(len(start), heads, -1).sum(dim=-1))
    return torch.cat(sums)


def softmax_over_edges(scores: Tensor, target: Ends, weight: Tensor | None) -> Tensor:
    """(num_edges, heads): softmax over the edges of each target, head by head.

    Edges are sorted by target. weight: (num_edges, 1); an edge of weight 0 is as if it were not
    there, and a target without any other hears nothing.
    """
    if weight is not None:
        scores = scores.masked_fill(weight <= 0, -torch.inf)
    with torch.no_grad():  # any shift that the edges of a target share gives the same softmax
        largest = largest_of_edges(scores, target).nan_to_num_(neginf=0.0)
    powers = (scores - take_rows(largest, target.rows)).exp()
    if weight is not None:
        powers = powers * weight
    tiny = torch.finfo(powers.dtype).tiny
    return powers / spread(gather(powers, target).clamp_min(tiny), target)


def largest_of_edges(values: Tensor, target: Ends) -> Tensor:
    """(num_edges, dim), edges sorted by target -> (num_targets, dim), -inf where there are none."""
    offsets = target.edges.offsets
    if values.is_cuda:  # in two levels, so that no thread is left with a long segment
        chunks, offsets = target.edges.chunks
        values = torch.segment_reduce(values, "max", offsets=chunks, axis=0, unsafe=True)
    return torch.segment_reduce(values, "max", offsets=offsets, axis=0, unsafe=True)
