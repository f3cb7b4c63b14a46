"""Complex vectors as real ones of twice the length: real half first, imaginary half second.

This is the only complex layout in the package. Real arithmetic is used throughout because it
works in every precision and is compiled well, which complex types are not.
"""

import torch
from torch import Tensor

NO_MODULUS = 1e-12  # below it a complex number has no direction


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """Elementwise product; (..., dim) twice, broadcasting -> (..., dim)."""
    left_real, left_imaginary = left.chunk(2, dim=-1)
    right_real, right_imaginary = right.chunk(2, dim=-1)
    real = left_real * right_real - left_imaginary * right_imaginary
    imaginary = left_real * right_imaginary + left_imaginary * right_real
    return torch.cat([real, imaginary], dim=-1)


def conjugate(vector: Tensor) -> Tensor:
    real, imaginary = vector.chunk(2, dim=-1)
    return torch.cat([real, -imaginary], dim=-1)


def moduli(vector: Tensor) -> Tensor:
    """(..., dim) -> (..., dim / 2); the gradient at zero is zero."""
    real, imaginary = vector.chunk(2, dim=-1)
    return safe_root(real.square() + imaginary.square())


def safe_root(squared: Tensor) -> Tensor:
    """The root; 0 with gradient 0 for what is 0, or what rounding left below it."""
    is_positive = squared > 0
    return torch.where(is_positive, torch.where(is_positive, squared, 1.0).sqrt(), 0.0)


def to_unit_modulus(vector: Tensor) -> Tensor:
    """Every complex number on the unit circle; zero, which has no direction, becomes 1."""
    modulus = moduli(vector)
    has_none = modulus < NO_MODULUS
    real, imaginary = (
        half / modulus.masked_fill(has_none, 1.0) for half in vector.chunk(2, dim=-1)
    )
    real, imaginary = real.masked_fill(has_none, 1.0), imaginary.masked_fill(has_none, 0.0)
    return torch.cat([real, imaginary], dim=-1)
