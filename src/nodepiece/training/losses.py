"""Loss functions.

One against all: the scores of every node for each query, and which of them are answers, as pairs
(row, column). Sampled negatives: the scores of facts, and of facts with head or tail replaced. No
function waits for the device or has shapes that depend on values, so each can be captured in a
CUDA graph.
"""

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from nodepiece.training import softmax_cpu


class OneVsAllLoss(Protocol):
    def __call__(
        self,
        scores: Tensor,
        answers: Tensor,
        sample_weight: Tensor | None = None,
        *,
        smoothing: float,
        count: Tensor | None = None,
    ) -> Tensor:
        """scores (batch, num_nodes), answers (2, num_answers), sample_weight (num_answers,) -> ().

        An answer is a row and a column of `scores`. Each pair occurs once; padding pairs have
        weight 0 and repeat an answer. `smoothing` in [0, 1) is the share of the label that
        is taken from the answers and spread over the other nodes. A mean over answers is their sum
        divided by `count` (), by default their total weight: several processes all divide by the
        same count, so that the mean of their gradients is the gradient of all answers.
        """


class SampledLoss(Protocol):
    def __call__(
        self,
        positive: Tensor,
        negative: Tensor,
        sample_weight: Tensor | None = None,
        *,
        margin: float,
        temperature: float,
    ) -> Tensor:
        """positive (batch,), negative (batch, num_negatives), sample_weight (batch,) -> ().

        `sample_weight` is the weight of each fact, 1 on average. The negatives of a fact are
        weighted by the softmax of temperature * score, 0 for equal weights; these weights have no
        gradient.
        """


def binary_cross_entropy_all(
    scores: Tensor,
    answers: Tensor,
    sample_weight: Tensor | None = None,
    *,
    smoothing: float,
    count: Tensor | None = None,
) -> Tensor:
    """Binary cross-entropy, averaged over all batch * num_nodes pairs of a query and a node.

    Their number is the same in every process, so `count` is not used.

    Labels are 1 - smoothing and smoothing / (num_nodes - 1), as published. The cross-entropy of
    label y is softplus(score) - y * score, so the labels matter only through two sums of scores
    and no matrix of them is built.
    """
    yes, no = _smoothed_labels(scores, smoothing)
    of_answers = _at(scores, answers)
    if sample_weight is not None:
        of_answers = of_answers * sample_weight
    total = functional.softplus(scores).sum() - (yes - no) * of_answers.sum()
    if no:
        total = total - no * scores.sum()
    return total / scores.numel()


def cross_entropy_all(
    scores: Tensor,
    answers: Tensor,
    sample_weight: Tensor | None = None,
    *,
    smoothing: float,
    count: Tensor | None = None,
) -> Tensor:
    """Softmax cross-entropy over all nodes, as a (weighted) mean over answers.

    A row with several answers counts once for each, as if every fact had a separate row.
    Labels are smoothed as in `binary_cross_entropy_all`. Some weight must be above 0.
    """
    yes, no = _smoothed_labels(scores, smoothing)
    if scores.device.type == "cpu" and scores.numel() > softmax_cpu.BLOCK_NUMBERS:
        weight = scores.new_ones(answers.shape[1]) if sample_weight is None else sample_weight
        total = weight.sum() if count is None or sample_weight is None else count
        return softmax_cpu.softmax_loss(scores, answers, (weight / total).to(scores.dtype), no)
    normalizer = scores.logsumexp(dim=1)  # (batch,)
    if no:
        normalizer = normalizer - no * scores.sum(dim=1)
    losses = normalizer.gather(0, answers[0].long()) - (yes - no) * _at(scores, answers)
    if sample_weight is None:
        return losses.mean()
    return (losses * sample_weight).sum() / (sample_weight.sum() if count is None else count)


def filtered_cross_entropy(
    scores: Tensor,
    answers: Tensor,
    sample_weight: Tensor | None = None,
    *,
    smoothing: float = 0.0,
    count: Tensor | None = None,
) -> Tensor:
    """Softmax cross-entropy of each answer against all nodes that are no answer of its row.

    Other answers count neither for nor against it. Answers of weight 0 are not trained, but left
    out of the negatives of the others. There is no smoothing.
    """
    lowest = torch.finfo(scores.dtype).min / 2
    others = scores.flatten().scatter(0, _places(scores, answers), lowest).view_as(scores)
    negatives = others.logsumexp(dim=1)  # (batch,)
    losses = functional.softplus(negatives.gather(0, answers[0].long()) - _at(scores, answers))
    if sample_weight is None:
        return losses.mean()
    return (losses * sample_weight).sum() / (sample_weight.sum() if count is None else count)


