"""Popularity, a baseline that ignores the head: frequent tails of a relation score higher.

The score of a node depends on the relation alone, so ranks follow from sorted counts: no query
takes a pass over all nodes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from nodepiece.evaluation.known_answers import KnownAnswers
from nodepiece.evaluation.ranking import LinkRanks
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray, positions_of_runs
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses

MAX_KNOWN = 10**7  # known answers that are looked up at a time


@dataclass(frozen=True, eq=False)
class Popularity:
    """Counts of every node as the tail of every relation, inverses included."""

    counts: csr_array  # (2 * num_relations, num_nodes)

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Scores for `rank_links`, which ignore heads: (batch,), (batch,) -> (batch, num_nodes)."""
        rows = self.counts[relations.cpu().numpy()].toarray()
        return torch.from_numpy(rows).to(relations.device)

    def score_candidates(self, heads: Tensor, relations: Tensor, candidates: Tensor) -> Tensor:
        """Scores for `rank_links_among`: (batch, num_candidates)."""
        columns = candidates.cpu().numpy()
        rows = np.broadcast_to(relations.cpu().numpy()[:, None], columns.shape)
        scores = self.count(rows.ravel(), columns.ravel()).reshape(columns.shape)
        return torch.from_numpy(scores).to(candidates.device)

    def score_relations(self, heads: Tensor, tails: Tensor) -> Tensor:
        """Scores for `rank_relations`: the facts of each, (batch, 2 * num_relations)."""
        return torch.from_numpy(self.facts).to(heads.device).expand(len(heads), -1)

    @cached_property
    def facts(self) -> FloatArray:
        """The number of facts of each relation, inverses included: (2 * num_relations,)."""
        facts: FloatArray = np.asarray(self.counts.sum(axis=1), np.float64)
        return facts

    def count(self, relations: IntArray, nodes: IntArray) -> LongArray:
        """How often each node is the tail of a relation: (num_pairs,) twice -> (num_pairs,)."""
        pairs = relations.astype(np.int64) * self.counts.shape[1] + nodes
        places = np.minimum(np.searchsorted(self._pairs, pairs), len(self._pairs) - 1)
        is_there = self._pairs[places] == pairs
        return np.where(is_there, self.counts.data[places], 0).astype(np.int64)

    @cached_property
    def _pairs(self) -> LongArray:
        """The pairs of relation and node with a count, ascending; a pair is one number."""
        relations = np.repeat(np.arange(self.counts.shape[0]), np.diff(self.counts.indptr))
        return relations * self.counts.shape[1] + self.counts.indices

    @cached_property
    def _sorted(self) -> tuple[LongArray, int]:
        """relation * factor + count of all pairs, ascending; and the factor."""
        factor = int(self.counts.data.max()) + 1
        relations = np.repeat(np.arange(self.counts.shape[0]), np.diff(self.counts.indptr))
        return np.sort(relations * factor + self.counts.data.astype(np.int64)), factor

    def rank(self, queries: IntArray, known: KnownAnswers) -> FloatArray:
        """The rank of every answer, as `rank_queries` finds it for `score_tails`: (num_queries,).

        queries: (num_queries, 3) of the id by which `known` finds its answers, the relation, maybe
        an inverse, and the answer.
        """
        first, relation, answer = queries.T
        starts, numbers = known.find(first, relation)
        ends = np.cumsum(numbers)
        parts = np.searchsorted(ends, np.arange(MAX_KNOWN, max(1, ends[-1]), MAX_KNOWN))
        ranks = [
            self._rank(relation[rows], answer[rows], starts[rows], numbers[rows], known)
            for rows in np.split(np.arange(len(queries)), np.unique(parts))
        ]
        return np.concatenate(ranks)

    def _rank(
        self,
        relation: IntArray,  # (batch,), like the next three
        answer: IntArray,
        starts: LongArray,  # of the known answers of each query in `known.answers`
        numbers: LongArray,
        known: KnownAnswers,
    ) -> FloatArray:
        counts, factor = self._sorted
        own = self.count(relation, answer)
        left, right = (
            np.searchsorted(counts, relation.astype(np.int64) * factor + own, side=side)
            for side in ("left", "right")
        )
        row_starts, row_ends = self.counts.indptr[relation], self.counts.indptr[relation + 1]
        num_better = row_ends - right
        num_uncounted = self.counts.shape[1] - (row_ends - row_starts)
        num_tied = np.where(own > 0, right - left, num_uncounted) - 1  # without itself
        query, place = positions_of_runs(starts, numbers)
        other = known.answers[place]
        theirs = self.count(relation[query], other)
        is_better = theirs > own[query]
        is_tied = (theirs == own[query]) & (other != answer[query])
        num_better = num_better - np.bincount(query[is_better], minlength=len(relation))
        num_tied = num_tied - np.bincount(query[is_tied], minlength=len(relation))
        ranks: FloatArray = 1 + num_better + num_tied / 2
        return ranks

    def rank_links(self, triples: IntArray, known: KnownAnswers) -> LinkRanks:
        """The ranks of both ends of facts, as `evaluation.ranking.rank_links` finds them."""
        graph = KnowledgeGraph(triples, known.num_nodes, known.num_relations)
        tail, head = np.split(self.rank(with_inverses(graph), known), 2)
        return LinkRanks(head, tail, graph.triples[:, 1])


def count_tails(graph: KnowledgeGraph) -> Popularity:
    """The counts of a graph; the tails of an inverse relation are the heads of the relation."""
    _, relation, tail = with_inverses(graph).T
    shape = (2 * graph.num_relations, graph.num_nodes)
    ones = np.ones(len(tail), dtype=np.float32)
    counts = csr_array((ones, (relation, tail)), shape=shape)  # adds up equal places
    counts.sum_duplicates()  # sorts within rows, too
    return Popularity(counts)
