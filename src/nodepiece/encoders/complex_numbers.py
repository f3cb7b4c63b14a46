"""Complex vectors as real ones of twice the length: real half first, imaginary half second.

This is the layout everywhere but where `to_halves` and `to_adjacent` are used. Real arithmetic is
used throughout because it works in every precision and is compiled well, which complex types are
not.
"""

from typing import Any

import torch
from torch import Tensor

NO_MODULUS = 1e-12  # below it a complex number has no direction


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """The elementwise product: (..., dim) twice, broadcasting -> (..., dim). Autograd works."""
    left_real, left_imaginary = left.chunk(2, dim=-1)
    right_real, right_imaginary = right.chunk(2, dim=-1)
    real = left_real * right_real - left_imaginary * right_imaginary
    imaginary = left_real * right_imaginary + left_imaginary * right_real
    return torch.cat([real, imaginary], dim=-1)


def product(left: Tensor, right: Tensor, *, sign: int) -> Tensor:
    """left * right, or left * conjugate(right) if the sign is -1; the shapes are equal.

    It writes into one buffer, in half the passes over memory of `multiply`. Autograd cannot follow
    it: it is for functions with an explicit gradient.
    """
    left_real, left_imaginary = left.chunk(2, dim=-1)
    right_real, right_imaginary = right.chunk(2, dim=-1)
    product = torch.empty_like(left, dtype=torch.result_type(left, right))
    real, imaginary = product.chunk(2, dim=-1)
    torch.mul(left_real, right_real, out=real)
    real.addcmul_(left_imaginary, right_imaginary, value=-sign)
    torch.mul(left_imaginary, right_real, out=imaginary)
    imaginary.addcmul_(left_real, right_imaginary, value=sign)
    return product


def conjugate(vector: Tensor) -> Tensor:
    real, imaginary = vector.chunk(2, dim=-1)
    return torch.cat([real, -imaginary], dim=-1)


def to_halves(vector: Tensor) -> Tensor:
    """Real half first, from complex numbers whose two parts are adjacent: (..., dim)."""
    pairs = vector.view(*vector.shape[:-1], vector.shape[-1] // 2, 2)
    return pairs.transpose(-1, -2).flatten(start_dim=-2)


def to_adjacent(vector: Tensor) -> Tensor:
    """The inverse of `to_halves`."""
    return _halves(vector).transpose(-1, -2).flatten(start_dim=-2)


def moduli(vector: Tensor) -> Tensor:
    """(..., dim) -> (..., dim / 2); the gradient at zero is zero."""
    real, imaginary = vector.chunk(2, dim=-1)
    return safe_root(real.square() + imaginary.square())


def safe_root(squared: Tensor) -> Tensor:
    """The square root; 0 with gradient 0 where the value is 0 or, by rounding, below 0."""
    is_positive = squared > 0
    return torch.where(is_positive, torch.where(is_positive, squared, 1.0).sqrt(), 0.0)


def to_unit_modulus(vector: Tensor) -> Tensor:
    """Complex numbers normalized to modulus 1; zero, which has no direction, becomes 1."""
    return _ToUnitModulus.apply(vector)  # type: ignore[no-untyped-call]


class _ToUnitModulus(torch.autograd.Function):
    """`to_unit_modulus` with an explicit gradient: a quarter of the passes over small arrays."""

    @staticmethod
    def forward(ctx: Any, vector: Tensor) -> Tensor:
        parts = _halves(vector)
        modulus = parts.square().sum(dim=-2, keepdim=True).sqrt()
        has_none = modulus < NO_MODULUS
        inverse = modulus.masked_fill(has_none, torch.inf).reciprocal()  # 0 where there is none
        unit = parts * inverse
        unit.select(-2, 0).add_(has_none.squeeze(-2))
        ctx.save_for_backward(unit, inverse)
        return unit.flatten(start_dim=-2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        unit, inverse = ctx.saved_tensors
        parts = _halves(gradient)
        outwards = (parts * unit).sum(dim=-2, keepdim=True)  # along the number: has no effect
        return ((parts - unit * outwards) * inverse).flatten(start_dim=-2)


def _halves(vector: Tensor) -> Tensor:
    """(..., dim) -> (..., 2, dim / 2): real, imaginary."""
    return vector.view(*vector.shape[:-1], 2, vector.shape[-1] // 2)
