"""How a neighbour and the relation to it become one vector (Vashishth et al., 2020).

Each takes (..., dim) twice, node and relation, and broadcasts. Complex vectors have their real
half first, as everywhere.
"""

from collections.abc import Callable

from torch import Tensor

from nodepiece.encoders import complex_numbers

Composition = Callable[[Tensor, Tensor], Tensor]


def rotate(node: Tensor, relation: Tensor) -> Tensor:
    """The complex product. Relations start on the unit circle, so it starts as a rotation."""
    return complex_numbers.multiply(node, relation)


def multiply(node: Tensor, relation: Tensor) -> Tensor:
    return node * relation


def subtract(node: Tensor, relation: Tensor) -> Tensor:
    return node - relation


COMPOSITIONS: dict[str, Composition] = {
    "rotate": rotate,
    "multiply": multiply,
    "subtract": subtract,
}
