"""Statistics of the messages that reach each node, where a message is source state * relation.

The four statistics of principal neighbourhood aggregation (PNA; Corso et al., 2020): mean, standard
deviation, maximum and minimum. One kernel for CUDA and one for CPUs compute all four in one pass
over the edges and keep no message. The backward pass on CUDA writes the gradient of every message
once, and adds these up by source and by relation (`edge_products`); on a CPU a thread adds them up
itself for one query. So every sum has a fixed order.

Cost of one pass over E edges of width W (queries * dim), in rows of W numbers: forward 2 E read;
backward on CUDA 2 E read and E written for the gradients of messages, then 4 E read to add them up;
on a CPU 4 E read and 2 E written.
"""

from typing import Any

import torch
from torch import Tensor

from nodepiece.encoders import message_moments_cpu
from nodepiece.encoders.bag_sum import has_kernel
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.edge_products import add_products

SMALLEST_VARIANCE = 1e-6
NUM_MOMENTS = 4  # mean, standard deviation, maximum, minimum


def message_moments(
    states: Tensor,  # (num_nodes, num_queries, dim)
    relations: Tensor,  # (num_relations, num_queries, dim)
    boundary: Tensor,  # (num_queries, dim) one more message, at the head of the query
    heads: Tensor,  # (num_queries,)
    edge_mask: Tensor,  # (num_edges,) in the order of `edges`; 0: the edge is not there
    edges: EdgeIndex,  # sorted by target
) -> Tensor:
    """The moments of the messages of every node, and its state: (num_nodes, num_queries, 5, dim).

    Each node has one additional message: the boundary at a head, 0 elsewhere.
    Messages that tie for an extreme all receive its gradient.
    """
    return _MessageMoments.apply(states, relations, boundary, heads, edge_mask, edges)  # type: ignore[no-untyped-call]


class _MessageMoments(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        relations: Tensor,
        boundary: Tensor,
        heads: Tensor,
        edge_mask: Tensor,
        edges: EdgeIndex,
    ) -> Tensor:
        # Kernels read one number after the other, and the heads of a batch may be a column.
        heads, edge_mask = heads.contiguous(), edge_mask.contiguous()
        boundary = boundary.to(states.dtype).contiguous()
        if message_moments_cpu.has_kernel(states, relations):
            found, count = message_moments_cpu.moments(
                states, relations, boundary, heads, edge_mask, edges, SMALLEST_VARIANCE
            )
        else:
            states, relations = states.contiguous(), relations.contiguous()
            if has_kernel(states, relations):
                from nodepiece.encoders import message_moments_cuda  # imports Triton

                moments_of = message_moments_cuda.moments
            else:
                moments_of = moments
            found, count = moments_of(states, relations, boundary, heads, edge_mask, edges)
        ctx.save_for_backward(states, relations, boundary, heads, edge_mask, found, count)
        ctx.edges = edges
        return found

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        states, relations, boundary, heads, edge_mask, found, count = ctx.saved_tensors
        edges: EdgeIndex = ctx.edges
        if message_moments_cpu.has_kernel(states, relations):
            constant = variance_of_constants(states.dtype)
            of_states, of_relations = message_moments_cpu.add_gradients(
                states, relations, edge_mask, found, count, gradient, edges, constant
            )
        else:
            gradient = gradient.contiguous()
            of_states, of_relations = add_gradients(
                states, relations, edge_mask, found, count, gradient, edges
            )
        of_states = of_states + gradient[:, :, NUM_MOMENTS]
        query = torch.arange(len(heads), device=heads.device)
        of_boundary = _gradient_of(
            boundary, found[heads, query], gradient[heads, query], count[heads, None]
        )
        return of_states, of_relations, of_boundary, None, None, None


