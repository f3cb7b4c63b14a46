"""Attention to edges, against a softmax node by node."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.encoders.interpreter import check_interpreted
from tests.encoders.test_segments import assert_same, few, random, random_ends
from torch import Tensor
from torch.nn.functional import leaky_relu

from nodepiece.encoders.bag_sum import HAS_TRITON
from nodepiece.encoders.edge_attention import edge_attention
from nodepiece.encoders.parameters import Dropout
from nodepiece.encoders.segments import EdgeGroups, group_edges

HEADS, SLOPE = 2, 0.1


def attend(
    of_nodes: Tensor,
    of_messages: Tensor,
    source: EdgeGroups,
    target: EdgeGroups,
    edge_mask: Tensor | None,
) -> Tensor:
    """`edge_attention` without dropout."""
    dropout = Dropout(0.0)
    return edge_attention(
        of_nodes, of_messages, source, target, edge_mask, slope=SLOPE, dropout=dropout
    )


@few
@given(random_ends(), st.booleans())
def test_the_shares_of_a_target_are_a_softmax_of_its_scores(
    drawn: tuple[EdgeGroups, EdgeGroups, int, int], hides: bool
) -> None:
    source, target, num_messages, num_nodes = drawn
    of_nodes, of_messages = random(num_nodes, HEADS), random(num_messages, HEADS, seed=1)
    num_edges = len(source.rows)
    edge_mask = (torch.arange(num_edges)[:, None] % 3 != 0).double() if hides else None
    expected = torch.zeros(num_edges, HEADS, dtype=torch.float64)
    for node in range(num_nodes):
        own = target.rows == node
        if edge_mask is not None:
            own = own & (edge_mask[:, 0] > 0)
        scores = leaky_relu(of_nodes[node] + of_messages[source.rows[own]], SLOPE)
        expected = expected.masked_scatter(own[:, None], scores.softmax(dim=0))
    found = attend(of_nodes, of_messages, source, target, edge_mask)
    assert_same(found, expected, [of_nodes, of_messages])


def test_targets_of_both_directions_share_the_parts_of_their_nodes() -> None:
    of_nodes, of_messages = random(2, 1), random(3, 1, seed=1)
    source, target = group_edges(torch.arange(3), 3), group_edges(torch.tensor([1, 2, 2]), 4)
    found = attend(of_nodes, of_messages, source, target, None)
    second = leaky_relu(of_nodes[0] + of_messages[1:], SLOPE).softmax(dim=0)
    assert_same(found, torch.cat([torch.ones(1, 1), second]), [of_nodes, of_messages])


def test_a_graph_without_nodes_has_no_shares() -> None:
    ends = group_edges(torch.zeros(0, dtype=torch.int64), 0)
    of_nodes = torch.zeros(0, HEADS, requires_grad=True)
    shares = attend(of_nodes, torch.zeros(0, HEADS), ends, ends, None)
    assert shares.shape == (0, HEADS)
    assert torch.autograd.grad(shares.sum(), of_nodes)[0].shape == (0, HEADS)
    assert ends.largest == 0


def test_the_largest_number_of_edges_of_a_target() -> None:
    assert group_edges(torch.tensor([1, 0, 1, 1]), 3).largest == 3
    assert group_edges(torch.zeros(0, dtype=torch.int64), 3).largest == 0


def check_kernels() -> None:
    """The kernels in Triton beside the same attention step by step, and its gradients."""
    from nodepiece.encoders import edge_attention_cuda

    device = "cuda" if torch.cuda.is_available() else "cpu"  # the interpreter runs anywhere
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    for heads, num_edges, hides, drops in (
        (1, 30, False, False),
        (2, 300, True, True),
        (3, 90, False, True),
        (2, 12, True, False),
        (2, 0, False, False),
    ):
        source = group_edges(torch.randint(7, (num_edges,), generator=generator), 7)
        rows = torch.randint(9, (num_edges,), generator=generator).sort().values
        target = group_edges(rows, 10)  # of 5 nodes, in two directions; the last has no edges
        of_nodes, of_messages = draw(5, heads).requires_grad_(), draw(7, heads).requires_grad_()
        edge_mask = (draw(num_edges, 1) > 0).float() if hides else None
        factors = 2.0 * (draw(num_edges, heads) > 0) if drops else None
        plain = attend(of_nodes, of_messages, source, target, edge_mask)
        expected = plain if factors is None else plain * factors
        gradient = draw(num_edges, heads)
        of_inputs = torch.autograd.grad(expected, [of_nodes, of_messages], gradient)
        graph = (
            of_nodes.detach().to(device),
            of_messages.detach().to(device),
            source.rows.to(device),
            target.edges.offsets.to(device),
        )
        factors = None if factors is None else factors.to(device)
        softmax, shares = edge_attention_cuda.attend(
            *graph, None if edge_mask is None else edge_mask.to(device), factors, SLOPE
        )
        torch.testing.assert_close(softmax.cpu(), plain)
        torch.testing.assert_close(shares.cpu(), expected)
        of_targets, of_edges = edge_attention_cuda.attend_backwards(
            gradient.to(device), *graph, softmax, factors, SLOPE
        )
        summed = torch.zeros(7, heads).index_add(0, source.rows, of_edges.cpu())
        found = (of_targets.cpu().view(2, 5, heads).sum(dim=0), summed)
        torch.testing.assert_close(found, of_inputs)


@pytest.mark.gpu
def test_the_kernels_on_a_gpu_compute_the_same_attention() -> None:
    check_kernels()


@pytest.mark.gpu
@pytest.mark.parametrize("long", [0, 4096])  # 0: every target has too many edges for the kernel
def test_a_gpu_gives_the_shares_and_gradients_of_a_cpu(
    long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.encoders.edge_attention.LONG", long)
    source, target = torch.arange(400) % 50, (torch.arange(400) ** 2 % 60).sort().values
    found = []
    for device in ("cpu", "cuda"):
        of_nodes = random(30, HEADS).detach().float().to(device).requires_grad_()
        of_messages = random(50, HEADS, seed=1).detach().float().to(device).requires_grad_()
        ends = group_edges(source.to(device), 50), group_edges(target.to(device), 60)
        edge_mask = (torch.arange(400, device=device)[:, None] % 7 > 0).float()
        shares = attend(of_nodes, of_messages, *ends, edge_mask)
        weight = torch.arange(shares.numel(), device=device).cos().view_as(shares)
        gradients = torch.autograd.grad((shares * weight).sum(), [of_nodes, of_messages])
        found.append([shares.detach().cpu(), *(gradient.cpu() for gradient in gradients)])
    torch.testing.assert_close(*found)


@pytest.mark.skipif(not HAS_TRITON, reason="Triton comes with PyTorch for CUDA")
def test_the_kernels_interpreted_compute_the_same_attention() -> None:
    check_interpreted("tests.encoders.test_edge_attention")
