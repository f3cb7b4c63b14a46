"""PageRank by power iteration."""

import numpy as np
from numba import njit, prange

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

    Iterates r <- (1 - damping) / N + damping * (what each node receives) until the sum of the
    changes falls below `tolerance`. Everything is float64 and every node adds up its own
    neighbours in one order, so a hub of any degree neither drifts nor depends on threads. Nodes
    without edges spread their rank over all nodes. Starts from the degrees, where the walk
    without jumps would end, which saves about half of the iterations on real graphs.
    """
    num_nodes = adjacency.num_nodes
    if num_nodes == 0:
        return np.empty(0)
    degrees = adjacency.degrees.astype(np.float64)
    rank = (degrees + 1) / (degrees + 1).sum()
    chunks = adjacency.chunks(np.arange(num_nodes, dtype=np.int32))
    is_dangling = degrees == 0
    share_of = np.where(is_dangling, 0, 1 / np.maximum(degrees, 1))
    for _ in range(max_iterations):
        received = _receive(adjacency.offsets, adjacency.neighbours, chunks, rank * share_of)
        received += rank[is_dangling].sum() / num_nodes
        new_rank = damping * received + (1 - damping) / num_nodes
        change = np.abs(new_rank - rank).sum()
        rank = new_rank
        if change < tolerance:
            break
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
