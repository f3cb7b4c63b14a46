import math

import pytest
import torch
from torch import nn

from nodepiece.encoders.parameters import Dropout, linear, phases, use_generator, xavier


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def dropout(share: float, *, seed: int = 0) -> Dropout:
    module = Dropout(share)
    use_generator(module, seeded(seed))
    return module


def test_dropout_zeroes_its_share_and_scales_up_the_rest() -> None:
    dropped = dropout(0.3)(torch.full((200, 200), 7.0))
    kept = dropped[dropped != 0]
    kept_share = 1 - round(0.3 * 2**16) / 2**16  # shares are whole 65,536ths on the CPU
    torch.testing.assert_close(kept, torch.full_like(kept, 7 / kept_share))
    assert 1 - len(kept) / dropped.numel() == pytest.approx(0.3, abs=0.01)  # 4 deviations


def test_dropout_is_off_in_evaluation() -> None:
    values = torch.randn(5, 5, generator=seeded())
    assert dropout(0.9).eval()(values) is values


def test_the_same_state_of_the_generator_gives_the_same_mask() -> None:
    values = torch.ones(50)
    first, second = dropout(0.5), dropout(0.5)
    assert torch.equal(first(values), second(values))
    assert not torch.equal(first(values), dropout(0.5, seed=1)(values))


def test_dropout_passes_on_the_gradient_of_what_it_kept() -> None:
    values = torch.ones(50, requires_grad=True)
    dropped = dropout(0.5)(values)
    dropped.sum().backward()
    assert values.grad is not None
    torch.testing.assert_close(values.grad, dropped.detach())


def test_every_dropout_below_a_module_gets_the_generator() -> None:
    module, generator = nn.Sequential(Dropout(0.1), nn.Sequential(Dropout(0.2))), seeded()
    use_generator(module, generator)
    assert all(p.generator is generator for p in module.modules() if isinstance(p, Dropout))


def test_nothing_here_touches_the_global_random_state() -> None:
    before = torch.get_rng_state()
    xavier(5, 4, generator=seeded())
    phases(5, 4, generator=seeded())
    linear(5, 4, generator=seeded())
    dropout(0.5)(torch.ones(9))
    assert torch.equal(torch.get_rng_state(), before)


def test_phases_are_numbers_of_modulus_one_with_the_real_half_first() -> None:
    real, imaginary = phases(100, 6, generator=seeded()).detach().chunk(2, dim=1)
    torch.testing.assert_close(real.square() + imaginary.square(), torch.ones(100, 3))
    angles = torch.atan2(imaginary, real)
    assert angles.min() < -2.5
    assert angles.max() > 2.5


def test_phases_have_the_size_asked_for_even_if_it_is_odd() -> None:
    assert phases(3, 5, generator=seeded()).shape == (3, 5)


def test_linear_starts_within_the_bounds_of_pytorch() -> None:
    layer = linear(16, 1000, generator=seeded())
    for parameter in (layer.weight, layer.bias):
        assert 0.2 < parameter.abs().max() <= 1 / math.sqrt(16)


def test_xavier_of_no_rows_is_empty() -> None:
    assert xavier(0, 4, generator=seeded()).shape == (0, 4)
