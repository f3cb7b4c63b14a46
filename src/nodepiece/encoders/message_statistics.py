"""Principal neighbourhood aggregation (Corso et al., 2020): statistics at several scales.

Four statistics at three scales, as its authors have them. The code of our paper, in its one use
(inductive WN18RR v1), took six at five: also the sum, the variance, and scales linear in the
degree, all of messages already weighted by attention, and of the loop too, with 2.5 times the
weights.
"""

import torch
from torch import Tensor

from nodepiece.encoders.edge_sums import Ends, gather, largest_of_edges

NUM_STATISTICS = 4 * 3  # mean, deviation, smallest, largest; as they are, amplified, attenuated
SMALLEST_VARIANCE = 1e-5  # keeps the gradient of the root finite where all messages are alike


def all_statistics(
    mean: Tensor, squares: Tensor, each: Tensor, listeners: Ends, weight: Tensor | None
) -> Tensor:
    """(num_listeners, 12 * dim).

    mean, squares: (num_listeners, dim), weighted means of the messages and of their squares; each:
    (num_edges, dim), the messages themselves; weight: (num_edges, 1). With attention the mean and
    the deviation are weighted by it. A listener that hears nothing has zeros.
    """
    degree = gather(each.new_ones(len(each), 1) if weight is None else weight, listeners)
    variance = (squares - mean.square()).relu() + SMALLEST_VARIANCE
    deviation = variance.sqrt() * (degree > 0)
    largest = _largest(each, listeners, weight)
    smallest = -_largest(-each, listeners, weight)
    return scaled(torch.cat([mean, deviation, smallest, largest], dim=1), degree)


def scaled(statistics: Tensor, degree: Tensor) -> Tensor:
    """Beside themselves, times and over the logarithm of the degree, which is 1 on average.

    Direct and inverse listeners have averages of their own: the halves of the rows.
    """
    size = (degree + 1).log()  # (num_listeners, 1)
    usual = torch.cat([half.mean().expand_as(half) for half in size.chunk(2)])
    usual = usual.clamp_min(torch.finfo(size.dtype).tiny)
    amplified = statistics * (size / usual)
    attenuated = statistics * (usual / (degree.clamp_min(1.0) + 1).log())
    return torch.cat([statistics, amplified, attenuated], dim=1)


def _largest(each: Tensor, listeners: Ends, weight: Tensor | None) -> Tensor:
    if weight is not None:
        each = each.masked_fill(weight <= 0, -torch.inf)
    largest = largest_of_edges(each, listeners)
    return torch.where(largest > -torch.inf, largest, 0.0)
