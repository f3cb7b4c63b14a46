"""Moments of messages, against a loop over the edges of random graphs."""

from contextlib import AbstractContextManager
from unittest.mock import patch

import numba
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.encoders.interpreter import check_interpreted
from torch import Tensor

from nodepiece.encoders import edge_index as edge_index_module
from nodepiece.encoders import message_moments as module
from nodepiece.encoders import message_moments_cpu
from nodepiece.encoders.bag_sum import HAS_TRITON
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.message_moments import SMALLEST_VARIANCE, message_moments
from nodepiece.encoders.scaled_update import scaled_update

NUM_NODES, NUM_RELATIONS, NUM_QUERIES, DIM = 5, 3, 3, 4
few = settings(max_examples=25, deadline=None)

random_edges = st.lists(
    st.tuples(
        st.integers(0, NUM_NODES - 1),
        st.integers(0, NUM_RELATIONS - 1),
        st.integers(0, NUM_NODES - 1),
    ),
    max_size=30,
    unique=True,  # edges that are the same tie for every extreme
).map(lambda edges: torch.tensor(edges, dtype=torch.int64).reshape(-1, 3))


def random_inputs(
    seed: int, dtype: torch.dtype, num_edges: int, dim: int = DIM
) -> tuple[list[Tensor], Tensor, Tensor]:
    """States, relations and the boundary; heads; an edge mask."""
    generator = torch.Generator().manual_seed(seed)
    rows = (NUM_NODES, NUM_RELATIONS)
    shapes = [(count, NUM_QUERIES, dim) for count in rows] + [(NUM_QUERIES, dim)]
    values = [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]
    heads = torch.randint(NUM_NODES, (NUM_QUERIES,), generator=generator)
    return values, heads, (torch.rand(num_edges, generator=generator) > 0.3).float()


def slow_moments(values: list[Tensor], heads: Tensor, edge_mask: Tensor, edges: Tensor) -> Tensor:
    states, relations, boundary = values
    rows = []
    for node in range(NUM_NODES):
        own = torch.where((heads == node)[:, None], boundary, torch.zeros_like(boundary))
        messages = [own]
        for (target, relation, source), visible in zip(
            edges.tolist(), edge_mask.tolist(), strict=True
        ):
            if target == node and visible:
                messages.append(states[source] * relations[relation])
        every = torch.stack(messages)
        mean = every.mean(dim=0)
        variance = (every - mean).square().mean(dim=0)
        deviation = (variance + SMALLEST_VARIANCE).sqrt()
        moments = [mean, deviation, every.amax(dim=0), every.amin(dim=0), states[node]]
        rows.append(torch.stack(moments, dim=1))
    return torch.stack(rows)


def without_kernels() -> AbstractContextManager[object]:
    """The code in plain PyTorch, which also serves types that the kernels for CPUs lack."""
    return patch.object(message_moments_cpu, "has_kernel", lambda *values: False)


def assert_those_of_a_loop(edges: Tensor, seed: int, dim: int) -> None:
    values, heads, mask = random_inputs(seed, torch.float64, len(edges), dim)
    for value in values:
        value.requires_grad_()
    ordered = EdgeIndex(edges, NUM_NODES, NUM_RELATIONS, "target")
    states, relations, boundary = values
    found = message_moments(states, relations, boundary, heads, mask[ordered.order], ordered)
    expected = slow_moments(values, heads, mask, edges)
    torch.testing.assert_close(found, expected)
    slope = torch.randn(found.shape, generator=torch.Generator().manual_seed(1)).double()
    torch.testing.assert_close(
        torch.autograd.grad((found * slope).sum(), values, allow_unused=True),
        torch.autograd.grad((expected * slope).sum(), values, materialize_grads=True),
    )


