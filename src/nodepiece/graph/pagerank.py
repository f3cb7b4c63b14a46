"""PageRank by accelerated power iteration."""

import numpy as np

from nodepiece.compiled import njit, prange
from nodepiece.graph.adjacency import Adjacency
from nodepiece.graph.arrays import FloatArray


def pagerank(
    adjacency: Adjacency,
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
    degrees = adjacency.degrees.astype(np.float64)
    chunks = adjacency.chunks(np.arange(num_nodes, dtype=np.int32))
    share_of = damping / np.maximum(degrees, 1)
    rank = 1 + degrees * (damping / (1 - damping) * num_nodes / max(1, degrees.sum()))
    previous, weight = rank, 1.0  # the first step is a plain one
    for _ in range(max_iterations):
        received = _receive(adjacency.offsets, adjacency.neighbours, chunks, rank * share_of)
        received += 1
        # Not the change of rank: with acceleration it can be zero by accident before convergence.
        if np.abs(received - rank).sum() < tolerance * rank.sum():
            break
        received -= previous
        received *= weight
        received += previous
        previous, rank = rank, received
        weight = 1 / (1 - damping**2 * weight / (2 if weight == 1.0 else 4))
    return rank / rank.sum()


@njit(parallel=True, cache=True)
def _receive(offsets, neighbours, chunks, share):  # type: ignore[no-untyped-def]
    received = np.empty(len(share))
    for chunk in prange(len(chunks) - 1):
        for node in range(chunks[chunk], chunks[chunk + 1]):
            total = 0.0
            for edge in range(offsets[node], offsets[node + 1]):
                total += share[neighbours[edge]]
            received[node] = total
    return received
