"""Personalized PageRank, a baseline without relations: nodes near the head score higher."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.compiled import njit, prange
from nodepiece.graph.adjacency import Adjacency, build_adjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph

DAMPING = 0.85
TOLERANCE = 1e-9  # largest change of a probability in the last step


@dataclass(frozen=True, eq=False)
class PersonalizedPageRank:
    """The distribution of a walk that restarts at its first node with probability 0.15."""

    adjacency: Adjacency
    damping: float = DAMPING

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Scores for `rank_links`, which ignore relations: (batch, num_nodes)."""
        distinct, place = np.unique(heads.cpu().numpy(), return_inverse=True)
        chances = self.from_nodes(distinct)
        chances[np.arange(len(distinct)), distinct] = 0  # the head itself is not an answer
        return torch.from_numpy(chances[place]).to(heads.device)

    def from_nodes(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """The distributions of walks from some nodes: (num_given, num_nodes).

        More facts between two nodes make a step likelier. Power iteration with Chebyshev
        acceleration, as in graph/pagerank.py: edges go both ways, so the eigenvalues of the
        walk are real. Walks are computed one after the other, so that each stays in the cache.
        """
        edges = self.adjacency
        share = self.damping / np.maximum(edges.degrees, 1)
        return _walk(edges.offsets, edges.neighbours, share, nodes, self.damping, TOLERANCE)


def walk_over(graph: KnowledgeGraph) -> PersonalizedPageRank:
    """Walks along the facts of a graph in both directions."""
    return PersonalizedPageRank(build_adjacency(graph))


@njit(parallel=True, cache=True)
def _walk(offsets, neighbours, share, starts, damping, tolerance):  # type: ignore[no-untyped-def]
    num_nodes = len(share)
    chances = np.zeros((len(starts), num_nodes))
    for row in prange(len(starts)):
        chance, previous = chances[row], np.zeros(num_nodes)
        chance[starts[row]] = 1.0
        weight = 1.0
        while True:
            change = 0.0
            for node in range(num_nodes):
                stepped = 1.0 - damping if node == starts[row] else 0.0
                for edge in range(offsets[node], offsets[node + 1]):
                    stepped += share[neighbours[edge]] * chance[neighbours[edge]]
                change = max(change, abs(stepped - chance[node]))
                # The iterate before the last is no longer needed: its memory is reused.
                previous[node] += weight * (stepped - previous[node])
            if change < tolerance:
                break
            chance, previous = previous, chance
            weight = 1 / (1 - damping**2 * weight / (2 if weight == 1.0 else 4))
        chances[row] = chance
    return chances
