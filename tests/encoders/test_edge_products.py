"""Products along edges and their sums, against a loop over the edges of random graphs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nodepiece.encoders.bag_sum import HAS_TRITON
from nodepiece.encoders.edge_products import (
    PRODUCTS,
    EdgeEnds,
    Product,
    ends_of,
    products_along,
    sum_products,
)
from nodepiece.encoders.edge_sums import CHUNK_CELLS

ROOT = Path(__file__).parents[2]
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


def in_order(ends: EdgeEnds) -> tuple:  # type: ignore[type-arg]
    return ends.tails, ends.relations, ends.heads


@few
@given(random_edges, st.sampled_from(HOW), st.booleans())
def test_sums_are_those_of_a_loop_over_edges_and_so_are_gradients(
    edges: Tensor, how: Product, is_weighted: bool
) -> None:
    nodes = random(NUM_NODES, DIM, seed=0).requires_grad_()
    relations = random(NUM_RELATIONS, DIM, seed=1).requires_grad_()
    weight = random(len(edges), seed=2) if is_weighted else None
    expected = [torch.zeros(DIM, dtype=torch.float64) for _ in range(NUM_NODES)]
    for index, (head, relation, tail) in enumerate(edges.tolist()):
        product = slow_product(nodes[tail], relations[relation], how)
        expected[head] = expected[head] + (product if weight is None else weight[index] * product)

    ends = in_order(ends_of(edges, NUM_NODES, NUM_RELATIONS))
    found = sum_products(nodes, relations, weight, ends, how)

    torch.testing.assert_close(found, torch.stack(expected))
    if len(edges):
        slope = random(NUM_NODES, DIM, seed=3)
        of = (nodes, relations)
        torch.testing.assert_close(
            torch.autograd.grad((found * slope).sum(), of),
            torch.autograd.grad((torch.stack(expected) * slope).sum(), of),
        )


@few
@given(random_edges, st.sampled_from(HOW))
def test_products_along_edges_are_those_of_a_loop_and_so_are_gradients(
    edges: Tensor, how: Product
) -> None:
    nodes = random(NUM_NODES, DIM, seed=0).requires_grad_()
    relations = random(NUM_RELATIONS, DIM, seed=1).requires_grad_()
    tails, at_relations, _ = in_order(ends_of(edges, NUM_NODES, NUM_RELATIONS))
    found = products_along(nodes, relations, (tails, at_relations), how)
    slow = [slow_product(nodes[t], relations[r], how) for _, r, t in edges.tolist()]
    expected = torch.stack([torch.zeros(DIM, dtype=torch.float64), *slow])[1:]
    torch.testing.assert_close(found, expected)
    if len(edges):
        slope, of = random(len(edges), DIM, seed=3), (nodes, relations)
        torch.testing.assert_close(
            torch.autograd.grad((found * slope).sum(), of),
            torch.autograd.grad((expected * slope).sum(), of),
        )


def test_more_edges_than_fit_a_cache_at_a_time_are_added_up_all_the_same() -> None:
    dim, num_edges = CHUNK_CELLS // 8, 100  # eight edges at a time; some nodes have more, some none
    generator = torch.Generator().manual_seed(0)
    edges = torch.stack(
        [
            torch.randint(high, (num_edges,), generator=generator) ** 2 % high
            for high in (7, NUM_RELATIONS, 7)
        ],
        dim=1,
    )
    nodes, relations = random(7, dim, seed=0), random(NUM_RELATIONS, dim, seed=1)
    expected = torch.zeros_like(nodes)
    for head, relation, tail in edges.tolist():
        expected[head] += nodes[tail] * relations[relation]
    ends = in_order(ends_of(edges, 7, NUM_RELATIONS))
    torch.testing.assert_close(sum_products(nodes, relations, None, ends), expected)


def check_kernels() -> None:
    """The kernels in Triton beside what they stand for."""
    from nodepiece.encoders import edge_products_cuda

    device = "cuda" if torch.cuda.is_available() else "cpu"  # the interpreter runs anywhere
    generator = torch.Generator().manual_seed(0)
    for dim, num_edges in ((6, 30), (100, 300), (600, 20), (4, 0)):
        edges = torch.randint(5, (num_edges, 3), generator=generator)
        ends = ends_of(edges, 6, 5)
        nodes, relations = (
            torch.randn(rows, dim, generator=generator).to(device) for rows in (6, 5)
        )
        each = torch.randn(num_edges, dim, generator=generator).to(device)
        weight = torch.randn(num_edges, generator=generator).to(device)
        _, relation, tail = edges.T.contiguous().to(device)
        members, offsets = ends.heads.edges.members.to(device), ends.heads.edges.offsets.to(device)
        owner = ends.heads.rows.to(device)
        for how in edge_products_cuda.NUMBER_OF:
            product = PRODUCTS[how](nodes[tail], relations[relation])
            found = edge_products_cuda.multiply_rows(nodes, tail, relations, relation, how)
            torch.testing.assert_close(found, product)
            for left, rows, weights in ((nodes, tail, weight), (each, None, None)):
                found = edge_products_cuda.sum_products(
                    left, rows, relations, relation, weights, members, offsets, how
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


@pytest.mark.skipif(not HAS_TRITON, reason="Triton comes with PyTorch for CUDA")
def test_the_kernels_interpreted_compute_what_they_stand_for() -> None:
    program = "from tests.encoders.test_edge_products import check_kernels; check_kernels()"
    environment = os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
