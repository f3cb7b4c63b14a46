"""Products of a node row and a relation row along edges, and sums of such products.

`products_along` returns the product of every edge, `sum_products` the sum over the edges of each
node. The gradient of either is again a sum of products, over the same edges grouped by source,
relation or target, so every sum has a fixed order. On a GPU one kernel computes it, and no array of
edges times dimensions is made unless it is the result. On a CPU a product that several edges share
is computed once, which is three times as fast on FB15k-237 as edge by edge.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from nodepiece.encoders.bag_sum import Bags, has_kernel, sum_chunks, sum_members
from nodepiece.encoders.complex_numbers import product
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.segments import EdgeGroups, weighted_segment_sum

Product = Literal["multiply", "rotate"]
# The gradient of one side is the gradient of the result times the other side, by this product.
BACKWARDS = {"multiply": "multiply", "rotate": "rotate back"}
PRODUCTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "multiply": torch.mul,
    "rotate": partial(product, sign=1),
    "rotate back": partial(product, sign=-1),
}
# One side of the products: (num_rows, dim), and for every edge its row.
Side = tuple[Tensor, Tensor]
SideOfEdges = tuple[Tensor, None]  # the rows are those of the edges: (num_edges, dim)


def products_along(
    left: Tensor, right: Tensor, ends: tuple[EdgeGroups, EdgeGroups], how: Product
) -> Tensor:
    """The product left * right of every edge: (num_edges, dim)."""
    return _ProductsAlong.apply(left, right, *ends, how)  # type: ignore[no-untyped-call]


def sum_products(
    nodes: Tensor, relations: Tensor, edge_weight: Tensor | None, edge_index: EdgeIndex
) -> Tensor:
    """For every node the sum over its edges of edge_weight * tail * relation: (num_nodes, dim).

    nodes (num_nodes, dim); relations (num_relations, dim); edge_weight (num_edges,), which gets no
    gradient.
    """
    if edge_weight is not None:
        edge_weight = edge_weight.detach().contiguous()
    if has_kernel(nodes, relations):
        return _SumProducts.apply(nodes, relations, edge_weight, edge_index)  # type: ignore[no-untyped-call]
    pairs = edge_index.pairs
    messages = products_along(nodes, relations, (pairs.sources, pairs.relations), "multiply")
    if edge_weight is None:
        edge_weight = messages.new_ones(edge_index.num_edges)
    return weighted_segment_sum(messages, edge_weight[:, None], pairs.of_edges, edge_index.target)


class _ProductsAlong(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        left: Tensor,
        right: Tensor,
        at_left: EdgeGroups,
        at_right: EdgeGroups,
        how: Product,
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
    """`sum_products` by the kernel for GPUs."""

    @staticmethod
    def forward(
        ctx: Any,
        nodes: Tensor,
        relations: Tensor,
        edge_weight: Tensor | None,
        edge_index: EdgeIndex,
    ) -> Tensor:
        nodes, relations = nodes.contiguous(), relations.contiguous()
        ctx.save_for_backward(nodes, relations, edge_weight)
        ctx.edge_index = edge_index
        tails, through = (nodes, edge_index.source.rows), (relations, edge_index.relation.rows)
        return _add_up(tails, through, edge_index.target.edges, "multiply", edge_weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        nodes, relations, edge_weight = ctx.saved_tensors
        edge_index: EdgeIndex = ctx.edge_index
        heads = (gradient.contiguous(), edge_index.target.rows)
        of_nodes, of_relations = None, None
        if ctx.needs_input_grad[0]:
            through = (relations, edge_index.relation.rows)
            of_nodes = _add_up(heads, through, edge_index.source.edges, "multiply", edge_weight)
            of_nodes = of_nodes.to(nodes.dtype)
        if ctx.needs_input_grad[1]:
            tails = (nodes, edge_index.source.rows)
            of_relations = _add_up(heads, tails, edge_index.relation.edges, "multiply", edge_weight)
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
    edge_weight: Tensor | None = None,
) -> Tensor:
    """(num_bags, dim): the sum of the products of the edges in each bag."""
    if has_kernel(left[0], right[0]):
        from nodepiece.encoders import edge_products_cuda  # imports Triton

        return sum_chunks(
            bags,
            lambda chunks: edge_products_cuda.sum_products(
                left, right, edge_weight, bags.members, chunks, how
            ),
        )
    product = PRODUCTS[how](_rows_of(left), _rows_of(right))
    return sum_members(product if edge_weight is None else product * edge_weight[:, None], bags)


def _rows_of(side: Side | SideOfEdges) -> Tensor:
    """(num_edges, dim)."""
    values, rows = side
    return values if rows is None else values.index_select(0, rows)
