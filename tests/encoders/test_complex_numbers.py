import torch

from nodepiece.encoders.complex_numbers import to_unit_modulus


def test_numbers_come_to_the_unit_circle_and_zero_becomes_one() -> None:
    #                     3 + 4i, 0, -2i
    vector = torch.tensor([3.0, 0.0, 0.0, 4.0, 0.0, -2.0])
    assert to_unit_modulus(vector).tolist() == torch.tensor([0.6, 1, 0, 0.8, 0, -1]).tolist()


def test_the_gradient_is_that_of_the_division() -> None:
    vector = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.autograd.gradcheck(to_unit_modulus, vector.requires_grad_())
    unit = to_unit_modulus(vector)
    real, imaginary = vector.chunk(2, dim=-1)
    modulus = (real.square() + imaginary.square()).sqrt()
    torch.testing.assert_close(unit, torch.cat([real / modulus, imaginary / modulus], dim=-1))


def test_zero_has_no_gradient() -> None:
    vector = torch.zeros(4, requires_grad=True)
    (gradient,) = torch.autograd.grad(to_unit_modulus(vector).sum(), vector)
    assert gradient.tolist() == [0, 0, 0, 0]
