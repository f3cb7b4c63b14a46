"""Cross-entropy against all nodes, estimated from a few of them.

The candidates of a batch are the tails of its own facts, which are encoded anyway, and nodes drawn
uniformly; all rows share them. A candidate that is expected n times in a batch has its score
lowered by log n (log-Q correction; Bengio and Senecal, 2008), so that the sum over candidates is an
unbiased estimate of the sum over all nodes. No pass over all nodes is needed.
"""

import torch
from torch import Tensor

from nodepiece.training import softmax_cpu
from nodepiece.training.batches import FactBatch
from nodepiece.training.objectives import FactScorer

MASKED = -1e30  # the score of a candidate that is the answer itself


def tail_frequencies(edges: Tensor, num_nodes: int) -> Tensor:
    """The share of the edges (num_edges, 3), inverses included, that lead to each node."""
    counts = torch.bincount(edges[:, 2].long(), minlength=num_nodes)
    return counts.float() / max(1, len(edges))


def sampled_softmax_loss(
    model: FactScorer,
    batch: FactBatch,
    num_negatives: int,
    frequencies: Tensor,  # (num_nodes,) from `tail_frequencies`
    *,
    group_size: int = 0,
    generator: torch.Generator,
) -> Tensor:
    """The mean over facts of -log softmax of the answer, among candidates shared by the batch.

    The tails of all processes are candidates in each of them. With `group_size` so many facts share
    candidates: their own tails, and those drawn, which are the same for all. A larger batch then
    takes more time only in proportion.
    """
    batch_size, device = len(batch.heads), batch.heads.device
    drawn = torch.randint(model.num_nodes, (num_negatives,), generator=generator, device=device)
    others = batch.tails[:0] if batch.other_tails is None or group_size else batch.other_tails
    shared = torch.cat([others, drawn])  # by all groups
    vectors = distinct_vectors(model, torch.cat([batch.heads, batch.tails, shared]))
    head, tail, negative = torch.split(vectors, [batch_size, batch_size, len(shared)])
    relation = model.relation_vectors().index_select(0, batch.relations)
    weight = batch.sample_weight
    weight = torch.ones(batch_size, device=device) if weight is None else weight
    losses, size = [], group_size or batch_size
    for start in range(0, batch_size, size):
        group = slice(start, start + size)
        answers = batch.tails[group]
        candidates = torch.cat([answers, shared])
        scores = model.decoder.score_all_tails(
            head[group], relation[group], torch.cat([tail[group], negative])
        )
        counts = expected_counts(candidates, frequencies, len(answers) + len(others))
        losses.append(
            softmax_estimate(scores, answers, candidates, counts, weight[group] / batch_size)
        )
    return torch.stack(losses).sum()


def expected_counts(candidates: Tensor, frequencies: Tensor, batch_size: int) -> Tensor:
    """How often each candidate is expected: as the tail of another fact, or drawn."""
    num_drawn = len(candidates) - batch_size
    from_batch = (batch_size - 1) * frequencies.index_select(0, candidates)
    return from_batch + num_drawn / len(frequencies)


def softmax_estimate(
    scores: Tensor,  # (batch_size, num_candidates), the answer of row n in column n
    answers: Tensor,  # (batch_size,)
    candidates: Tensor,  # (num_candidates,)
    counts: Tensor,  # (num_candidates,) how often each is expected
    weight: Tensor,  # (batch_size,)
) -> Tensor:
    """The weighted sum of -log softmax of every answer: ()."""
    log_counts = counts.clamp_min(1e-30).log()
    if scores.device.type == "cpu" and scores.numel() > softmax_cpu.BLOCK_NUMBERS:
        return softmax_cpu.sampled_softmax_loss(scores, answers, candidates, log_counts, weight)
    scores = scores.to(log_counts.dtype)
    positive = scores.diagonal()
    corrected = scores - log_counts
    corrected = corrected.masked_fill(candidates == answers[:, None], MASKED)
    return ((torch.logaddexp(positive, corrected.logsumexp(dim=1)) - positive) * weight).sum()


def distinct_vectors(model: FactScorer, nodes: Tensor) -> Tensor:
    """The vectors of nodes, (num_nodes, dim); on the CPU every distinct node is encoded once.

    On a GPU the number of distinct nodes would be a shape that depends on values, which cannot be
    captured; there all are encoded.
    """
    if nodes.device.type == "cuda":
        return model.vectors_of(nodes)
    distinct, place = torch.unique(nodes, return_inverse=True)
    return model.vectors_of(distinct).index_select(0, place)
