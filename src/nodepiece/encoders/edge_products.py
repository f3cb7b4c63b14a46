"""Along every edge a product of two rows, a node's and a relation's, and sums of such products.

All that message passing does with a relation: `products_along` gives every edge its product,
`sum_products` adds up those of a node's edges. The gradient of either is again a sum of products,
over the same edges grouped by another of their ends, so every sum has a fixed order. On a GPU one
kernel does it all, and no array of edges times dimensions is made unless it is the result. A CPU
multiplies once what several edges share, which is three times as fast on FB15k-237 as edge by edge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import torch
from torch import Tensor

from nodepiece.encoders.bag_sum import Bags, has_kernel, sum_chunks, sum_members
from nodepiece.encoders.composition import complex_product
from nodepiece.encoders.edge_sums import Ends, ends_at, weighted_sum

Product = Literal["multiply", "rotate"]
# The gradient of one side is that of the result times the other side, by this product.
BACKWARDS = {"multiply": "multiply", "rotate": "rotate back"}
PRODUCTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "multiply": torch.mul,
    "rotate": partial(complex_product, sign=1),
    "rotate back": partial(complex_product, sign=-1),
}
# One side of the products: (num_rows, dim), and for every edge its row.
Side = tuple[Tensor, Tensor]
SideOfEdges = tuple[Tensor, None]  # the rows are those of the edges: (num_edges, dim)


@dataclass(frozen=True)
class Voices:
    """The distinct pairs of relation and tail of some edges."""

    of_edges: Ends  # num_edges edges, num_voices rows
    relations: Ends  # of voices: num_voices edges, num_relations rows
    tails: Ends  # of voices: num_voices edges, num_nodes rows


@dataclass(frozen=True)
class EdgeEnds:
    """Edges (head, relation, tail) by each of the three."""

    heads: Ends
    relations: Ends
    tails: Ends

    @cached_property
    def voices(self) -> Voices:
        """Costs four sorts; a GPU does without."""
        num_relations, num_nodes = (end.edges.num_bags for end in (self.relations, self.tails))
        key, voice = torch.unique(
            self.relations.rows * num_nodes + self.tails.rows, return_inverse=True
        )
        return Voices(
            ends_at(voice, len(key)),
            ends_at(key // max(1, num_nodes), num_relations),
            ends_at(key % max(1, num_nodes), num_nodes),
        )


def ends_of(edges: Tensor, num_nodes: int, num_relations: int) -> EdgeEnds:
    """edges: (num_edges, 3). Costs three stable sorts."""
    head, relation, tail = edges.long().T.contiguous()
    return EdgeEnds(
        ends_at(head, num_nodes), ends_at(relation, num_relations), ends_at(tail, num_nodes)
    )


def products_along(left: Tensor, right: Tensor, ends: tuple[Ends, Ends], how: Product) -> Tensor:
    """(num_left, dim), (num_right, dim) -> (num_edges, dim): for every edge left * right."""
    return _ProductsAlong.apply(left, right, *ends, how)  # type: ignore[no-untyped-call]


def sum_products(nodes: Tensor, relations: Tensor, weight: Tensor | None, ends: EdgeEnds) -> Tensor:
    """For every node the sum over its edges of weight * tail * relation: (num_nodes, dim).

    nodes (num_nodes, dim); relations (num_relations, dim); weight (num_edges,), which gets no
    gradient.
    """
    if weight is not None:
        weight = weight.detach().contiguous()
    if has_kernel(nodes, relations):
        return _SumProducts.apply(nodes, relations, weight, ends)  # type: ignore[no-untyped-call]
    voices = ends.voices
    said = products_along(nodes, relations, (voices.tails, voices.relations), "multiply")
    if weight is None:
        weight = said.new_ones(len(ends.heads.rows))
    return weighted_sum(said, weight[:, None], voices.of_edges, ends.heads)


class _ProductsAlong(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, left: Tensor, right: Tensor, at_left: Ends, at_right: Ends, how: Product
    ) -> Tensor:
        left, right = left.contiguous(), right.contiguous()
        ctx.save_for_backward(left, right)
        ctx.ends, ctx.how = (at_left, at_right), how
        return _multiply((left, at_left.rows), (right, at_right.rows), how)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        left, right = ctx.saved_tensors
        (at_left, at_right), how = ctx.ends, BACKWARDS[ctx.how]
        each = (gradient.contiguous(), None)
        of_left, of_right = None, None
        if ctx.needs_input_grad[0]:
            of_left = _add_up(each, (right, at_right.rows), at_left.edges, how).to(left.dtype)
        if ctx.needs_input_grad[1]:
            of_right = _add_up(each, (left, at_left.rows), at_right.edges, how).to(right.dtype)
        return of_left, of_right, None, None, None


class _SumProducts(torch.autograd.Function):
    """The sums by the kernel for GPUs."""

    @staticmethod
    def forward(
        ctx: Any, nodes: Tensor, relations: Tensor, weight: Tensor | None, ends: EdgeEnds
    ) -> Tensor:
        nodes, relations = nodes.contiguous(), relations.contiguous()
        ctx.save_for_backward(nodes, relations, weight)
        ctx.ends = ends
        tails, through = (nodes, ends.tails.rows), (relations, ends.relations.rows)
        return _add_up(tails, through, ends.heads.edges, "multiply", weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        nodes, relations, weight = ctx.saved_tensors
        ends: EdgeEnds = ctx.ends
        heads = (gradient.contiguous(), ends.heads.rows)
        of_nodes, of_relations = None, None
        if ctx.needs_input_grad[0]:
            through = (relations, ends.relations.rows)
            of_nodes = _add_up(heads, through, ends.tails.edges, "multiply", weight)
            of_nodes = of_nodes.to(nodes.dtype)
        if ctx.needs_input_grad[1]:
            tails = (nodes, ends.tails.rows)
            of_relations = _add_up(heads, tails, ends.relations.edges, "multiply", weight)
            of_relations = of_relations.to(relations.dtype)
        return of_nodes, of_relations, None, None


def add_products(left: Side | SideOfEdges, right: Side, bags: Bags) -> Tensor:
    """(num_bags, dim): the sum over the edges in each bag of left * right; without a gradient."""
    return _add_up(left, right, bags, "multiply")


def _multiply(left: Side, right: Side, how: str) -> Tensor:
    """(num_edges, dim): the product of every edge."""
    if has_kernel(left[0], right[0]):
        from nodepiece.encoders import edge_products_cuda  # imports Triton

        return edge_products_cuda.multiply_rows(left, right, how)
    return PRODUCTS[how](_rows_of(left), _rows_of(right))


def _add_up(
    left: Side | SideOfEdges,
    right: Side,
    bags: Bags,  # of edges
    how: str,
    weight: Tensor | None = None,
) -> Tensor:
    """(num_bags, dim): the sum of the products of the edges in each bag."""
    if has_kernel(left[0], right[0]):
        from nodepiece.encoders import edge_products_cuda  # imports Triton

        return sum_chunks(
            bags,
            lambda chunks: edge_products_cuda.sum_products(
                left, right, weight, bags.members, chunks, how
            ),
        )
    product = PRODUCTS[how](_rows_of(left), _rows_of(right))
    return sum_members(product if weight is None else product * weight[:, None], bags)


def _rows_of(side: Side | SideOfEdges) -> Tensor:
    """(num_edges, dim)."""
    values, rows = side
    return values if rows is None else values.index_select(0, rows)
