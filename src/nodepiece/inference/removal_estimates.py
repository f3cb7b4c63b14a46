"""Estimates of what a score loses without some facts, for many sets of facts at once.

They decide which facts are removed exactly. The vectors of head and tail are computed again
(`local_vectors.py`); all other candidates keep theirs. What paths lose is estimated from the flow
of walks, or from gradients (`explain_paths.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from nodepiece.graph.arrays import FloatArray, IntArray
from nodepiece.inference.answer_rank import RankedAnswer
from nodepiece.inference.local_vectors import LocalVectors
from nodepiece.inference.snapshot import Snapshot
from nodepiece.tokenizer.token_rows import stacked

NUM_COMPETITORS = 1000  # candidates that an answer is compared with


@dataclass(frozen=True, eq=False)
class VectorEstimates:
    """Scores of an answer without some facts, by the vectors of its two nodes."""

    snapshot: Snapshot
    answer: RankedAnswer
    scores: Tensor  # (num_nodes,) of all candidates, paths included

    @cached_property
    def competitors(self) -> Tensor:
        return torch.from_numpy(self.answer.competitors(self.scores, NUM_COMPETITORS))

    @cached_property
    def path_scores(self) -> tuple[Tensor, Tensor]:
        """What path scorers add to the scores of the tail and of its competitors."""
        tail, patched = torch.tensor([self.answer.tail]), self.snapshot.patched
        head = patched.rows(torch.tensor([self.answer.head]))
        by_vectors = [
            self.score(head, patched.rows(nodes))[0] for nodes in (tail, self.competitors)
        ]
        return self.scores[tail] - by_vectors[0], self.scores[self.competitors] - by_vectors[1]

    def score(self, heads: Tensor, tails: Tensor) -> Tensor:
        """(num_heads, dim), (num_tails, dim) -> (num_heads, num_tails), on the CPU."""
        model = self.snapshot.model
        with torch.no_grad():
            relation = model.relation_vectors()[self.answer.relation].expand(len(heads), -1)
            return model.decoder.score_all_tails(heads, relation, tails).float().cpu()

    def tail_scores(self, heads: Tensor, tails: Tensor) -> Tensor:
        """The score of the fact by vectors, with other vectors of its nodes: (num_rows,)."""
        model = self.snapshot.model
        with torch.no_grad():
            relation = model.relation_vectors()[self.answer.relation].expand(len(heads), -1)
            return model.decoder.score(heads, relation, tails).float().cpu()

    def vectors_without(self, removals: Sequence[IntArray]) -> tuple[Tensor, Tensor]:
        """The vectors of head and tail without each of some sets of facts."""
        ends = (self.answer.head, self.answer.tail)
        rows = None
        if self.snapshot.model.nodes.has_pieces:  # of both nodes at once
            nodes = np.unique(np.array(ends, np.int32))
            rows = stacked(self.snapshot.rows_without(nodes, removals))
        head, tail = (LocalVectors(self.snapshot, node).without(removals, rows) for node in ends)
        return head, tail

    def losses(self, removals: Sequence[IntArray]) -> list[float]:
        """What the score of the fact by its vectors loses without each of some sets of facts."""
        if not removals:
            return []
        after = self.tail_scores(*self.vectors_without(removals)) + self.path_scores[0]
        return (self.scores[self.answer.tail] - after).tolist()

    def log_shares(self, removals: Sequence[IntArray], path_losses: FloatArray) -> FloatArray:
        """The log of the answer's softmax among its competitors, for each of some sets of facts.

        path_losses: (num_removals,) what the scores of paths lose.
        """
        heads, tails = self.vectors_without(removals)
        of_tail, of_others = self.path_scores
        score = self.tail_scores(heads, tails) + of_tail - torch.from_numpy(path_losses).float()
        others = self.score(heads, self.snapshot.patched.rows(self.competitors)) + of_others
        every = torch.cat([score[:, None], others], dim=1).double()
        return (every[:, 0] - every.logsumexp(dim=1)).numpy().astype(np.float64)
