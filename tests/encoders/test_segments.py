"""Sums along edges, against dense products with incidence matrices on random graphs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.encoders.interpreter import check_interpreted
from torch import Tensor

from nodepiece.encoders.bag_sum import HAS_TRITON
from nodepiece.encoders.segments import (
    EdgeGroups,
    edge_dot_products,
    group_edges,
    segment_max,
    segment_softmax,
    segment_sum,
    sum_weighted,
    take_rows,
    weighted_segment_sum,
)

HEADS, HEAD_DIM = 2, 3
few = settings(max_examples=30, deadline=None)


@st.composite
def random_ends(draw: st.DrawFn) -> tuple[EdgeGroups, EdgeGroups, int, int]:
    """Sources and targets of some edges, sorted by target, and how many rows both have."""
    num_sources, num_targets = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    ends = st.tuples(st.integers(0, num_sources - 1), st.integers(0, num_targets - 1))
    edges = sorted(draw(st.lists(ends, max_size=12)), key=lambda edge: edge[1])
    source, target = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    return (
        group_edges(source, num_sources),
        group_edges(target, num_targets),
        num_sources,
        num_targets,
    )


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def incidence(ends: EdgeGroups, num_rows: int) -> Tensor:
    """(num_edges, num_rows): 1 where the edge ends."""
    return torch.nn.functional.one_hot(ends.rows, num_rows).double()


def assert_same(found: Tensor, expected: Tensor, of: list[Tensor]) -> None:
    """Equal values, and equal gradients of a sum in which every number has another weight."""
    torch.testing.assert_close(found, expected)
    weight = torch.arange(expected.numel(), dtype=torch.float64).cos().view_as(expected)
    torch.testing.assert_close(
        torch.autograd.grad((found * weight).sum(), of),
        torch.autograd.grad((expected * weight).sum(), of),
    )


@few
@given(random_ends())
def test_spread_and_gather_are_products_with_the_incidence_matrix(
    drawn: tuple[EdgeGroups, EdgeGroups, int, int],
) -> None:
    source, _, num_sources, _ = drawn
    matrix = incidence(source, num_sources)
    rows, values = random(num_sources, 4), random(len(source.rows), 4, seed=1)
    assert_same(take_rows(rows, source), matrix @ rows, [rows])
    assert_same(segment_sum(values, source), matrix.T @ values, [values])


@few
@given(random_ends())
def test_weighted_sums_are_products_with_a_weighted_matrix_for_each_head(
    drawn: tuple[EdgeGroups, EdgeGroups, int, int],
) -> None:
    source, target, num_sources, num_targets = drawn
    rows, weights = random(num_sources, HEADS * HEAD_DIM), random(len(source.rows), HEADS, seed=1)
    start, end = incidence(source, num_sources), incidence(target, num_targets)
    expected = torch.cat(
        [
            end.T @ (weights[:, head, None] * start) @ part
            for head, part in enumerate(rows.chunk(HEADS, dim=1))
        ],
        dim=1,
    )
    assert_same(weighted_segment_sum(rows, weights, source, target), expected, [rows, weights])


@few
@given(random_ends(), st.booleans())
def test_softmax_is_over_the_edges_of_each_target(
    drawn: tuple[EdgeGroups, EdgeGroups, int, int], hides: bool
) -> None:
    _, target, _, num_targets = drawn
    scores, num_edges = random(len(target.rows), HEADS), len(target.rows)
    weight = (torch.arange(num_edges)[:, None] % 3 != 0).double() if hides else None
    expected = torch.zeros(num_edges, HEADS, dtype=torch.float64)
    for node in range(num_targets):
        own = target.rows == node
        if weight is not None:
            own = own & (weight[:, 0] > 0)
        expected = expected.masked_scatter(own[:, None], scores[own].softmax(dim=0))
    assert_same(segment_softmax(scores, target, weight), expected, [scores])


def test_large_scores_do_not_overflow() -> None:
    target = group_edges(torch.tensor([0, 0, 1]), 2)
    shares = segment_softmax(torch.tensor([[1e4], [1e4], [-1e4]]), target, None)
    assert shares.flatten().tolist() == [0.5, 0.5, 1.0]


def test_the_largest_of_no_edges_is_minus_infinity() -> None:
    target = group_edges(torch.tensor([0, 0, 2]), 3)
    found = segment_max(torch.tensor([[1.0], [3.0], [-2.0]]), target)
    assert found.flatten().tolist() == [3.0, -torch.inf, -2.0]


def check_kernels() -> None:
    """The kernels in Triton beside what they stand for."""
    from nodepiece.encoders import segments_cuda

    device = "cuda" if torch.cuda.is_available() else "cpu"  # the interpreter runs anywhere
    generator = torch.Generator().manual_seed(0)
    for heads, dim, num_edges in ((1, 5, 30), (1, 300, 30), (4, 100, 300), (2, 6, 0)):
        source = group_edges(torch.randint(7, (num_edges,), generator=generator), 7)
        target = group_edges(torch.randint(5, (num_edges,), generator=generator), 6)
        rows, others = torch.randn(7, dim, generator=generator), torch.randn(6, dim)
        weights = torch.randn(num_edges, heads, generator=generator)
        summed = segments_cuda.sum_weighted(
            rows.to(device),
            weights.to(device),
            source.rows.to(device),
            target.edges.members.to(device),
            target.edges.offsets.to(device),
        )
        torch.testing.assert_close(summed.cpu(), sum_weighted(rows, weights, source, target))
        product = segments_cuda.edge_dot_products(
            rows.to(device),
            others.to(device),
            source.rows.to(device),
            target.rows.to(device),
            heads,
        )
        expected = edge_dot_products(rows, others, source, target, heads)
        torch.testing.assert_close(product.cpu(), expected)
        taken = segments_cuda.index_rows(rows.to(device), source.rows.to(device))
        torch.testing.assert_close(taken.cpu(), rows[source.rows])


@pytest.mark.gpu
def test_the_kernels_on_a_gpu_compute_what_they_stand_for() -> None:
    check_kernels()


@pytest.mark.skipif(not HAS_TRITON, reason="Triton comes with PyTorch for CUDA")
def test_the_kernels_interpreted_compute_what_they_stand_for() -> None:
    check_interpreted("tests.encoders.test_segments")
