"""Compositions of a neighbour and a relation, against complex arithmetic."""

import pytest
import torch
from torch import Tensor

from nodepiece.encoders.composition import rotate


def as_complex(vector: Tensor) -> Tensor:
    real, imaginary = vector.chunk(2, dim=-1)
    return torch.complex(real, imaginary)


@pytest.mark.parametrize("num_relations", [1, 7])  # one for all nodes, or one for each
@pytest.mark.parametrize("num_nodes", [7, 0])
def test_a_rotation_is_the_complex_product(num_nodes: int, num_relations: int) -> None:
    generator = torch.Generator().manual_seed(0)
    num_relations = min(num_relations, max(1, num_nodes))
    node, relation = (
        torch.randn(rows, 6, generator=generator, dtype=torch.float64).requires_grad_()
        for rows in (num_nodes, num_relations)
    )
    product = as_complex(node) * as_complex(relation)
    expected = torch.cat([product.real, product.imag], dim=-1)
    found = rotate(node, relation)
    torch.testing.assert_close(found, expected)
    weight = torch.arange(found.numel(), dtype=torch.float64).cos().view_as(found)
    torch.testing.assert_close(
        torch.autograd.grad((found * weight).sum(), [node, relation]),
        torch.autograd.grad((expected * weight).sum(), [node, relation]),
    )
