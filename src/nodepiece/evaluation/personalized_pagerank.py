"""Personalized PageRank, a baseline without relations: nodes near the head score higher."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from nodepiece.compiled import njit, prange
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph

DAMPING = 0.85
TOLERANCE = 1e-9  # largest change of a probability in the last step
WALKS_AT_ONCE = 8  # their chances at a node are next to each other, 64 bytes


@dataclass(frozen=True, eq=False)
class PersonalizedPageRank:
    """The distribution of a walk that restarts at its first node with probability 0.15."""

    steps: csr_array  # (num_nodes, num_nodes): the chance of a step, to a row from its columns

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Scores for `rank_links`, which ignore relations: (batch, num_nodes)."""
        distinct, place = np.unique(heads.cpu().numpy(), return_inverse=True)
        chances = self.from_nodes(distinct)
        chances[np.arange(len(distinct)), distinct] = 0  # the head itself is not an answer
        return torch.from_numpy(chances[place]).to(heads.device)

    def score_from(self, query: LongArray, nodes: IntArray, num_queries: int) -> Tensor:
        """Scores for heads that the graph lacks, by their neighbours: (num_queries, num_nodes).

        query, nodes: (num_given,) each, the query of a neighbour and the neighbour. A walk begins,
        and begins again, at each of them alike; without any, all chances are 0.
        """
        share = 1 / np.bincount(query, minlength=num_queries)[query]
        shape = (num_queries, self.steps.shape[0])
        return torch.from_numpy(self.from_distributions(csr_array((share, (query, nodes)), shape)))

    def from_nodes(self, nodes: IntArray | LongArray) -> FloatArray:
        """The distributions of walks from some nodes: (num_given, num_nodes)."""
        shape = (len(nodes), self.steps.shape[0])
        starts = csr_array((np.ones(len(nodes)), (np.arange(len(nodes)), nodes)), shape)
        return self.from_distributions(starts)

    def from_distributions(self, starts: csr_array) -> FloatArray:
        """Those of walks that begin, and begin again, as each row says: (num_walks, num_nodes).

        More facts between two nodes make a step likelier. Power iteration with Chebyshev
        acceleration, as in graph/pagerank.py: edges go both ways, so the eigenvalues of the
        walk are real.
        """
        steps, rows = (
            (each.indptr, each.indices, each.data) for each in (self.steps, starts.tocsr())
        )
        return _walk(*steps, *rows, DAMPING, TOLERANCE)


def walk_over(graph: KnowledgeGraph) -> PersonalizedPageRank:
    """Walks along the facts of a graph in both directions."""
    edges = build_adjacency(graph)
    share = 1 / np.maximum(edges.degrees, 1)
    arrays = (share[edges.neighbours], edges.neighbours.copy(), edges.offsets.copy())
    steps = csr_array(arrays, shape=(graph.num_nodes, graph.num_nodes))
    steps.sum_duplicates()
    return PersonalizedPageRank(steps)


@njit(parallel=True, cache=True)
def _walk(  # type: ignore[no-untyped-def]
    offsets, neighbours, share, start_offsets, start_nodes, start_chances, damping, tolerance
):
    num_walks, num_nodes = len(start_offsets) - 1, len(offsets) - 1
    chances = np.zeros((num_walks, num_nodes))
    for block in prange((num_walks + WALKS_AT_ONCE - 1) // WALKS_AT_ONCE):
        first = block * WALKS_AT_ONCE
        width = min(WALKS_AT_ONCE, num_walks - first)
        start = np.zeros((num_nodes, WALKS_AT_ONCE))
        for walk in range(width):
            for place in range(start_offsets[first + walk], start_offsets[first + walk + 1]):
                start[start_nodes[place], walk] += start_chances[place]
        chance = start.copy()
        previous, stepped = np.zeros_like(chance), np.zeros(WALKS_AT_ONCE)
        weight = 1.0
        while True:
            change = 0.0
            for node in range(num_nodes):
                stepped[:] = 0.0
                for edge in range(offsets[node], offsets[node + 1]):
                    neighbour, chance_of_step = neighbours[edge], share[edge]
                    for walk in range(WALKS_AT_ONCE):
                        stepped[walk] += chance_of_step * chance[neighbour, walk]
                for walk in range(WALKS_AT_ONCE):
                    reached = damping * stepped[walk] + (1.0 - damping) * start[node, walk]
                    change = max(change, abs(reached - chance[node, walk]))
                    # The iterate before the last is no longer needed: its memory is reused.
                    previous[node, walk] += weight * (reached - previous[node, walk])
            if change < tolerance:
                break
            chance, previous = previous, chance
            weight = 1 / (1 - damping**2 * weight / (2 if weight == 1.0 else 4))
        chances[first : first + width] = chance[:, :width].T
    return chances
