"""Principal neighbourhood aggregation (PNA; Corso et al., 2020): statistics of messages, scaled.

As in that paper there are four statistics (mean, deviation, smallest, largest) at three scales. The
code of the NodePiece paper, which uses PNA in one experiment (inductive WN18RR v1), has six
statistics (also sum and variance) at five scales (also two that are linear in the degree). It
computes them of messages weighted by attention, with the loop among them, and has 2.5 times the
weights.
"""

import torch
from torch import Tensor

from nodepiece.encoders.segments import EdgeGroups, segment_max, segment_sum

NUM_STATISTICS = 4 * 3  # mean, deviation, smallest, largest; as they are, amplified, attenuated
SMALLEST_VARIANCE = 1e-5  # keeps the gradient of the root finite where all messages are alike


def all_statistics(
    mean: Tensor, squares: Tensor, each: Tensor, targets: EdgeGroups, edge_mask: Tensor | None
) -> Tensor:
    """All statistics of the messages of each target: (num_targets, 12 * dim).

    mean, squares: (num_targets, dim), weighted means of the messages and of their squares; each:
    (num_edges, dim), the messages; edge_mask: (num_edges, 1). With attention the mean and
    the deviation are weighted by it. A target without messages has zeros.
    """
    degree = segment_sum(each.new_ones(len(each), 1) if edge_mask is None else edge_mask, targets)
    variance = (squares - mean.square()).relu() + SMALLEST_VARIANCE
    deviation = variance.sqrt() * (degree > 0)
    largest = _largest(each, targets, edge_mask)
    smallest = -_largest(-each, targets, edge_mask)
    return scaled(torch.cat([mean, deviation, smallest, largest], dim=1), degree)


def scaled(statistics: Tensor, degree: Tensor) -> Tensor:
    """The statistics unscaled, times the log-degree, and divided by it, side by side.

    The log-degree is divided by its mean, separately for direct and inverse targets, which are
    the two halves of the rows.
    """
    size = (degree + 1).log()  # (num_targets, 1)
    usual = torch.cat([half.mean().expand_as(half) for half in size.chunk(2)])
    usual = usual.clamp_min(torch.finfo(size.dtype).tiny)
    amplified = statistics * (size / usual)
    attenuated = statistics * (usual / (degree.clamp_min(1.0) + 1).log())
    return torch.cat([statistics, amplified, attenuated], dim=1)


def _largest(each: Tensor, targets: EdgeGroups, edge_mask: Tensor | None) -> Tensor:
    if edge_mask is not None:
        each = each.masked_fill(edge_mask <= 0, -torch.inf)
    largest = segment_max(each, targets)
    return torch.where(largest > -torch.inf, largest, 0.0)
