"""Along every edge a product of two rows, a node's and a relation's, and sums of such products.

All that message passing does with a relation: `products_along` gives every edge its product,
`sum_products` adds up those of the edges that end at the same place. The gradient of either is
again a sum of products, over the same edges grouped by another of their ends; so on a GPU one
kernel does it all, every sum has a fixed order, and no array of edges times dimensions is made
unless it is the result.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from nodepiece.encoders.bag_sum import HAS_TRITON, Bags, sum_chunks
from nodepiece.encoders.composition import complex_product
from nodepiece.encoders.edge_sums import CHUNK_CELLS, Ends, ends_at

Product = Literal["multiply", "rotate", "rotate back"]
# The gradient of one side is that of the result times the other side, by this product.
BACKWARDS: dict[str, Product] = {"multiply": "multiply", "rotate": "rotate back"}
PRODUCTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "multiply": torch.mul,
    "rotate": partial(complex_product, sign=1),
    "rotate back": partial(complex_product, sign=-1),
}


@dataclass(frozen=True)
class EdgeEnds:
    """Edges (head, relation, tail) by each of the three."""

    heads: Ends
    relations: Ends
    tails: Ends


def ends_of(edges: Tensor, num_nodes: int, num_relations: int) -> EdgeEnds:
    """edges: (num_edges, 3). Costs three stable sorts."""
    head, relation, tail = edges.long().T.contiguous()
    return EdgeEnds(
        ends_at(head, num_nodes), ends_at(relation, num_relations), ends_at(tail, num_nodes)
    )


def products_along(left: Tensor, right: Tensor, ends: tuple[Ends, Ends], how: Product) -> Tensor:
    """(num_left, dim), (num_right, dim) -> (num_edges, dim): for every edge left * right."""
    return _ProductSum.apply(left, right, None, *ends, None, how)  # type: ignore[no-untyped-call]


def sum_products(
    left: Tensor,
    right: Tensor,
    weight: Tensor | None,
    ends: tuple[Ends, Ends, Ends],
    how: Product = "multiply",
) -> Tensor:
    """For every target the sum over its edges of weight * left * right: (num_targets, dim).

    left (num_left, dim); right (num_right, dim); weight (num_edges,), which gets no gradient;
    ends: of left, of right, and the target.
    """
    return _ProductSum.apply(left, right, weight, *ends, how)  # type: ignore[no-untyped-call]


class _ProductSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        left: Tensor,
        right: Tensor,
        weight: Tensor | None,
        at_left: Ends,
        at_right: Ends,
        target: Ends | None,
        how: Product,
    ) -> Tensor:
        left, right = left.contiguous(), right.contiguous()
        ctx.save_for_backward(left, right, weight)
        ctx.ends, ctx.how = (at_left, at_right, target), how
        if target is None:
            return multiply_rows(left, at_left.rows, right, at_right.rows, how)
        return _sum(left, at_left.rows, right, at_right.rows, weight, target.edges, how)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        left, right, weight = ctx.saved_tensors
        at_left, at_right, target = ctx.ends
        rows, how = None if target is None else target.rows, BACKWARDS[ctx.how]
        gradient = gradient.contiguous()
        of_left, of_right = None, None
        if ctx.needs_input_grad[0]:
            of_left = _sum(gradient, rows, right, at_right.rows, weight, at_left.edges, how)
            of_left = of_left.to(left.dtype)
        if ctx.needs_input_grad[1]:
            of_right = _sum(gradient, rows, left, at_left.rows, weight, at_right.edges, how)
            of_right = of_right.to(right.dtype)
        return of_left, of_right, None, None, None, None, None


def _sum(
    left: Tensor,
    left_rows: Tensor | None,  # (num_edges,); None: edge e has row e
    right: Tensor,
    right_rows: Tensor,
    weight: Tensor | None,
    bags: Bags,  # of edges
    how: Product,
) -> Tensor:
    """The sums, by what suits the device."""
    if left.is_cuda and HAS_TRITON and left.dtype != torch.float64:
        from nodepiece.encoders import edge_products_cuda  # imports Triton

        return sum_chunks(
            bags,
            lambda offsets: edge_products_cuda.sum_products(
                left, left_rows, right, right_rows, weight, bags.members, offsets, how
            ),
        )
    # Edges of some bags at a time, so that their products stay in the cache of a CPU.
    size = max(1, CHUNK_CELLS // max(1, left.shape[1]))
    offsets = bags.offsets.long()
    firsts = torch.arange(0, len(bags.members) + 1, size, device=offsets.device)
    cuts = torch.searchsorted(offsets, firsts[1:]).unique().tolist()  # type: ignore[no-untyped-call]
    sums = []
    start, first = 0, 0
    for stop in [*(cut for cut in cuts if 0 < cut < bags.num_bags), bags.num_bags]:
        last = int(offsets[stop])
        edges = bags.members[first:last].long()
        one = left.index_select(0, edges if left_rows is None else left_rows[edges])
        product = PRODUCTS[how](one, right.index_select(0, right_rows[edges]))
        if weight is not None:
            product = product * weight[edges, None]
        every = torch.arange(len(edges), device=left.device)
        inside = offsets[start : stop + 1] - first
        sums.append(embedding_bag(every, product, inside, mode="sum", include_last_offset=True))
        start, first = stop, last
    return torch.cat(sums)


def multiply_rows(
    left: Tensor, left_rows: Tensor, right: Tensor, right_rows: Tensor, how: Product
) -> Tensor:
    if left.is_cuda and HAS_TRITON and left.dtype != torch.float64:
        from nodepiece.encoders import edge_products_cuda  # imports Triton

        return edge_products_cuda.multiply_rows(left, left_rows, right, right_rows, how)
    return PRODUCTS[how](left.index_select(0, left_rows), right.index_select(0, right_rows))
