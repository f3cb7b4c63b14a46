"""The baseline that knows no relation: the nearer a node is to the head, the likelier."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses

DAMPING = 0.85
TOLERANCE = 1e-9  # of the chances that change in a step


@dataclass(frozen=True, eq=False)
class PersonalizedPageRank:
    """Where a walk is found that starts at a node and goes back there with a chance of 0.15."""

    walk: csr_array  # (num_nodes, num_nodes): from column to row
    damping: float = DAMPING

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """(batch,), (batch,) -> (batch, num_nodes), whatever the relations: for `rank_links`."""
        distinct, place = np.unique(heads.cpu().numpy(), return_inverse=True)
        chances = self.from_nodes(distinct)
        chances[distinct, np.arange(len(distinct))] = 0  # a node is no answer about itself
        chances = chances[:, place]
        return torch.from_numpy(np.ascontiguousarray(chances.T)).to(heads.device)

    def from_nodes(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """The chances of being anywhere for walks from some nodes: (num_nodes, num_given).

        Power iteration with Chebyshev's acceleration, as in graph/pagerank.py: edges lead both
        ways, so the eigenvalues of the walk are real.
        """
        start = np.zeros((self.walk.shape[0], len(nodes)))
        start[nodes, np.arange(len(nodes))] = 1 - self.damping
        chance, previous, weight = start / (1 - self.damping), start, 1.0
        while True:
            stepped = self.damping * (self.walk @ chance) + start
            if np.abs(stepped - chance).max(initial=0) < TOLERANCE:
                return stepped
            stepped = weight * (stepped - previous) + previous
            previous, chance = chance, stepped
            weight = 1 / (1 - self.damping**2 * weight / (2 if weight == 1.0 else 4))


def walk_over(graph: KnowledgeGraph) -> PersonalizedPageRank:
    """Walks along the facts of a graph in both directions; more facts of a pair, likelier steps."""
    head, _, tail = with_inverses(graph).T
    degree = np.bincount(head, minlength=graph.num_nodes)
    chance = 1 / degree[head]
    shape = (graph.num_nodes, graph.num_nodes)
    return PersonalizedPageRank(csr_array((chance, (tail, head)), shape=shape))
