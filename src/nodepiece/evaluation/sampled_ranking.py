"""Ranks of the true head or tail among given candidates instead of all nodes.

The rank is defined as in `ranking.py`, 1 + better candidates + half of those that tie, which is
also the definition of OGB's evaluator. No candidate is left out: they were chosen so that none is
a known answer.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import LinkRanks, Progress
from nodepiece.graph.arrays import FloatArray, IntArray

# heads (batch,), relations (batch,), candidates (batch, num_candidates) -> (batch, num_candidates)
ScoreCandidates = Callable[[Tensor, Tensor, Tensor], Tensor]


def rank_links_among(
    score_candidates: ScoreCandidates,
    triples: IntArray,  # (num_triples, 3)
    negative_heads: IntArray,  # (num_triples, num_negatives) in place of the head
    negative_tails: IntArray,
    num_relations: int,  # without inverses
    *,
    memory_budget: int,
    bytes_per_candidate: int,
    device: torch.device | str,
    progress: Progress | None = None,
) -> LinkRanks:
    """Rank the tail and the head of every fact among its negatives.

    A head is ranked as the tail of the inverse relation. Batches are as large as `memory_budget`
    bytes allow, where scoring takes `bytes_per_candidate`; the negatives may be memory-mapped and
    are moved to the device batch by batch.
    """
    _check_sizes(triples, negative_heads, negative_tails)
    head, relation, tail = triples.T
    inverse = relation + np.int32(num_relations)
    total = 2 * len(triples)
    sides: list[FloatArray] = []
    for queries, negatives in (
        (np.stack([tail, inverse, head]), negative_heads),
        (np.stack([head, relation, tail]), negative_tails),
    ):
        batch_size = max(1, memory_budget // ((1 + negatives.shape[1]) * bytes_per_candidate))
        before, parts = len(sides) * len(triples), []
        for start in range(0, len(triples), batch_size):
            rows = slice(start, min(start + batch_size, len(triples)))
            parts.append(_rank(score_candidates, queries[:, rows], negatives[rows], device))
            if progress is not None:
                progress(before + rows.stop, total)
        sides.append(to_host(parts))
    return LinkRanks(sides[0], sides[1], relation)


def _rank(
    score_candidates: ScoreCandidates,
    queries: IntArray,  # (3, batch): two ids of the query, and the answer
    negatives: IntArray,  # (batch, num_negatives)
    device: torch.device | str,
) -> Tensor:
    heads, relations, answers = torch.tensor(queries).to(device).long()
    others = torch.tensor(negatives).to(device).long()
    with torch.no_grad():
        scores = score_candidates(heads, relations, torch.cat([answers[:, None], others], dim=1))
    return ranks_of_first(scores)


def ranks_of_first(scores: Tensor) -> Tensor:
    """The rank of the first column among all: (batch, num_candidates) -> (batch,) in float64.

    NaN for a row with a NaN in it.
    """
    true, others = scores[:, :1], scores[:, 1:]
    num_better, num_tied = (others > true).sum(dim=1), (others == true).sum(dim=1)
    ranks = 1 + num_better + num_tied.double() / 2
    return ranks.masked_fill(scores.isnan().any(dim=1), torch.nan)


def _check_sizes(triples: IntArray, *negatives: IntArray) -> None:
    if not len(triples):
        raise InputError("there are no facts to rank; give at least one")
    for part in negatives:
        if part.ndim != 2 or len(part) != len(triples) or not part.shape[1]:
            raise InputError(
                f"negatives in shape {part.shape} do not fit {len(triples)} facts; each fact needs "
                "the same number of negatives, one at least"
            )


def to_host(parts: list[Tensor]) -> FloatArray:
    ranks: FloatArray = torch.cat(parts).cpu().numpy()
    if np.isnan(ranks).any():
        raise InputError(
            f"{np.isnan(ranks).sum()} of {len(ranks)} queries have scores that are not a number: "
            "training diverged; lower the learning rate"
        )
    return ranks
