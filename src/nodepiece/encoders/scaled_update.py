"""The end of a PNA layer: scale by degree, normalize, activate, add to the state."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from nodepiece.encoders.bag_sum import has_kernel

EPSILON = 1e-5


def scaled_update(
    parts: Tensor,  # (num_nodes, num_queries, 3, dim)
    scalers: Tensor,  # (num_nodes, 3) float32, without a gradient
    states: Tensor,  # (num_nodes, num_queries, dim)
    bias: Tensor,  # (dim,)
    scale: Tensor,  # (dim,)
    shift: Tensor,  # (dim,)
) -> Tensor:
    """relu(layer_norm(sum over k of scalers_k * parts_k + bias)) + states.

    On a GPU one kernel forward and one backward: each row is read and written once.
    """
    if has_kernel(parts, states):
        return _ScaledUpdate.apply(parts, scalers, states, bias, scale, shift)  # type: ignore[no-untyped-call]
    update = (parts * scalers[:, None, :, None].to(parts.dtype)).sum(dim=2) + bias
    return layer_norm(update, bias.shape, scale, shift, EPSILON).relu() + states


class _ScaledUpdate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        parts: Tensor,
        scalers: Tensor,
        states: Tensor,
        bias: Tensor,
        scale: Tensor,
        shift: Tensor,
    ) -> Tensor:
        from nodepiece.encoders import scaled_update_cuda  # imports Triton

        parts = parts.contiguous()
        ctx.save_for_backward(parts, scalers, bias, scale, shift)
        return scaled_update_cuda.forward(parts, scalers, states.contiguous(), bias, scale, shift)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from nodepiece.encoders import scaled_update_cuda  # imports Triton

        parts, scalers, bias, scale, shift = ctx.saved_tensors
        gradient = gradient.contiguous()
        of_parts, *of_vectors = scaled_update_cuda.backward(
            parts, scalers, bias, scale, shift, gradient
        )
        return of_parts, None, gradient, *of_vectors
