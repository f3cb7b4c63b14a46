"""Softmax cross-entropy on a CPU, with its gradient, a few rows at a time.

The plain formula reads and writes the matrix of scores about ten times, forwards and backwards. It
is larger than the caches, so that takes about as long as the matrix products. Here a block of rows
stays in the cache until its gradient is done, and the gradient is the only matrix that is stored.
"""

from typing import Any

import torch
from torch import Tensor

BLOCK_NUMBERS = 2**18  # scores that are worked on at once: one megabyte


def softmax_loss(scores: Tensor, answers: Tensor, weight: Tensor, smoothing: float) -> Tensor:
    """The sum over answers of weight * cross-entropy, with smoothed labels: ().

    scores (batch, num_nodes), answers (2, num_answers) as rows and columns, weight (num_answers,).
    """
    loss: Tensor = _SoftmaxLoss.apply(scores, answers, weight, smoothing)  # type: ignore[no-untyped-call]
    return loss


class _SoftmaxLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, answers: Tensor, weight: Tensor, no: float) -> Tensor:
        """`no` is the label of a node that is no answer; an answer has 1 - (num_nodes - 1) * no."""
        scores = scores.contiguous()  # those of walks are transposed
        num_rows, num_nodes = scores.shape
        rows, columns = answers.long()
        yes = 1 - (num_nodes - 1) * no
        row_weight = scores.new_zeros(num_rows).index_add_(0, rows, weight)
        gradient, total = torch.empty_like(scores), scores.new_zeros(())
        size = max(1, BLOCK_NUMBERS // num_nodes)
        for start in range(0, num_rows, size):
            block, result = scores[start : start + size], gradient[start : start + size]
            of_row = row_weight[start : start + size]
            largest = block.amax(dim=1)
            torch.sub(block, largest[:, None], out=result).exp_()
            sums = result.sum(dim=1)
            normalizer = largest + sums.log()
            if no:
                normalizer = normalizer - no * block.sum(dim=1)
            total += (of_row * normalizer).sum()
            result.mul_((of_row / sums)[:, None])
            if no:
                result.sub_((no * of_row)[:, None])
        places = rows * num_nodes + columns
        of_answers = scores.flatten().gather(0, places)
        gradient.view(-1).index_add_(0, places, (no - yes) * weight)
        ctx.save_for_backward(gradient)
        return total - (yes - no) * (weight * of_answers).sum()

    @staticmethod
    def backward(ctx: Any, of_loss: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return (gradient if of_loss == 1 else gradient * of_loss), None, None, None


def sampled_softmax_loss(
    scores: Tensor, answers: Tensor, candidates: Tensor, log_counts: Tensor, weight: Tensor
) -> Tensor:
    """The sum over rows of weight * `softmax_estimate` of `sampled_softmax.py`: ().

    scores (batch_size, num_candidates) with the answer of row n in column n, in any precision;
    answers and weight (batch_size,), candidates and log_counts (num_candidates,).
    """
    loss: Tensor = _SampledSoftmax.apply(scores, answers, candidates, log_counts, weight)  # type: ignore[no-untyped-call]
    return loss


class _SampledSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        answers: Tensor,
        candidates: Tensor,
        log_counts: Tensor,
        weight: Tensor,
    ) -> Tensor:
        scores = scores.contiguous()
        num_rows, num_columns = scores.shape
        positive = scores.diagonal().to(log_counts.dtype)
        gradient, losses = torch.empty_like(scores), log_counts.new_empty(num_rows)
        size = max(1, BLOCK_NUMBERS // num_columns)
        work = log_counts.new_empty(size, num_columns)
        rows, columns = equal_pairs(answers, candidates)
        places = (rows % size) * num_columns + columns  # in the block of each row
        ends = torch.searchsorted(rows, torch.arange(0, num_rows + size, size)).tolist()
        for block, start in enumerate(range(0, num_rows, size)):
            chosen = slice(start, start + size)
            here = work[: len(scores[chosen])]
            torch.sub(scores[chosen], log_counts, out=here)
            largest = torch.maximum(here.amax(dim=1), positive[chosen])
            here.sub_(largest[:, None]).exp_()
            work.view(-1).index_fill_(0, places[ends[block] : ends[block + 1]], 0.0)
            of_answer = (positive[chosen] - largest).exp()
            total = here.sum(dim=1) + of_answer
            losses[chosen] = largest + total.log() - positive[chosen]
            share = weight[chosen] / total
            here.mul_(share[:, None])
            here.diagonal(start).add_(share * of_answer - weight[chosen])
            gradient[chosen] = here
        ctx.save_for_backward(gradient)
        return (losses * weight).sum()

    @staticmethod
    def backward(ctx: Any, of_loss: Tensor) -> tuple[Tensor, None, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return (gradient if of_loss == 1 else gradient * of_loss), None, None, None, None


def equal_pairs(answers: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """The rows, ascending, and columns at which a candidate is the answer of a row."""
    ordered, order = torch.sort(candidates)
    answers = answers.contiguous()
    first = torch.searchsorted(ordered, answers)
    counts = torch.searchsorted(ordered, answers, right=True) - first
    rows = torch.repeat_interleave(torch.arange(len(answers)), counts)
    before = (counts.cumsum(0) - counts)[rows]
    return rows, order[first[rows] + torch.arange(len(rows)) - before]