def _smoothed_labels(scores: Tensor, smoothing: float) -> tuple[float, float]:
    """The labels of an answer and of any other node."""
    return 1 - smoothing, smoothing / max(1, scores.shape[1] - 1)


def _at(scores: Tensor, answers: Tensor) -> Tensor:
    """The scores at the given rows and columns: (num_answers,)."""
    return scores.flatten().gather(0, _places(scores, answers))


def _places(scores: Tensor, answers: Tensor) -> Tensor:
    """The places of rows and columns in the flattened scores: (num_answers,)."""
    return answers[0].long() * scores.shape[1] + answers[1]


def self_adversarial(
    positive: Tensor,
    negative: Tensor,
    sample_weight: Tensor | None = None,
    *,
    margin: float,
    temperature: float,
) -> Tensor:
    """The self-adversarial loss of Sun et al., 2019.

    With scores that are negative distances d, and temperature 0, it is the loss of the paper's
    link prediction:
    -(1/2) [mean log sigmoid(margin - d of facts) + mean log sigmoid(d of negatives - margin)].
    """
    of_positive = functional.softplus(-margin - positive)
    of_negative = functional.softplus(margin + negative)
    of_negative = _mean_of_negatives(of_negative, negative, temperature)
    return _mean_of_facts(of_positive + of_negative, sample_weight) / 2


def softplus_loss(
    positive: Tensor,
    negative: Tensor,
    sample_weight: Tensor | None = None,
    *,
    margin: float,
    temperature: float,
) -> Tensor:
    """The softplus loss of Trouillon et al., 2016, with equal weights for facts and negatives.

    The margin is added to scores first: 0 for products; for distances, true facts should be nearer
    than the margin.
    """
    num_negatives = negative.shape[1]
    of_positive = functional.softplus(-margin - positive)
    of_negative = functional.softplus(margin + negative)
    of_negative = _mean_of_negatives(of_negative, negative, temperature)
    losses = (of_positive + num_negatives * of_negative) / (1 + num_negatives)
    return _mean_of_facts(losses, sample_weight)


def margin_loss(
    positive: Tensor,
    negative: Tensor,
    sample_weight: Tensor | None = None,
    *,
    margin: float,
    temperature: float,
) -> Tensor:
    """The margin loss of Bordes et al., 2013: facts should score higher than negatives by it."""
    shortfall = (margin - positive[:, None] + negative).relu()
    return _mean_of_facts(_mean_of_negatives(shortfall, negative, temperature), sample_weight)


def _mean_of_negatives(losses: Tensor, negative: Tensor, temperature: float) -> Tensor:
    """(batch, num_negatives) -> (batch,)."""
    if temperature == 0:
        return losses.mean(dim=1)
    negative_weight = (temperature * negative.detach()).softmax(dim=1)
    return (negative_weight * losses).sum(dim=1)


def _mean_of_facts(losses: Tensor, sample_weight: Tensor | None) -> Tensor:
    """The weighted mean over facts, divided by their number and not by their total weight.

    Weights are 1 on average over all facts. So the loss of a batch is the mean of the losses of
    its parts, for any number of processes.
    """
    return losses.mean() if sample_weight is None else (losses * sample_weight).mean()


ONE_VS_ALL_LOSSES: dict[str, OneVsAllLoss] = {
    "binary-cross-entropy": binary_cross_entropy_all,
    "cross-entropy": cross_entropy_all,
    "filtered-cross-entropy": filtered_cross_entropy,
}
LOSSES_OF_ALL_ANSWERS = ("filtered-cross-entropy",)  # these need all answers of a query
SAMPLED_SOFTMAX = "sampled-softmax"  # of `training/sampled_softmax.py`, which takes all it needs
SAMPLED_LOSSES: dict[str, SampledLoss] = {
    "self-adversarial": self_adversarial,
    "softplus": softplus_loss,
    "margin": margin_loss,
}