@few
@given(random_edges, st.integers(0, 99), st.sampled_from([DIM, 48]))
def test_moments_and_their_gradients_are_those_of_a_loop_over_edges(
    edges: Tensor, seed: int, dim: int
) -> None:
    assert_those_of_a_loop(edges, seed, dim)


@few
@given(random_edges, st.integers(0, 99))
def test_moments_in_plain_pytorch_are_those_of_a_loop_over_edges(edges: Tensor, seed: int) -> None:
    with without_kernels():
        assert_those_of_a_loop(edges, seed, DIM)


def many_edges(num_edges: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    limits = (NUM_NODES, NUM_RELATIONS, NUM_NODES)
    return torch.stack([torch.randint(n, (num_edges,), generator=generator) for n in limits], dim=1)


def test_float32_and_plain_pytorch_agree_but_for_rounding() -> None:
    ordered = EdgeIndex(many_edges(900), NUM_NODES, NUM_RELATIONS, "target")
    values, heads, mask = random_inputs(2, torch.float32, 900, 32)
    for value in values:
        value.requires_grad_()
    states, relations, boundary = values
    slope = torch.randn(NUM_NODES, NUM_QUERIES, 5, 32, generator=torch.Generator().manual_seed(1))

    def result() -> list[Tensor]:
        found = message_moments(states, relations, boundary, heads, mask, ordered)
        return [found, *torch.autograd.grad((found * slope).sum(), values)]

    fast = result()
    with without_kernels():
        torch.testing.assert_close(fast, result(), rtol=1e-4, atol=1e-4)


def test_heads_may_be_a_column_of_a_table() -> None:
    values, heads, mask = random_inputs(0, torch.float64, 60)
    edges = EdgeIndex(many_edges(60), NUM_NODES, NUM_RELATIONS, "target")
    found = moments_and_gradients(values, as_column(heads), as_column(mask), edges)
    torch.testing.assert_close(found, moments_and_gradients(values, heads, mask, edges))


def as_column(values: Tensor) -> Tensor:
    """The values as a column of a table, so that in memory others are between them."""
    return torch.stack([values, values + 1], dim=1)[:, 0]


def moments_and_gradients(
    values: list[Tensor], heads: Tensor, edge_mask: Tensor, edges: EdgeIndex
) -> list[Tensor]:
    values = [value.detach().requires_grad_() for value in values]
    states, relations, boundary = values
    found = message_moments(states, relations, boundary, heads, edge_mask, edges)
    slope = torch.arange(found.numel(), dtype=found.dtype).view(found.shape) / found.numel()
    return [found.detach(), *torch.autograd.grad((found * slope).sum(), values)]


def test_no_queries_have_no_moments_and_no_gradient() -> None:
    ordered = EdgeIndex(many_edges(9), NUM_NODES, NUM_RELATIONS, "target")
    states, relations = torch.zeros(NUM_NODES, 0, 8, requires_grad=True), torch.zeros(3, 0, 8)
    heads = torch.zeros(0, dtype=torch.int64)
    found = message_moments(states, relations, relations[0], heads, torch.ones(9), ordered)
    assert found.shape == (NUM_NODES, 0, 5, 8)
    (gradient,) = torch.autograd.grad(found.sum(), states)
    assert gradient.shape == states.shape


def test_any_number_of_threads_gives_the_same_bits() -> None:
    ordered = EdgeIndex(many_edges(300), NUM_NODES, NUM_RELATIONS, "target")
    values, heads, mask = random_inputs(2, torch.float32, 300, 32)
    for value in values:
        value.requires_grad_()
    states, relations, boundary = values
    generator = torch.Generator().manual_seed(1)
    parts = torch.randn(NUM_NODES, NUM_QUERIES, 3, 32, generator=generator).requires_grad_()
    vectors = torch.randn(3, 32, generator=generator).requires_grad_()
    scalers = torch.rand(NUM_NODES, 3, generator=generator)
    before, results = numba.get_num_threads(), []
    for threads in (1, before):
        numba.set_num_threads(threads)
        try:
            found = message_moments(states, relations, boundary, heads, mask, ordered)
            updated = scaled_update(parts, scalers, states, *vectors)
            total = found.square().sum() + updated.square().sum()
            gradients = torch.autograd.grad(total, [*values, parts, vectors])
        finally:
            numba.set_num_threads(before)
        results.append([found, updated, *gradients])
    for one, other in zip(results[0], results[-1], strict=True):
        assert torch.equal(one, other)


def test_bfloat16_sums_the_messages_of_a_large_degree_in_float32() -> None:
    num_edges = 1000  # bfloat16 has 8 bits: a sum of ones in it would stop at 256
    edges = torch.tensor([[1, 0, 0]]).expand(num_edges, 3)
    ordered, one = EdgeIndex(edges, 2, 1, "target"), torch.ones(1, 1, 1).bfloat16()
    states = torch.tensor([[[2.0]], [[0.0]]]).bfloat16().requires_grad_()
    mask, head = torch.ones(num_edges), torch.tensor([0])
    found = message_moments(states, one, one[0], head, mask, ordered)
    assert found.dtype == torch.bfloat16
    assert found[1, 0, 0].item() == pytest.approx(2 * num_edges / (num_edges + 1), rel=2**-8)
    (gradient,) = torch.autograd.grad(found[1, 0, 0].sum(), states)
    assert gradient[0].item() == pytest.approx(num_edges / (num_edges + 1), rel=2**-7)


def test_an_update_of_bfloat16_states_is_computed_in_float32() -> None:
    generator = torch.Generator().manual_seed(0)
    parts, states = (torch.randn(shape, generator=generator) for shape in ((4, 2, 3, 8), (4, 2, 8)))
    parts, states = parts.bfloat16(), states.bfloat16()
    scalers, vectors = torch.rand(4, 3, generator=generator), torch.randn(3, 8, generator=generator)
    found = scaled_update(parts, scalers, states, *vectors)
    assert found.dtype == torch.bfloat16
    precise = scaled_update(parts.double(), scalers, states.double(), *vectors.double())
    assert torch.equal(found, precise.bfloat16())


def test_messages_that_tie_for_an_extreme_all_receive_its_gradient() -> None:
    states = torch.tensor([[[1.0]], [[1.0]], [[0.0]]], dtype=torch.float64, requires_grad=True)
    relations, boundary = torch.full((1, 1, 1), 2.0).double(), torch.zeros(1, 1).double()
    edges = EdgeIndex(torch.tensor([[2, 0, 0], [2, 0, 1]]), 3, 1, "target")  # 0 -> 2 <- 1
    found = message_moments(states, relations, boundary, torch.tensor([0]), torch.ones(2), edges)
    (gradient,) = torch.autograd.grad(found[2, 0, 2, 0], states)
    assert gradient.flatten().tolist() == [2.0, 2.0, 0.0]


def test_targets_of_many_edges_are_cut_into_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_index_module, "CHUNK", 2)
    edges = torch.tensor([[0, 0, 0]] + [[1, 0, 0]] * 5)
    ordered = EdgeIndex(edges, 3, 1, "target")
    # target, first edge, end, slot: node 1 has edges 1 to 5, in three chunks
    of_node_1 = [[1, 1, 3, 0], [1, 3, 5, 1], [1, 5, 6, 2]]
    chunks, split = ordered.chunks
    assert chunks.tolist() == [*of_node_1, [0, 0, 1, -1], [2, 6, 6, -1]]
    assert split.tolist() == [[1, 0, 3]]