def moments(
    states: Tensor,
    relations: Tensor,
    boundary: Tensor,
    heads: Tensor,
    edge_mask: Tensor,
    edges: EdgeIndex,
) -> tuple[Tensor, Tensor]:
    """The result of `message_moments`, and the number of messages of each node, (num_nodes,).

    This version holds all messages in memory at once.
    """
    precise = torch.promote_types(states.dtype, torch.float32)  # sums in float32 at least
    query = torch.arange(len(heads), device=heads.device)
    own = torch.zeros_like(states).index_put((heads, query), boundary).to(precise)
    visible = edge_mask > 0
    target = edges.target.rows[visible]
    messages = _messages(states, relations, edges)[visible].to(precise)
    count = 1 + torch.bincount(target, minlength=len(states)).to(precise)
    number = count[:, None, None]
    mean = own.index_add(0, target, messages) / number
    squares = own.square().index_add(0, target, messages.square()) / number
    deviation = (squares - mean.square()).clamp_min(0).add(SMALLEST_VARIANCE).sqrt()
    where = target[:, None, None].expand_as(messages)
    largest = own.scatter_reduce(0, where, messages, "amax")
    smallest = own.scatter_reduce(0, where, messages, "amin")
    found = torch.stack([mean, deviation, largest, smallest, states.to(precise)], dim=2)
    return found.to(states.dtype), count


def add_gradients(
    states: Tensor,
    relations: Tensor,
    edge_mask: Tensor,
    found: Tensor,
    count: Tensor,
    gradient: Tensor,
    edges: EdgeIndex,
) -> tuple[Tensor, Tensor]:
    """The gradients of states and relations through messages, like these."""
    if has_kernel(states, relations):
        from nodepiece.encoders import message_moments_cuda  # imports Triton

        gradients_of = message_moments_cuda.message_gradients
    else:
        gradients_of = message_gradients
    of_messages = gradients_of(states, relations, edge_mask, found, count, gradient, edges)
    each = (of_messages.flatten(start_dim=1), None)
    through = (relations.flatten(start_dim=1), edges.relation.rows)
    of_states = add_products(each, through, edges.source.edges).view_as(states)
    leaving = (states.flatten(start_dim=1), edges.source.rows)
    of_relations = add_products(each, leaving, edges.relation.edges).view_as(relations)
    return of_states.to(states.dtype), of_relations.to(relations.dtype)


def message_gradients(
    states: Tensor,
    relations: Tensor,
    edge_mask: Tensor,
    found: Tensor,  # (num_nodes, num_queries, 5, dim)
    count: Tensor,  # (num_nodes,)
    gradient: Tensor,  # like found
    edges: EdgeIndex,
) -> Tensor:
    """The gradient of every message, 0 where the edge is hidden: (num_edges, num_queries, dim)."""
    at = edges.target.rows
    messages = _messages(states, relations, edges)
    gradients = _gradient_of(messages, found[at], gradient[at], count[at, None, None])
    return gradients * (edge_mask > 0)[:, None, None]


def variance_of_constants(dtype: torch.dtype) -> float:
    """The largest stored variance of messages that are all the same, but for rounding."""
    return SMALLEST_VARIANCE * (1 + 4 * torch.finfo(dtype).eps)


def _messages(states: Tensor, relations: Tensor, edges: EdgeIndex) -> Tensor:
    """(num_edges, num_queries, dim)."""
    return states[edges.source.rows] * relations[edges.relation.rows]


def _gradient_of(messages: Tensor, found: Tensor, gradient: Tensor, count: Tensor) -> Tensor:
    """messages, count: (..., dim); found, gradient: (..., 5, dim); in float32 at least."""
    dtype, precise = found.dtype, torch.promote_types(found.dtype, torch.float32)
    values = messages.to(precise)
    mean, deviation, largest, smallest, _ = found.to(precise).unbind(dim=-2)
    of_mean, of_deviation, of_largest, of_smallest, _ = gradient.to(precise).unbind(dim=-2)
    is_constant = deviation.square() <= variance_of_constants(dtype)
    of_spread = (of_deviation / deviation).masked_fill(is_constant, 0.0)
    inner = (of_mean + of_spread * (values - mean)) / count
    result = inner + of_largest * (values == largest) + of_smallest * (values == smallest)
    return result.to(dtype)
