"""Rows taken along edges and summed over segments, without atomics in either direction.

Message passing needs three linear operations: take a row for every edge (`take_rows`), sum the
values of the edges of each row (`segment_sum`), and both at once with a weight for each edge and
head (`weighted_segment_sum`), without a copy for each edge. The gradient of each is another of
the three, over the same index, so that every sum has a fixed order.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from nodepiece.encoders.bag_sum import HAS_TRITON, Bags, has_kernel, sum_chunks, sum_members

CHUNK_CELLS = 2**17  # numbers that a CPU multiplies at a time, so that they stay in its cache
NARROW = 64  # numbers in a row; from here on a GPU is fast with a block of threads for each row


@dataclass(frozen=True)
class EdgeGroups:
    """Edges grouped by a row of some table: the row of every edge, and the edges of every row."""

    rows: Tensor  # (num_edges,) int64
    num_rows: int
    is_sorted: bool = False  # whether `rows` ascends

    @cached_property
    def edges(self) -> Bags:
        """num_rows bags of edges. On first use it costs one stable sort, unless rows are sorted."""
        rows, edges = self.rows, torch.arange(len(self.rows), device=self.rows.device)
        if not self.is_sorted:
            rows, edges = torch.sort(rows, stable=True)
        ids = torch.arange(self.num_rows + 1, device=rows.device)
        offsets = torch.searchsorted(rows, ids, out_int32=True)
        return Bags(edges.int(), offsets, len(rows))

    @cached_property
    def largest(self) -> int:
        """The largest number of edges of a row. On first use the host waits for the device."""
        return int(self.edges.offsets.diff().max()) if self.num_rows else 0


def group_edges(rows: Tensor, num_rows: int) -> EdgeGroups:
    """Group edges by their rows, (num_edges,)."""
    return EdgeGroups(rows.long().contiguous(), num_rows)


def take_rows(values: Tensor, ends: EdgeGroups) -> Tensor:
    """The row of every edge: (num_rows, dim) -> (num_edges, dim)."""
    return _TakeRows.apply(values, ends)  # type: ignore[no-untyped-call]


def segment_sum(values: Tensor, ends: EdgeGroups) -> Tensor:
    """The sum over the edges of every row: (num_edges, dim) -> (num_rows, dim)."""
    return _SegmentSum.apply(values, ends)  # type: ignore[no-untyped-call]


def weighted_segment_sum(
    rows: Tensor, weights: Tensor, source: EdgeGroups, target: EdgeGroups
) -> Tensor:
    """For every target, the sum over its edges of weight * source row, head by head.

    rows (num_sources, dim), weights (num_edges, heads) -> (num_targets, dim), where
    dim = heads * head_dim, and the weights of an edge scale one head each.
    """
    return _WeightedSegmentSum.apply(rows, weights, source, target)  # type: ignore[no-untyped-call]


class _TakeRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, ends: EdgeGroups) -> Tensor:
        ctx.ends = ends
        return index_rows(values.contiguous(), ends.rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return sum_members(gradient.contiguous(), ctx.ends.edges), None


class _SegmentSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, ends: EdgeGroups) -> Tensor:
        ctx.ends = ends
        return sum_members(values.contiguous(), ends.edges)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return index_rows(gradient.contiguous(), ctx.ends.rows), None


class _WeightedSegmentSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, weights: Tensor, source: EdgeGroups, target: EdgeGroups
    ) -> Tensor:
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
            of_weights = edge_dot_products(rows, gradient, source, target, weights.shape[1])
        return of_rows, of_weights, None, None


def index_rows(values: Tensor, rows: Tensor) -> Tensor:
    """`values` at `rows`: (num_rows, dim), (num_edges,) -> (num_edges, dim).

    On a GPU by our kernel where rows are narrow, as PyTorch uses a block of threads for each row.
    """
    if values.is_cuda and HAS_TRITON and values.shape[1] < NARROW:
        from nodepiece.encoders import segments_cuda  # imports Triton

        return segments_cuda.index_rows(values, rows)
    return values.index_select(0, rows)


def sum_weighted(rows: Tensor, weights: Tensor, source: EdgeGroups, target: EdgeGroups) -> Tensor:
    """The sums of `weighted_segment_sum`, by the kernel for the device."""
    if not rows.is_cuda:
        return _sum_weighted_on_cpu(rows, weights, source, target)
    if not has_kernel(rows):
        carried = rows.index_select(0, source.rows).view(*weights.shape, -1) * weights[:, :, None]
        return sum_members(carried.flatten(start_dim=1), target.edges)
    from nodepiece.encoders import segments_cuda  # imports Triton

    return sum_chunks(
        target.edges,
        lambda chunks: segments_cuda.sum_weighted(
            rows, weights, source.rows, target.edges.members, chunks
        ),
    )


def _sum_weighted_on_cpu(
    rows: Tensor, weights: Tensor, source: EdgeGroups, target: EdgeGroups
) -> Tensor:
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


def edge_dot_products(
    left: Tensor, right: Tensor, source: EdgeGroups, target: EdgeGroups, heads: int
) -> Tensor:
    """The dot product of source and target rows for every edge and head: (num_edges, heads)."""
    if has_kernel(left, right):
        from nodepiece.encoders import segments_cuda  # imports Triton

        return segments_cuda.edge_dot_products(left, right, source.rows, target.rows, heads)
    num_edges, dim = len(source.rows), left.shape[1]
    size = max(1, num_edges if left.is_cuda else CHUNK_CELLS // max(1, dim))
    sums = [left.new_empty(0, heads)]
    for first in range(0, num_edges, size):
        start, end = source.rows[first : first + size], target.rows[first : first + size]
        product = left.index_select(0, start) * right.index_select(0, end)
        sums.append(product.view(len(start), heads, -1).sum(dim=-1))
    return torch.cat(sums)


def segment_softmax(scores: Tensor, target: EdgeGroups, edge_mask: Tensor | None) -> Tensor:
    """(num_edges, heads): softmax over the edges of each target, head by head.

    Edges are sorted by target. edge_mask: (num_edges, 1); an edge with mask 0 is left out, and a
    target without any other edge gets zeros.
    """
    if edge_mask is not None:
        scores = scores.masked_fill(edge_mask <= 0, -torch.inf)
    with torch.no_grad():  # any shift that the edges of a target share gives the same softmax
        largest = segment_max(scores, target).nan_to_num_(neginf=0.0)
    powers = (scores - index_rows(largest, target.rows)).exp()
    if edge_mask is not None:
        powers = powers * edge_mask
    tiny = torch.finfo(powers.dtype).tiny
    return powers / take_rows(segment_sum(powers, target).clamp_min(tiny), target)


def segment_max(values: Tensor, target: EdgeGroups) -> Tensor:
    """(num_edges, dim), edges sorted by target -> (num_targets, dim), -inf where there are none."""
    offsets = target.edges.offsets
    if values.is_cuda:  # in two levels, so that no thread gets a long segment
        chunks, offsets = target.edges.chunks
        values = torch.segment_reduce(values, "max", offsets=chunks, axis=0, unsafe=True)
    return torch.segment_reduce(values, "max", offsets=offsets, axis=0, unsafe=True)
