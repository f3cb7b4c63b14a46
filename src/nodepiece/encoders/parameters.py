"""Trained parameters, drawn from an explicit generator, and dropout that has one too."""

import math

import torch
from torch import Tensor, nn


def xavier(num_rows: int, dim: int, *, generator: torch.Generator) -> nn.Parameter:
    """(num_rows, dim), Xavier uniform: the initialization of anchors and distances."""
    weight = torch.empty(num_rows, dim)
    if num_rows:
        nn.init.xavier_uniform_(weight, generator=generator)
    return nn.Parameter(weight)


def phases(num_rows: int, dim: int, *, generator: torch.Generator) -> nn.Parameter:
    """(num_rows, dim): cosines in the first half, sines in the second, of uniform angles."""
    angle = torch.rand(num_rows, (dim + 1) // 2, generator=generator) * 2 * math.pi
    return nn.Parameter(torch.cat([angle.cos(), angle.sin()], dim=1)[:, :dim])


def linear(num_in: int, num_out: int, *, generator: torch.Generator) -> nn.Linear:
    """nn.Linear with its usual initialization, but from `generator`."""
    device = torch.get_default_device()  # skip_init alone would allocate on the CPU
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, num_in, num_out, device=device)  # type: ignore[no-untyped-call]
    bound = 1 / math.sqrt(num_in)
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)
    return layer


class Dropout(nn.Module):
    """Dropout that draws from a given generator, so that runs are reproducible."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self.generator: torch.Generator | None = None  # given by `use_generator`

    def forward(self, values: Tensor) -> Tensor:
        factors = self.factors(values)
        return values if factors is None else values * factors

    def factors(self, values: Tensor) -> Tensor | None:
        """What the values are multiplied by: 0, or 1 / (1 - share); None: they stay as they are.

        Only the shape, dtype and device of the values matter.
        """
        if not self.training or self.share == 0:
            return None
        if values.is_cuda:
            keep = torch.empty_like(values).bernoulli_(1 - self.share, generator=self.generator)
            return keep.div_(1 - self.share)
        return self._draw_on_cpu(values)

    def _draw_on_cpu(self, values: Tensor) -> Tensor:
        """The factor of every value: 0, or 1 / (1 - share); from 16 random bits each.

        Four values share a draw of 64 bits, since a CPU draws numbers one after the other; the
        dropped share is rounded to a multiple of 1 / 65,536.
        """
        count, num_dropped = values.numel(), round(self.share * 2**16)
        words = torch.empty((count + 3) // 4, dtype=torch.int64)
        words.random_(-(2**63), None, generator=self.generator)  # all 64 bits
        is_kept = words.view(torch.int16)[:count] >= num_dropped - 2**15
        keep = is_kept.to(values.dtype).mul_(1 / (1 - num_dropped / 2**16))
        return keep.view(values.shape)


def use_generator(module: nn.Module, generator: torch.Generator) -> None:
    """Make every dropout in `module` draw from `generator`, which is on the module's device.

    For a model that was moved to another device than that of its first generator:

        model = model.to("cuda")
        nodepiece.use_generator(model, torch.Generator("cuda").manual_seed(0))
    """
    for part in module.modules():
        if isinstance(part, Dropout):
            part.generator = generator


def num_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
