"""`WalkGraph.walk` for a CPU: one query at a time, over nodes of nonzero probability only.

In a sparse graph a few steps reach few nodes. So there is no product over all edges, and no memory
for them: the backward pass repeats the walk. The order of every sum is fixed.
"""

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from nodepiece.compiled import njit, prange
from nodepiece.decoders.walk_graph import WalkGraph
from nodepiece.graph.arrays import BoolArray, FloatArray, IntArray

Edges = tuple[IntArray, IntArray, IntArray, IntArray, FloatArray]  # see `edges_by_tail`
EdgesAndHubs = tuple[IntArray, IntArray, IntArray, IntArray, FloatArray, BoolArray]


def walk(heads: Tensor, preferences: Tensor, mix: Tensor, walk_graph: WalkGraph) -> Tensor:
    """The result of `walk_graph.walk`, if `can_walk` allows it: (num_nodes, batch)."""
    edges, is_hub = edges_by_tail(walk_graph), walk_graph.is_hub.numpy()
    total: Tensor = _Walk.apply(preferences, mix, heads.numpy(), (*edges, is_hub))  # type: ignore[no-untyped-call]
    return total.T.contiguous()  # the layout of the tensors that it is added to


def can_walk(preferences: Tensor, mix: Tensor, walk_graph: WalkGraph) -> bool:
    """Whether the tensors are on a CPU, of one type that numba knows, without query edges."""
    kinds = {preferences.dtype, mix.dtype, walk_graph.edge_mask.dtype}
    is_known = kinds in ({torch.float32}, {torch.float64})
    return is_known and walk_graph.query_edges is None and not mix.is_cuda


def edges_by_tail(walk_graph: WalkGraph) -> Edges:
    """Offsets and ids of edges by tail; heads, relations and probabilities of all edges."""
    tails = walk_graph.edge_index.source.edges
    rows = (
        tails.offsets,
        tails.members,
        walk_graph.edge_index.target.rows,
        walk_graph.edge_index.relation.rows,
    )
    offsets, members, heads, relations = (each.numpy() for each in rows)
    return offsets, members, heads, relations, walk_graph.chances.detach().numpy()


class _Walk(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, preferences: Tensor, mix: Tensor, heads: IntArray, edges: EdgesAndHubs
    ) -> Tensor:
        """(batch, num_nodes), so that each query writes to consecutive memory."""
        preferences, mix = preferences.contiguous(), mix.contiguous()
        ctx.save_for_backward(preferences, mix)
        ctx.heads, ctx.edges = heads, edges
        arrays = preferences.detach().numpy(), mix.detach().numpy()
        return torch.from_numpy(_walk_all(heads, *arrays, edges, numba.get_num_threads()))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        preferences, mix = (each.numpy() for each in ctx.saved_tensors)
        slopes = gradient.contiguous().numpy()
        threads = numba.get_num_threads()
        of_both = _walk_back(ctx.heads, preferences, mix, ctx.edges, slopes, threads)
        of_preferences, of_mix = (torch.from_numpy(each) for each in of_both)
        return of_preferences, of_mix, None, None


@njit(cache=True)
def _walk_one(row, head, preferences, edges, chance, seen, places, counts):  # type: ignore[no-untyped-def]
    """Compute the nodes of nonzero probability, and their probabilities, after each step.

    chance, seen, places: (num_steps + 1, num_nodes). `seen` is row + 1 where `chance` belongs to
    this query, so that nothing has to be cleared; `places` starts with the nodes, `counts` has
    their number.
    """
    offsets, members, heads, relations, shares, is_hub = edges
    chance[0, head], seen[0, head], places[0, 0], counts[0] = 1.0, row + 1, head, 1
    for step in range(len(preferences)):
        counts[step + 1] = 0
        if step > 0 and is_hub[head]:
            continue
        for place in range(counts[step]):
            node = places[step, place]
            if step > 0 and is_hub[node]:
                continue
            for position in range(offsets[node], offsets[node + 1]):
                edge = members[position]
                there = heads[edge]
                if seen[step + 1, there] != row + 1:
                    seen[step + 1, there] = row + 1
                    chance[step + 1, there] = 0.0
                    places[step + 1, counts[step + 1]] = there
                    counts[step + 1] += 1
                share = shares[edge] * preferences[step, relations[edge], row]
                chance[step + 1, there] += share * chance[step, node]


@njit(parallel=True, cache=True)
def _walk_all(heads, preferences, mix, edges, num_threads):  # type: ignore[no-untyped-def]
    num_levels, num_nodes = len(preferences) + 1, len(edges[0]) - 1
    total = np.zeros((len(heads), num_nodes), preferences.dtype)
    for thread in prange(num_threads):
        chance = np.zeros((num_levels, num_nodes), preferences.dtype)
        seen = np.zeros((num_levels, num_nodes), np.int32)
        places = np.zeros((num_levels, num_nodes), np.int32)
        counts = np.zeros(num_levels, np.int64)
        for row in range(thread, len(heads), num_threads):
            _walk_one(row, heads[row], preferences, edges, chance, seen, places, counts)
            for step in range(1, num_levels):
                for node in places[step, : counts[step]]:
                    total[row, node] += mix[step - 1, row] * chance[step, node]
            total[row, heads[row]] = 0.0  # the head itself is not an answer
    return total


@njit(parallel=True, cache=True)
def _walk_back(heads, preferences, mix, edges, slopes, num_threads):  # type: ignore[no-untyped-def]
    """The gradients of preferences and mix; slopes: (batch, num_nodes)."""
    offsets, members, edge_heads, relations, shares, is_hub = edges
    num_levels, num_nodes = len(preferences) + 1, len(offsets) - 1
    of_preferences, of_mix = np.zeros_like(preferences), np.zeros_like(mix)
    for thread in prange(num_threads):
        chance = np.zeros((num_levels, num_nodes), preferences.dtype)
        slope = np.zeros((num_levels, num_nodes), preferences.dtype)  # of being there after steps
        seen = np.zeros((num_levels, num_nodes), np.int32)
        places = np.zeros((num_levels, num_nodes), np.int32)
        counts = np.zeros(num_levels, np.int64)
        for row in range(thread, len(heads), num_threads):
            _walk_one(row, heads[row], preferences, edges, chance, seen, places, counts)
            for step in range(num_levels - 1, -1, -1):
                for node in places[step, : counts[step]]:
                    slope[step, node] = 0.0
                    if step > 0 and node != heads[row]:
                        of_mix[step - 1, row] += slopes[row, node] * chance[step, node]
                        slope[step, node] = mix[step - 1, row] * slopes[row, node]
                    if step + 1 == num_levels or counts[step + 1] == 0:
                        continue
                    if step > 0 and is_hub[node]:
                        continue
                    for position in range(offsets[node], offsets[node + 1]):
                        edge = members[position]
                        carried = shares[edge] * slope[step + 1, edge_heads[edge]]
                        relation = relations[edge]
                        of_preferences[step, relation, row] += carried * chance[step, node]
                        slope[step, node] += carried * preferences[step, relation, row]
    return of_preferences, of_mix
