"""Naive Bayes, a baseline of relation prediction: what the two ends say, each on its own.

The probability of a relation, of the head given the relation, and of the tail given the relation,
are counted in training and multiplied; no fact between the two is looked at. One more fact of each
relation is spread evenly over all nodes, so that no node is impossible.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.sparse import csc_array
from torch import Tensor

from nodepiece.evaluation.popularity import Popularity


@dataclass(frozen=True, eq=False)
class NaiveBayes:
    """The probability of every relation between two nodes, as if they were independent."""

    popularity: Popularity

    def score_relations(self, heads: Tensor, tails: Tensor) -> Tensor:
        """Probabilities of all relations: (batch,), (batch,) -> (batch, 2 * num_relations)."""
        of_relation, by_node = self.popularity.facts, self._by_node
        half = len(of_relation) // 2
        of_tail, of_head = (
            np.log(by_node[:, nodes.cpu().numpy()].toarray().T + 1 / by_node.shape[1])
            for nodes in (tails, heads)
        )
        of_head = np.roll(of_head, half, axis=1)  # heads of a relation are tails of its inverse
        with np.errstate(divide="ignore"):  # a relation without facts: probability 0
            prior = np.log(of_relation) - 2 * np.log1p(of_relation)
        log_chances = torch.from_numpy(prior + (of_head + of_tail))
        return log_chances.softmax(dim=1).to(heads.device)

    @cached_property
    def _by_node(self) -> csc_array:
        """(2 * num_relations, num_nodes): the counts, by columns."""
        return self.popularity.counts.astype(np.float64).tocsc()
