"""Half-links, a baseline of the simplest rules: answers follow from one other fact, or from none.

Another fact (head, other, tail) of the same pair implies (head, relation, tail) as often as it does
in training; and a frequent tail of the relation is an answer to any query as often as it is one in
training. The larger of these probabilities is the score. A model is of use where it finds answers
that this baseline does not put first.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from nodepiece.evaluation.popularity import count_tails
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses


@dataclass(frozen=True, eq=False)
class HalfLinks:
    """The facts of a graph from every node, and how often one relation comes with another."""

    offsets: LongArray  # (num_nodes + 1,) of the edges of each head
    relations: IntArray  # (num_edges,) sorted by head, both ways
    tails: IntArray  # (num_edges,)
    together: FloatArray  # (2 * num_relations, 2 * num_relations): P(second | first), of a pair
    tail_shares: csr_array  # (2 * num_relations, num_nodes): P(tail | relation)

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Scores for `rank_links`: (batch,), (batch,) -> (batch, num_nodes)."""
        head, asked = heads.cpu().numpy(), relations.cpu().numpy()
        scores = self.tail_shares[asked].toarray()
        starts, numbers = self.offsets[head], self.offsets[head + 1] - self.offsets[head]
        query = np.repeat(np.arange(len(head)), numbers)
        edge = np.arange(len(query)) + (starts - (np.cumsum(numbers) - numbers))[query]
        confidence = self.together[self.relations[edge], asked[query]]
        np.maximum.at(scores, (query, self.tails[edge]), confidence)
        return torch.from_numpy(scores).to(relations.device)


def half_links_of(graph: KnowledgeGraph) -> HalfLinks:
    edges = with_inverses(graph)
    head, relation, tail = edges[np.argsort(edges[:, 0], kind="stable")].T
    offsets = np.searchsorted(head, np.arange(graph.num_nodes + 1))
    shares = count_tails(graph).counts.astype(np.float64)
    totals = np.maximum(shares.sum(axis=1), 1)
    shares.data /= np.repeat(totals, np.diff(shares.indptr))
    return HalfLinks(offsets, relation, tail, occur_together(edges, graph), shares)


def occur_together(edges: IntArray, graph: KnowledgeGraph) -> FloatArray:
    """How often pairs of nodes with one relation have another; of a relation with itself: 0."""
    pairs = edges[:, 0].astype(np.int64) * graph.num_nodes + edges[:, 2]
    distinct, row = np.unique(pairs, return_inverse=True)
    shape = (len(distinct), 2 * graph.num_relations)
    has = csr_array((np.ones(len(edges)), (row, edges[:, 1])), shape=shape)
    has.sum_duplicates()
    has.data[:] = 1
    both = np.asarray((has.T @ has).todense())
    single = both.diagonal().copy()
    np.fill_diagonal(both, 0)
    return both / np.maximum(single, 1)[:, None]
