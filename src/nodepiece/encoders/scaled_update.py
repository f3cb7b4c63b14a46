"""The end of a PNA layer: scale by degree, normalize, activate, add to the state."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from nodepiece.encoders import message_moments_cpu, scaled_update_cpu
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
    """relu(layer_norm(sum over k of scalers_k * parts_k + bias)) + states, like `states`.

    On a GPU and on a CPU one kernel forward and one backward: each row is read and written once.
    It is computed in float32, also where parts and states are in bfloat16.
    """
    on_cpu = message_moments_cpu.has_kernel(parts, states, bias, scale, shift)
    if has_kernel(parts, states) or on_cpu:
        return _ScaledUpdate.apply(parts, scalers, states, bias, scale, shift)  # type: ignore[no-untyped-call]
    precise = torch.promote_types(parts.dtype, torch.float32)
    update = (parts.to(precise) * scalers[:, None, :, None]).sum(dim=2) + bias
    update = layer_norm(update, bias.shape, scale, shift, EPSILON).relu() + states
    return update.to(states.dtype)


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
        if not parts.is_cuda:
            ctx.save_for_backward(parts, scalers, bias, scale, shift)
            return scaled_update_cpu.forward(parts, scalers, states, bias, scale, shift, EPSILON)
        from nodepiece.encoders import scaled_update_cuda  # imports Triton

        parts = parts.contiguous()
        ctx.save_for_backward(parts, scalers, bias, scale, shift)
        return scaled_update_cuda.forward(parts, scalers, states.contiguous(), bias, scale, shift)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        parts, scalers, bias, scale, shift = ctx.saved_tensors
        if not parts.is_cuda:
            of_parts, *of_vectors = scaled_update_cpu.backward(
                parts, scalers, bias, scale, shift, gradient, EPSILON
            )
            return of_parts, None, gradient, *of_vectors
        from nodepiece.encoders import scaled_update_cuda  # imports Triton

        gradient = gradient.contiguous()
        of_parts, *of_vectors = scaled_update_cuda.backward(
            parts, scalers, bias, scale, shift, gradient
        )
        return of_parts, None, gradient, *of_vectors
