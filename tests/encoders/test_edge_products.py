"""Products along edges and their sums, against a loop over the edges of random graphs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.encoders.interpreter import check_interpreted
from torch import Tensor

from nodepiece.encoders.bag_sum import HAS_TRITON
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.edge_products import (
    PRODUCTS,
    Product,
    _SumProducts,
    products_along,
    sum_products,
)

NUM_NODES, NUM_RELATIONS, DIM = 5, 3, 4
few = settings(max_examples=40, deadline=None)
HOW: list[Product] = ["multiply", "rotate"]

random_edges = st.lists(
    st.tuples(
        st.integers(0, NUM_NODES - 1),
        st.integers(0, NUM_RELATIONS - 1),
        st.integers(0, NUM_NODES - 1),
    ),
    max_size=20,
).map(lambda edges: torch.tensor(edges, dtype=torch.int64).reshape(-1, 3))


def random(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def slow_product(node: Tensor, relation: Tensor, how: Product) -> Tensor:
    if how == "multiply":
        return node * relation
    one, other = (torch.complex(*row.chunk(2)) for row in (node, relation))
    return torch.cat([(one * other).real, (one * other).imag])


def slow_sums(nodes: Tensor, relations: Tensor, weight: Tensor | None, edges: Tensor) -> Tensor:
    sums = [torch.zeros_like(nodes[0]) for _ in nodes]
    for index, (head, relation, tail) in enumerate(edges.tolist()):
        product = nodes[tail] * relations[relation]
        sums[head] = sums[head] + (product if weight is None else weight[index] * product)
    return torch.stack(sums)


def assert_same(found: Tensor, expected: Tensor, of: tuple[Tensor, ...]) -> None:
    """Equal values, and equal gradients of a sum in which every number has another weight."""
    torch.testing.assert_close(found, expected)
    slope = random(*expected.shape, seed=3)
    if expected.requires_grad:
        torch.testing.assert_close(
            torch.autograd.grad((found * slope).sum(), of),
            torch.autograd.grad((expected * slope).sum(), of, retain_graph=True),
        )


@few
@given(random_edges, st.booleans())
def test_sums_are_those_of_a_loop_over_edges_and_so_are_gradients(
    edges: Tensor, is_weighted: bool
) -> None:
    nodes = random(NUM_NODES, DIM, seed=0).requires_grad_()
    relations = random(NUM_RELATIONS, DIM, seed=1).requires_grad_()
    weight = random(len(edges), seed=2) if is_weighted else None
    expected = slow_sums(nodes, relations, weight, edges)
    edge_index = EdgeIndex(edges, NUM_NODES, NUM_RELATIONS)
    assert_same(sum_products(nodes, relations, weight, edge_index), expected, (nodes, relations))
    edge_by_edge = _SumProducts.apply(nodes, relations, weight, edge_index)  # type: ignore[no-untyped-call]
    assert_same(edge_by_edge, expected, (nodes, relations))  # as a GPU does it


@few
@given(random_edges, st.sampled_from(HOW))
def test_products_along_edges_are_those_of_a_loop_and_so_are_gradients(
    edges: Tensor, how: Product
) -> None:
    nodes = random(NUM_NODES, DIM, seed=0).requires_grad_()
    relations = random(NUM_RELATIONS, DIM, seed=1).requires_grad_()
    edge_index = EdgeIndex(edges, NUM_NODES, NUM_RELATIONS)
    found = products_along(nodes, relations, (edge_index.source, edge_index.relation), how)
    slow = [slow_product(nodes[t], relations[r], how) for _, r, t in edges.tolist()]
    expected = torch.stack([torch.zeros(DIM, dtype=torch.float64), *slow])[1:]
    assert_same(found, expected, (nodes, relations))


def test_one_node_with_one_number_hears_itself() -> None:
    edge_index = EdgeIndex(torch.tensor([[0, 0, 0], [0, 0, 0]]), 1, 1)
    nodes, relations = torch.tensor([[3.0]]), torch.tensor([[5.0]])
    assert sum_products(nodes, relations, torch.tensor([1.0, 2.0]), edge_index).tolist() == [[45.0]]


def test_no_nodes_hear_nothing() -> None:
    edge_index = EdgeIndex(torch.zeros(0, 3, dtype=torch.int64), 0, 2)
    assert sum_products(torch.zeros(0, 4), torch.zeros(2, 4), None, edge_index).shape == (0, 4)


def test_weights_may_lie_anywhere_and_get_no_gradient() -> None:
    edges = torch.tensor([[0, 0, 1], [1, 1, 0], [0, 1, 1]])
    edge_index = EdgeIndex(edges, 2, 2)
    nodes, relations = random(2, DIM, seed=0).requires_grad_(), random(2, DIM, seed=1)
    apart = random(3, 2, seed=2).requires_grad_()
    found = sum_products(nodes, relations, apart[:, 1], edge_index)
    expected = slow_sums(nodes, relations, apart[:, 1].detach(), edges)
    assert_same(found, expected, (nodes,))
    assert not sum_products(nodes.detach(), relations, apart[:, 1], edge_index).requires_grad


@pytest.mark.parametrize("how", HOW)
def test_of_two_precisions_the_finer_one_counts_and_gradients_have_their_own(how: Product) -> None:
    edges = torch.tensor([[0, 0, 1], [1, 1, 0], [0, 1, 1]])
    edge_index = EdgeIndex(edges, 2, 2)
    exact, relations = random(2, DIM, seed=0).bfloat16(), random(2, DIM, seed=1).float()
    nodes = exact.clone().requires_grad_()
    relations.requires_grad_()
    found = products_along(nodes, relations, (edge_index.source, edge_index.relation), how)
    expected = torch.stack(
        [slow_product(exact[t].float(), relations[r], how) for _, r, t in edges.tolist()]
    )
    torch.testing.assert_close(found, expected)
    of_nodes, of_relations = torch.autograd.grad(found.sum(), (nodes, relations))
    assert (of_nodes.dtype, of_relations.dtype) == (torch.bfloat16, torch.float32)
    assert sum_products(nodes, relations, None, edge_index).dtype == torch.float32


def check_kernels() -> None:
    """The kernels in Triton beside what they stand for."""
    from nodepiece.encoders import edge_products_cuda

    device = "cuda" if torch.cuda.is_available() else "cpu"  # the interpreter runs anywhere
    generator = torch.Generator().manual_seed(0)
    for dim, num_edges in ((2, 30), (6, 30), (100, 300), (600, 20), (4, 0)):
        edges = torch.randint(5, (num_edges, 3), generator=generator)
        edge_index = EdgeIndex(edges, 6, 5)
        nodes, relations = (
            torch.randn(rows, dim, generator=generator).to(device) for rows in (6, 5)
        )
        each = torch.randn(num_edges, dim, generator=generator).to(device)
        weight = torch.randn(num_edges, generator=generator).to(device)
        _, relation, tail = edges.T.contiguous().to(device)
        through = (relations, relation)
        members, offsets = (
            edge_index.target.edges.members.to(device),
            edge_index.target.edges.offsets.to(device),
        )
        owner = edge_index.target.rows.to(device)
        for how in edge_products_cuda.NUMBER_OF:
            product = PRODUCTS[how](nodes[tail], relations[relation])
            found = edge_products_cuda.multiply_rows((nodes, tail), through, how)
            torch.testing.assert_close(found, product)
            for left, rows, weights in ((nodes, tail, weight), (each, None, None)):
                found = edge_products_cuda.sum_products(
                    (left, rows), through, weights, members, offsets, how
                )
                one = left if rows is None else left[rows]
                product = PRODUCTS[how](one, relations[relation])
                if weights is not None:
                    product = product * weights[:, None]
                expected = torch.zeros(6, dim, device=device).index_add_(0, owner, product)
                torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.gpu
def test_the_kernels_on_a_gpu_compute_what_they_stand_for() -> None:
    check_kernels()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_and_gradients_on_a_gpu_are_those_of_a_cpu(dtype: torch.dtype) -> None:
    edges = torch.randint(7, (3000, 3), generator=torch.Generator().manual_seed(0))
    weight, slope = random(len(edges), seed=2).to(dtype), random(7, 40, seed=3).to(dtype)
    found = []
    for device in ("cpu", "cuda"):
        edge_index = EdgeIndex(edges.to(device), 7, 7)
        nodes, relations = (
            random(7, 40, seed=seed).to(device, dtype).requires_grad_() for seed in (0, 1)
        )
        sums = sum_products(nodes, relations, weight.to(device), edge_index)
        gradients = torch.autograd.grad((sums * slope.to(device)).sum(), (nodes, relations))
        found.append([part.detach().cpu() for part in (sums, *gradients)])
    tolerance = 1e-3 if dtype == torch.float32 else 1e-9
    torch.testing.assert_close(found[1], found[0], rtol=tolerance, atol=tolerance)


@pytest.mark.skipif(not HAS_TRITON, reason="Triton comes with PyTorch for CUDA")
def test_the_kernels_interpreted_compute_what_they_stand_for() -> None:
    check_interpreted("tests.encoders.test_edge_products")
