"""PageRank by accelerated power iteration."""

import numpy as np

from nodepiece.compiled import njit, prange
from nodepiece.graph.arrays import FloatArray
from nodepiece.graph.neighbours import Neighbours


def pagerank(
    adjacency: Neighbours,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-8,
    max_iterations: int = 200,
) -> FloatArray:
    """The PageRank of every node on the graph with inverses: (num_nodes,), summing to 1.

    Solves r = 1 + damping * (what each node receives of r) and divides by the sum; a node without
    edges spreads its rank over all nodes, which changes nothing but that sum. Edges lead both
    ways, so the eigenvalues of the walk are real and Chebyshev's acceleration of the power
    iteration applies: the error falls by 0.56 an iteration instead of 0.85 (damping 0.85), at
    the same cost. It ends when a plain step would change less than `tolerance`, as a share of all
    rank.

    Everything is float64 and every node adds up its own neighbours in one order, so a hub of
    any degree neither drifts nor depends on threads.
    """
    num_nodes = adjacency.num_nodes
    if num_nodes == 0:
        return np.empty(0)
    offsets, neighbours, chunks = adjacency.offsets, adjacency.neighbours, adjacency.chunks()
    rank = adjacency.degrees.astype(np.float64)
    rank *= damping / (1 - damping) * num_nodes / max(1, len(neighbours))
    rank += 1
    previous, weight = rank, 1.0  # the first step is a plain one
    share = np.empty(num_nodes)  # of its rank that a node gives to each of its neighbours
    spare = np.empty(num_nodes)
    for _ in range(max_iterations):
        _divide(offsets, chunks, rank, damping, share)
        received = spare
        _receive(offsets, neighbours, chunks, share, received)
        received += 1
        # Not the change of rank: with acceleration it can be zero by accident before convergence.
        change = np.abs(np.subtract(received, rank, out=share), out=share).sum()
        if change < tolerance * rank.sum():
            break
        received -= previous
        received *= weight
        received += previous
        spare = np.empty(num_nodes) if previous is rank else previous
        previous, rank = rank, received
        weight = 1 / (1 - damping**2 * weight / (2 if weight == 1.0 else 4))
    rank /= rank.sum()
    return rank


@njit(parallel=True, cache=True)
def _divide(offsets, chunks, rank, damping, share):  # type: ignore[no-untyped-def]
    for chunk in prange(len(chunks) - 1):
        for node in range(chunks[chunk], chunks[chunk + 1]):
            degree = np.float64(max(offsets[node + 1] - offsets[node], 1))
            share[node] = rank[node] * (damping / degree)


@njit(parallel=True, cache=True)
def _receive(offsets, neighbours, chunks, share, received):  # type: ignore[no-untyped-def]
    for chunk in prange(len(chunks) - 1):
        for node in range(chunks[chunk], chunks[chunk + 1]):
            total = 0.0
            for edge in range(offsets[node], offsets[node + 1]):
                total += share[neighbours[edge]]
            received[node] = total
