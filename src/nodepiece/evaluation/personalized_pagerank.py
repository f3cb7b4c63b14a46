"""The baseline that knows no relation: the nearer a node is to the head, the likelier."""

from dataclasses import dataclass

import numpy as np
import torch
from numba import njit, prange
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.graph.adjacency import Adjacency, build_adjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph

DAMPING = 0.85
TOLERANCE = 1e-9  # of a chance that a step changes


@dataclass(frozen=True, eq=False)
class PersonalizedPageRank:
    """Where a walk is found that starts at a node and goes back there with a chance of 0.15."""

    adjacency: Adjacency
    damping: float = DAMPING

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """(batch,), (batch,) -> (batch, num_nodes), whatever the relations: for `rank_links`."""
        distinct, place = np.unique(heads.cpu().numpy(), return_inverse=True)
        chances = self.from_nodes(distinct)
        chances[np.arange(len(distinct)), distinct] = 0  # a node is no answer about itself
        return torch.from_numpy(chances[place]).to(heads.device)

    def from_nodes(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """The chances of being anywhere for walks from some nodes: (num_given, num_nodes).

        More facts between two nodes make a step likelier. Power iteration with Chebyshev's
        acceleration, as in graph/pagerank.py: edges lead both ways, so the eigenvalues of the
        walk are real. One walk after the other, as all that it needs then stays in the cache.
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
                # The one before the last is not asked for any more: its place is free.
                previous[node] += weight * (stepped - previous[node])
            if change < tolerance:
                break
            chance, previous = previous, chance
            weight = 1 / (1 - damping**2 * weight / (2 if weight == 1.0 else 4))
        chances[row] = chance
    return chances
