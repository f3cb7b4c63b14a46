"""Moments of messages, against a loop over the edges of random graphs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.encoders.interpreter import check_interpreted
from torch import Tensor

from nodepiece.encoders import edge_index as edge_index_module
from nodepiece.encoders import message_moments as module
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
    seed: int, dtype: torch.dtype, num_edges: int
) -> tuple[list[Tensor], Tensor, Tensor]:
    """States, relations and the boundary; heads; an edge mask."""
    generator = torch.Generator().manual_seed(seed)
    rows = (NUM_NODES, NUM_RELATIONS)
    shapes = [(count, NUM_QUERIES, DIM) for count in rows] + [(NUM_QUERIES, DIM)]
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


@few
@given(random_edges, st.integers(0, 99))
def test_moments_and_their_gradients_are_those_of_a_loop_over_edges(
    edges: Tensor, seed: int
) -> None:
    values, heads, mask = random_inputs(seed, torch.float64, len(edges))
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
    generator = torch.Generator().manual_seed(0)
    limits = (NUM_NODES, NUM_RELATIONS, NUM_NODES)
    edges = torch.stack([torch.randint(n, (60,), generator=generator) for n in limits], dim=1)
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


@pytest.mark.skipif(not HAS_TRITON, reason="Triton is not installed")
def test_the_kernels_agree_with_the_code_for_cpus_in_the_interpreter() -> None:
    check_interpreted("tests.encoders.test_message_moments")


@pytest.mark.gpu
def test_moments_on_a_gpu_are_those_of_a_loop_over_edges() -> None:
    edges = torch.cartesian_prod(*(torch.arange(n) for n in (NUM_NODES, NUM_RELATIONS, NUM_NODES)))
    values, heads, mask = random_inputs(3, torch.float32, len(edges))
    values = [value.cuda().requires_grad_() for value in values]
    states, relations, boundary = values
    heads, mask, edges = heads.cuda(), mask.cuda(), edges.cuda()
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
