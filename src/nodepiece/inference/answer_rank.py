"""The score and the rank of one answer, before and after a change of the graph."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import filtered_ranks
from nodepiece.graph.arrays import LongArray
from nodepiece.inference.bulk import Scoring


@dataclass(frozen=True)
class Outcome:
    """How an answer fares among all candidates that are no other known answers."""

    score: float
    rank: float
    log_share: float  # the logarithm of its softmax among these candidates


@dataclass(frozen=True, eq=False)
class RankedAnswer:
    """A query (head, relation, ?) by ids, its answer, and the known answers to be left out."""

    head: int
    relation: int  # maybe an inverse
    tail: int
    known: LongArray  # (num_known,) without the tail

    @staticmethod
    def of(snapshot: Scoring, head: int, relation: int, tail: int) -> "RankedAnswer":
        index = snapshot.candidates.known_tails
        start, number = (
            int(each[0]) for each in index.find(np.array([head]), np.array([relation]))
        )
        known = index.answers_at(np.arange(start, start + number)).astype(np.int64)
        return RankedAnswer(head, relation, tail, known[known != tail])

    def scores(self, snapshot: Scoring) -> Tensor:
        """(num_nodes,) the scores of all nodes, on the CPU."""
        heads, relations = torch.tensor([[self.head], [self.relation]])
        return snapshot.score_tails(heads, relations)[0].float().cpu()

    def outcome(self, snapshot: Scoring) -> Outcome:
        return self.outcome_of(self.scores(snapshot))

    def outcome_of(self, scores: Tensor) -> Outcome:
        """scores: (num_nodes,)."""
        known = torch.from_numpy(self.known)
        row, target = torch.zeros(len(known), dtype=torch.int64), torch.tensor([self.tail])
        rank = float(filtered_ranks(scores[None], target, row, known)[0])
        if np.isnan(rank):
            raise InputError(
                "the scores of this query are not all numbers: training diverged; train again "
                "with a lower learning rate"
            )
        left = scores.double().index_fill(0, known, -torch.inf)
        score = left[self.tail]
        return Outcome(float(score), rank, float(score - left.logsumexp(0)))

    def competitors(self, scores: Tensor, number: int) -> NDArray[np.int64]:
        """The other candidates of highest score, best first."""
        left = scores.index_fill(0, torch.from_numpy(self.known), -torch.inf)
        left[self.tail] = -torch.inf
        best = left.topk(min(number, len(left)))
        return best.indices[torch.isfinite(best.values)].numpy()
