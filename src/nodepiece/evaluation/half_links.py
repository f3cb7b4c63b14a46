"""Half-links, a baseline of the simplest rules: answers follow from one other fact, or from none.

Another fact (head, other, tail) of the same pair implies (head, relation, tail) as often as it does
in training; and a frequent tail of the relation is an answer to any query as often as it is one in
training. The larger of these probabilities is the score. Where relations are asked for, the second
probability is that of the relation given both ends (`naive_bayes.py`). A model is of use where it
finds answers that this baseline does not put first.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from nodepiece.evaluation.naive_bayes import NaiveBayes
from nodepiece.evaluation.popularity import Popularity, count_tails
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray, positions_of_runs
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses


@dataclass(frozen=True, eq=False)
class HalfLinks:
    """The facts of a graph from every node, and how often one relation comes with another."""

    offsets: LongArray  # (num_nodes + 1,) of the edges of each head
    relations: IntArray  # (num_edges,) both ways, sorted by head and then tail
    tails: IntArray  # (num_edges,)
    together: csr_array  # (2 * num_relations, 2 * num_relations): P(second | first), of a pair
    popularity: Popularity

    @cached_property
    def tail_shares(self) -> csr_array:
        """P(tail | relation): (2 * num_relations, num_nodes)."""
        shares = self.popularity.counts.astype(np.float64)
        totals = np.maximum(shares.sum(axis=1), 1)
        shares.data /= np.repeat(totals, np.diff(shares.indptr))
        return shares

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Scores for `rank_links`: (batch,), (batch,) -> (batch, num_nodes)."""
        query, edge = self.edges_of(heads)
        return self.score_from(query, self.relations[edge], self.tails[edge], relations)

    def score_from(
        self, query: LongArray, first: IntArray, tails: IntArray, relations: Tensor
    ) -> Tensor:
        """Scores for heads that have given edges: (batch, num_nodes).

        query, first, tails: (num_edges,) each, the query that an edge belongs to, the relation of
        the edge and its tail. relations: (batch,) asked for.
        """
        asked = relations.cpu().numpy()
        scores = self.tail_shares[asked].toarray()
        np.maximum.at(scores, (query, tails), self.confidence(first, asked[query]))
        return torch.from_numpy(scores).to(relations.device)

    def score_relations(self, heads: Tensor, tails: Tensor) -> Tensor:
        """Scores for `rank_relations`: (batch,), (batch,) -> (batch, 2 * num_relations)."""
        scores = self.naive_bayes.score_relations(heads, tails).cpu().numpy()
        query, edge = self.edges_between(heads, tails)
        joined = self.together[self.relations[edge]].tocoo()
        np.maximum.at(scores, (query[joined.row], joined.col), joined.data)
        return torch.from_numpy(scores).to(heads.device)

    @cached_property
    def naive_bayes(self) -> NaiveBayes:
        return NaiveBayes(self.popularity)

    def edges_of(self, heads: Tensor) -> tuple[LongArray, LongArray]:
        """The edges of some heads: the place of the head, and the position of the edge."""
        head = heads.cpu().numpy()
        starts = self.offsets[head]
        return positions_of_runs(starts, self.offsets[head + 1] - starts)

    def edges_between(self, heads: Tensor, tails: Tensor) -> tuple[LongArray, LongArray]:
        """The edges between some pairs of nodes: the place of the pair, and the position."""
        head, tail = (nodes.cpu().numpy().astype(np.int64) for nodes in (heads, tails))
        pairs = head * (len(self.offsets) - 1) + tail  # would overflow in int32
        starts = np.searchsorted(self._ends, pairs)
        return positions_of_runs(starts, np.searchsorted(self._ends, pairs, side="right") - starts)

    @cached_property
    def _ends(self) -> LongArray:
        """Both ends of every edge as one number, ascending."""
        num_nodes = len(self.offsets) - 1
        return np.repeat(np.arange(num_nodes), np.diff(self.offsets)) * num_nodes + self.tails

    def confidence(self, first: IntArray, second: IntArray) -> FloatArray:
        """P(second | first) of pairs of relations, 0 where they never come together."""
        width = self.together.shape[1]
        pairs = first.astype(np.int64) * width + second
        if not len(self._pairs):
            return np.zeros(len(pairs))
        places = np.minimum(np.searchsorted(self._pairs, pairs), len(self._pairs) - 1)
        return np.where(self._pairs[places] == pairs, self.together.data[places], 0.0)

    @cached_property
    def _pairs(self) -> LongArray:
        """The pairs of relations that come together, ascending; a pair is one number."""
        first = np.repeat(np.arange(self.together.shape[0]), np.diff(self.together.indptr))
        return first * self.together.shape[1] + self.together.indices


def half_links_of(graph: KnowledgeGraph) -> HalfLinks:
    edges = with_inverses(graph)
    head, relation, tail = edges[np.lexsort((edges[:, 2], edges[:, 0]))].T
    offsets = np.searchsorted(head, np.arange(graph.num_nodes + 1))
    return HalfLinks(offsets, relation, tail, occur_together(edges, graph), count_tails(graph))


def occur_together(edges: IntArray, graph: KnowledgeGraph) -> csr_array:
    """How often pairs of nodes with one relation have another; of a relation with itself: none.

    Only relations that come together take memory.
    """
    pairs = edges[:, 0].astype(np.int64) * graph.num_nodes + edges[:, 2]
    distinct, row = np.unique(pairs, return_inverse=True)
    shape = (len(distinct), 2 * graph.num_relations)
    has = csr_array((np.ones(len(edges)), (row, edges[:, 1])), shape=shape)
    has.sum_duplicates()
    has.data[:] = 1
    both = (has.T @ has).tocoo()
    single, is_other = np.asarray(has.sum(axis=0)), both.row != both.col
    first, second = both.row[is_other], both.col[is_other]
    shares = csr_array((both.data[is_other] / single[first], (first, second)), shape=both.shape)
    shares.sort_indices()
    return shares