def check_kernels() -> None:
    """The kernels beside the code for CPUs, in float32: what the interpreter runs."""
    from nodepiece.encoders import message_moments_cuda, scaled_update_cuda

    edge_index_module.CHUNK = 8
    scaled_update_cuda.NUM_PROGRAMS, scaled_update_cuda.ROWS_AT_ONCE = 3, 4
    generator, edges = torch.Generator().manual_seed(0), many_edges(60)
    values, heads, mask = random_inputs(0, torch.float32, len(edges))
    ordered = EdgeIndex(edges, NUM_NODES, NUM_RELATIONS, "target")
    assert len(ordered.chunks[1])
    states, relations, boundary = values
    visible = mask[ordered.order]
    moments = [
        kind.moments(states, relations, boundary, heads, visible, ordered)
        for kind in (module, message_moments_cuda)
    ]
    torch.testing.assert_close(moments[1], moments[0], rtol=1e-3, atol=1e-4)
    found, count = moments[0]
    slope = torch.randn(found.shape, generator=generator)
    gradients = [
        kind.message_gradients(states, relations, visible, found, count, slope, ordered)
        for kind in (module, message_moments_cuda)
    ]
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-4)
    halves = [value.bfloat16() for value in values]
    moments = [
        kind.moments(*halves, heads, visible, ordered) for kind in (module, message_moments_cuda)
    ]
    torch.testing.assert_close(moments[1], moments[0], rtol=0.02, atol=0.02)
    check_columns_of_queries(values, heads, visible, ordered)
    parts = torch.randn(NUM_NODES, NUM_QUERIES, 3, DIM, generator=generator).requires_grad_()
    scalers = torch.rand(NUM_NODES, 3, generator=generator)
    vectors = torch.randn(3, DIM, generator=generator).requires_grad_()
    bias, scale, shift = vectors
    updated = scaled_update(parts, scalers, states, bias, scale, shift)
    slope = torch.randn(updated.shape, generator=generator)
    of_parts, of_vectors = torch.autograd.grad((updated * slope).sum(), (parts, vectors))
    with torch.no_grad():
        again = scaled_update_cuda.forward(parts, scalers, states, bias, scale, shift)
        torch.testing.assert_close(again, updated)
        first, *others = scaled_update_cuda.backward(parts, scalers, bias, scale, shift, slope)
    torch.testing.assert_close(first, of_parts, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(torch.stack(others), of_vectors, rtol=1e-4, atol=1e-4)


def check_columns_of_queries(
    values: list[Tensor], heads: Tensor, visible: Tensor, edges: EdgeIndex
) -> None:
    """The kernels, where heads and the edge mask are columns of a table."""
    expected = moments_and_gradients(values, heads, visible, edges)
    with without_kernels(), patch.object(module, "has_kernel", lambda *values: True):
        found = moments_and_gradients(values, as_column(heads), as_column(visible), edges)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.skipif(not HAS_TRITON, reason="Triton is not installed")
def test_the_kernels_agree_with_the_code_for_cpus_in_the_interpreter() -> None:
    check_interpreted("tests.encoders.test_message_moments")


@pytest.mark.gpu
def test_moments_on_a_gpu_are_those_of_a_loop_over_edges() -> None:
    edges = torch.cartesian_prod(*(torch.arange(n) for n in (NUM_NODES, NUM_RELATIONS, NUM_NODES)))
    values, heads, mask = random_inputs(3, torch.float32, len(edges))
    values = [value.cuda().requires_grad_() for value in values]
    states, relations, boundary = values
    heads, mask, edges = as_column(heads.cuda()), mask.cuda(), edges.cuda()
    ordered = EdgeIndex(edges, NUM_NODES, NUM_RELATIONS, "target")
    found = message_moments(states, relations, boundary, heads, mask[ordered.order], ordered)
    expected = slow_moments(values, heads, mask, edges)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    slope = torch.randn(found.shape, device="cuda", generator=torch.Generator("cuda"))
    for one, other in zip(
        torch.autograd.grad((found * slope).sum(), values),
        torch.autograd.grad((expected * slope).sum(), values),
        strict=True,
    ):
        assert (one - other).norm() < 0.01 * other.norm()
