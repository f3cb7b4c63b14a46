"""The inner loops of `message_moments` on a CPU, in numba.

Arrays are query after query, as the states of one query fit into a cache. The forward pass is
parallel over queries and targets, the backward pass over queries: a thread adds the gradients of
messages to their sources and relations, and keeps none. The order of every sum is fixed.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from nodepiece.compiled import njit, prange
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.lanes import (
    LANES,
    fill,
    larger,
    load,
    smaller,
    square_root,
    store,
    where_equal,
    where_larger,
)
from nodepiece.graph.arrays import IntArray

NUM_ROWS = 5  # of a node: the moments and its state


def has_kernel(*values: Tensor) -> bool:
    """Whether the tensors are on a CPU, of one type that the kernels know."""
    kinds = {value.dtype for value in values}
    is_known = kinds in ({torch.float32}, {torch.float64})
    return is_known and all(value.device.type == "cpu" for value in values)


def moments(
    states: Tensor,
    relations: Tensor,
    boundary: Tensor,
    heads: Tensor,
    edge_mask: Tensor,
    edges: EdgeIndex,
    smallest_variance: float,
) -> tuple[Tensor, Tensor]:
    """See `message_moments.moments`; the result has queries first in memory."""
    num_nodes, num_queries, dim = states.shape
    by_query, factors, first = (_lanes_by_query(x) for x in (states, relations, boundary[None]))
    width = by_query.shape[2]
    found = by_query.new_empty(num_queries, num_nodes, NUM_ROWS, width)
    counts = by_query.new_ones(max(1, num_queries), num_nodes)
    _moments(
        by_query.flatten(start_dim=1).numpy(),
        factors.flatten(start_dim=1).numpy(),
        first.flatten(start_dim=1).numpy(),
        heads.numpy(),
        edge_mask.detach().numpy(),
        _edges_of(edges),
        edges.target_blocks,
        smallest_variance,
        width,
        found.flatten(start_dim=1).numpy(),
        counts.numpy(),
    )
    return found[..., :dim].transpose(0, 1), counts[0]


def add_gradients(
    states: Tensor,
    relations: Tensor,
    edge_mask: Tensor,
    found: Tensor,
    count: Tensor,
    gradient: Tensor,
    edges: EdgeIndex,
    variance_of_constants: float,
) -> tuple[Tensor, Tensor]:
    """The gradients of states and relations through messages, like these."""
    dim = states.shape[2]
    given = [_lanes_by_query(x) for x in (states, relations, found, gradient)]
    of_states, of_relations = torch.zeros_like(given[0]), torch.zeros_like(given[1])
    arrays = [x.flatten(start_dim=1).numpy() for x in given]
    _add_gradients(
        arrays[0],
        arrays[1],
        arrays[2],
        arrays[3],
        edge_mask.detach().numpy(),
        count.numpy(),
        _edges_of(edges),
        variance_of_constants,
        given[0].shape[2],
        of_states.flatten(start_dim=1).numpy(),
        of_relations.flatten(start_dim=1).numpy(),
    )
    return tuple(each[..., :dim].transpose(0, 1) for each in (of_states, of_relations))  # type: ignore[return-value]


def _lanes_by_query(values: Tensor) -> Tensor:
    """(rows, num_queries, ..., dim) -> (num_queries, rows, ..., dim), dim a multiple of LANES.

    No copy where the values are so in memory already.
    """
    values, missing = values.detach().transpose(0, 1), -values.shape[-1] % LANES
    return (pad(values, (0, missing)) if missing else values).contiguous()


def _edges_of(edges: EdgeIndex) -> tuple[IntArray, IntArray, IntArray]:
    """Offsets of the targets; source and relation of every edge."""
    return tuple(each.numpy() for each in edges.compressed_rows)  # type: ignore[return-value]


@njit(cache=True)
def _moments_of(  # type: ignore[no-untyped-def]
    node, is_head, width, states, relations, boundary, edge_mask, edges, variance, found
):
    """Write the moments of the messages of a node and its state; return the number of messages."""
    offsets, sources, relation_rows = edges
    number = 1
    for column in range(0, width, LANES):
        number = 1
        total = load(boundary, column) if is_head else fill(found, 0)
        squares, high, low = total * total, total, total
        for edge in range(offsets[node], offsets[node + 1]):
            if edge_mask[edge] > 0:
                source, relation = np.intp(sources[edge]), np.intp(relation_rows[edge])
                state = load(states, source * width + column)
                message = state * load(relations, relation * width + column)
                total = total + message
                squares = squares + message * message
                high, low = larger(message, high), smaller(message, low)
                number += 1
        divisor = fill(found, number)
        mean = total / divisor
        spread = larger(squares / divisor - mean * mean, fill(found, 0))
        place = NUM_ROWS * node * width + column
        store(found, place, mean)
        store(found, place + width, square_root(spread + fill(found, variance)))
        store(found, place + 2 * width, high)
        store(found, place + 3 * width, low)
        store(found, place + 4 * width, load(states, node * width + column))
    return number


@njit(cache=True)
def _moments_of_block(  # type: ignore[no-untyped-def]
    nodes, head, width, states, relations, boundary, edge_mask, edges, variance, found, count
):
    """The moments of the nodes from nodes[0] to nodes[1] for one query."""
    for node in range(nodes[0], nodes[1]):
        count[node] = _moments_of(
            node, node == head, width, states, relations, boundary, edge_mask, edges, variance,
            found,
        )  # fmt: skip


@njit(parallel=True, cache=True)
def _moments(  # type: ignore[no-untyped-def]
    states, relations, boundary, heads, edge_mask, edges, blocks, variance, width, found, counts
):
    """Arrays are (num_queries, ...), and flat for each query; counts: (num_queries, num_nodes)."""
    num_blocks = len(blocks) - 1
    for task in prange(len(heads) * num_blocks):
        query, block = task // num_blocks, task % num_blocks
        _moments_of_block(
            blocks[block : block + 2], heads[query], width, states[query], relations[query],
            boundary[query], edge_mask, edges, variance, found[query], counts[query],
        )  # fmt: skip


@njit(cache=True)
def _add_gradients_of(  # type: ignore[no-untyped-def]
    node, number, width, states, relations, found, gradient, edge_mask, edges, constant,
    of_states, of_relations,
):  # fmt: skip
    """Add the gradients of the messages of a node to their sources and relations."""
    offsets, sources, relation_rows = edges
    for column in range(0, width, LANES):
        place = NUM_ROWS * node * width + column
        mean, deviation = load(found, place), load(found, place + width)
        high, low = load(found, place + 2 * width), load(found, place + 3 * width)
        of_high, of_low = load(gradient, place + 2 * width), load(gradient, place + 3 * width)
        slope = load(gradient, place) / fill(found, number)
        curve = load(gradient, place + width) / (deviation * fill(found, number))
        curve = where_larger(deviation * deviation, fill(found, constant), curve)
        for edge in range(offsets[node], offsets[node + 1]):
            if edge_mask[edge] > 0:
                at_source = np.intp(sources[edge]) * width + column
                at_relation = np.intp(relation_rows[edge]) * width + column
                state, factor = load(states, at_source), load(relations, at_relation)
                message = state * factor
                value = slope + curve * (message - mean)
                value = value + where_equal(message, high, of_high)
                value = value + where_equal(message, low, of_low)
                store(of_states, at_source, load(of_states, at_source) + value * factor)
                store(of_relations, at_relation, load(of_relations, at_relation) + value * state)


@njit(cache=True)
def _add_gradients_of_query(  # type: ignore[no-untyped-def]
    width, states, relations, found, gradient, edge_mask, count, edges, constant,
    of_states, of_relations,
):  # fmt: skip
    for node in range(len(count)):
        _add_gradients_of(
            node, count[node], width, states, relations, found, gradient, edge_mask, edges,
            constant, of_states, of_relations,
        )  # fmt: skip


@njit(parallel=True, cache=True)
def _add_gradients(  # type: ignore[no-untyped-def]
    states, relations, found, gradient, edge_mask, count, edges, constant, width,
    of_states, of_relations,
):  # fmt: skip
    for query in prange(len(states)):
        _add_gradients_of_query(
            width, states[query], relations[query], found[query], gradient[query], edge_mask,
            count, edges, states.dtype.type(constant), of_states[query], of_relations[query],
        )  # fmt: skip
