"""Attention of a node to its edges: a softmax of leaky_relu(node part + message part), by head.

On a GPU one kernel computes it, and four its gradient: on graphs of a few thousand nodes the number
of kernels decides the time of a step.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import leaky_relu

from nodepiece.encoders.bag_sum import has_kernel, sum_members
from nodepiece.encoders.parameters import Dropout
from nodepiece.encoders.segments import EdgeGroups, segment_softmax, take_rows

LONG = 4096  # edges of a target; one program of the kernel would be slow with more


def edge_attention(
    of_nodes: Tensor,  # (num_nodes, heads)
    of_messages: Tensor,  # (num_messages, heads)
    source: EdgeGroups,  # the message of every edge
    target: EdgeGroups,  # edges are sorted by it; target i is of the node i % num_nodes
    edge_mask: Tensor | None,  # (num_edges, 1) 0: left out; without gradient
    *,
    slope: float,
    dropout: Dropout,
) -> Tensor:
    """The share of every edge in the sum of its target: (num_edges, heads)."""
    if has_kernel(of_nodes, of_messages) and target.largest <= LONG:
        shape = len(source.rows), of_messages.shape[1]
        factors = dropout.factors(of_messages.new_empty(shape, dtype=torch.float32))
        ends = (source, target)
        return _EdgeAttention.apply(of_nodes, of_messages, ends, edge_mask, factors, slope)  # type: ignore[no-untyped-call]
    of_targets = take_rows(of_nodes.repeat(num_directions(of_nodes, target), 1), target)
    scores = leaky_relu(of_targets + take_rows(of_messages, source), slope)
    return dropout(segment_softmax(scores, target, edge_mask))


def num_directions(of_nodes: Tensor, target: EdgeGroups) -> int:
    """How many targets a node has."""
    return target.num_rows // max(1, len(of_nodes))


class _EdgeAttention(torch.autograd.Function):
    """`edge_attention` by kernels for GPUs, in float32; `factors` are those of dropout."""

    @staticmethod
    def forward(
        ctx: Any,
        of_nodes: Tensor,
        of_messages: Tensor,
        ends: tuple[EdgeGroups, EdgeGroups],
        edge_mask: Tensor | None,
        factors: Tensor | None,
        slope: float,
    ) -> Tensor:
        from nodepiece.encoders import edge_attention_cuda  # imports Triton

        of_nodes, of_messages = of_nodes.contiguous(), of_messages.contiguous()
        source, target = ends
        softmax, shares = edge_attention_cuda.attend(
            of_nodes,
            of_messages,
            source.rows,
            target.edges.offsets,
            None if edge_mask is None else edge_mask.float().contiguous(),
            factors,
            slope,
        )
        ctx.save_for_backward(of_nodes, of_messages, softmax, factors)
        ctx.ends, ctx.slope = ends, slope
        return shares

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from nodepiece.encoders import edge_attention_cuda  # imports Triton

        of_nodes, of_messages, softmax, factors = ctx.saved_tensors
        source, target = ctx.ends
        of_targets, of_edges = edge_attention_cuda.attend_backwards(
            gradient.float().contiguous(),
            of_nodes,
            of_messages,
            source.rows,
            target.edges.offsets,
            softmax,
            factors,
            ctx.slope,
        )
        by_direction = of_targets.view(num_directions(of_nodes, target), *of_nodes.shape)
        to_nodes = by_direction.sum(dim=0).to(of_nodes.dtype)
        to_messages = sum_members(of_edges, source.edges).to(of_messages.dtype)
        return to_nodes, to_messages, None, None, None, None
