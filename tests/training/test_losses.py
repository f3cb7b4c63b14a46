import math
from itertools import pairwise
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from nodepiece.training import softmax_cpu
from nodepiece.training.losses import (
    ONE_VS_ALL_LOSSES,
    SAMPLED_LOSSES,
    binary_cross_entropy_all,
    cross_entropy_all,
    filtered_cross_entropy,
    margin_loss,
    self_adversarial,
    softplus_loss,
)

BATCH, NUM_NODES = 3, 5
ANSWERS = torch.tensor([[0, 0, 2], [1, 4, 3]])  # rows, columns; row 1 has no answer


def random_scores(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x))


def dense_labels(smoothing: float) -> Tensor:
    labels = torch.full((BATCH, NUM_NODES), smoothing / (NUM_NODES - 1), dtype=torch.float64)
    labels[ANSWERS[0], ANSWERS[1]] = 1 - smoothing
    return labels


def assert_same_value_and_gradient(loss: Tensor, expected: Tensor, scores: Tensor) -> None:
    torch.testing.assert_close(loss, expected)
    gradients = (torch.autograd.grad(each, scores)[0] for each in (loss, expected))
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
def test_binary_cross_entropy_from_pairs_is_that_of_the_dense_labels(smoothing: float) -> None:
    scores = random_scores(BATCH, NUM_NODES)
    loss = binary_cross_entropy_all(scores, ANSWERS, smoothing=smoothing)
    labels = dense_labels(smoothing)
    expected = functional.binary_cross_entropy_with_logits(scores, labels)
    assert_same_value_and_gradient(loss, expected, scores)


def test_filtered_cross_entropy_has_no_other_answer_among_its_negatives() -> None:
    scores = random_scores(BATCH, NUM_NODES)
    weight = torch.tensor([1.0, 0.0, 0.5], dtype=torch.float64)  # node 4 is an answer, no target
    loss = filtered_cross_entropy(scores, ANSWERS, weight)
    first = -scores[0, [0, 1, 2, 3]].log_softmax(dim=0)[1]
    second = -scores[2].log_softmax(dim=0)[3]
    assert_same_value_and_gradient(loss, (first + 0.5 * second) / 1.5, scores)


def test_a_query_whose_answers_are_all_nodes_has_no_loss() -> None:
    scores = random_scores(1, 2)
    answers = torch.tensor([[0, 0], [0, 1]])
    loss = filtered_cross_entropy(scores, answers)
    assert loss.item() == 0
    assert torch.autograd.grad(loss, scores)[0].tolist() == [[0, 0]]


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_counts_each_answer_of_a_row(smoothing: float) -> None:
    scores = random_scores(BATCH, NUM_NODES)
    loss = cross_entropy_all(scores, ANSWERS, smoothing=smoothing)
    labels = torch.full((3, NUM_NODES), smoothing / (NUM_NODES - 1), dtype=torch.float64)
    labels[torch.arange(3), ANSWERS[1]] = 1 - smoothing
    expected = functional.cross_entropy(scores[ANSWERS[0]], labels)
    assert_same_value_and_gradient(loss, expected, scores)


@pytest.mark.parametrize("name", ONE_VS_ALL_LOSSES)
def test_pairs_of_weight_zero_change_nothing(name: str) -> None:
    scores = random_scores(BATCH, NUM_NODES)
    padded = torch.cat([ANSWERS, ANSWERS[:, [0, 0, 0, 0]]], dim=1)  # repeats the first
    weight = torch.tensor([1.0] * 3 + [0.0] * 4, dtype=torch.float64)
    loss = ONE_VS_ALL_LOSSES[name](scores, padded, weight, smoothing=0.1)
    expected = ONE_VS_ALL_LOSSES[name](scores, ANSWERS, smoothing=0.1)
    assert_same_value_and_gradient(loss, expected, scores)


@given(positive=st.floats(-15, 0), negatives=st.lists(st.floats(-15, 0), min_size=1, max_size=4))
def test_temperature_zero_is_the_published_loss(positive: float, negatives: list[float]) -> None:
    margin = 5.0
    loss = self_adversarial(
        torch.tensor([positive]).double(),
        torch.tensor([negatives]).double(),
        margin=margin,
        temperature=0,
    )
    of_negatives = sum(log_sigmoid(-score - margin) for score in negatives) / len(negatives)
    assert loss.item() == pytest.approx(-(log_sigmoid(margin + positive) + of_negatives) / 2)


def test_negatives_are_weighted_by_the_softmax_of_their_scores() -> None:
    # exp(2 * score) is 1 and 3, so the weights are 1/4 and 3/4
    negative = torch.tensor([[0.0, math.log(3) / 2]], dtype=torch.float64)
    loss = self_adversarial(torch.tensor([1.5]).double(), negative, margin=1.0, temperature=2.0)
    of_negatives = log_sigmoid(-1) / 4 + log_sigmoid(-math.log(3) / 2 - 1) * 3 / 4
    assert loss.item() == pytest.approx(-(log_sigmoid(2.5) + of_negatives) / 2)


def test_the_weights_of_negatives_have_no_gradient() -> None:
    negative = random_scores(1, 4)
    loss = self_adversarial(torch.zeros(1).double(), negative, margin=1.0, temperature=1.0)
    weight = negative.detach().softmax(dim=1)
    expected = weight * (negative.detach() + 1).sigmoid() / 2
    torch.testing.assert_close(torch.autograd.grad(loss, negative)[0], expected)


def test_softplus_counts_every_score_the_same() -> None:
    positive, negative = torch.tensor([2.0]), torch.tensor([[0.0, -1.0, 3.0]])
    loss = softplus_loss(positive, negative, margin=0.0, temperature=0)
    expected = -sum(map(log_sigmoid, (2.0, -0.0, 1.0, -3.0))) / 4
    assert loss.item() == pytest.approx(expected)


def test_margin_loss_is_the_mean_shortfall() -> None:
    positive, negative = torch.tensor([-1.0, -4.0]), torch.tensor([[-1.5, -5.0], [-4.0, -3.0]])
    loss = margin_loss(positive, negative, margin=1.0, temperature=0)
    assert loss.item() == pytest.approx((0.5 + 0 + 1 + 2) / 4)


@pytest.mark.parametrize("temperature", [0.0, 2.0])
@pytest.mark.parametrize("name", SAMPLED_LOSSES)
def test_a_fact_counts_by_its_weight(name: str, temperature: float) -> None:
    positive, negative = random_scores(2, 1)[:, 0].detach(), random_scores(2, 3).detach()
    weight = torch.tensor([0.5, 1.5], dtype=torch.float64)

    def loss(rows: slice, weight: Tensor | None = None) -> float:
        chosen = SAMPLED_LOSSES[name]
        scores = positive[rows], negative[rows], weight
        return chosen(*scores, margin=1.0, temperature=temperature).item()

    first, second = loss(slice(0, 1)), loss(slice(1, 2))
    assert loss(slice(None)) == pytest.approx((first + second) / 2)
    assert loss(slice(None), weight) == pytest.approx((0.5 * first + 1.5 * second) / 2)


@pytest.mark.parametrize("name", SAMPLED_LOSSES)
def test_better_scores_make_sampled_losses_smaller(name: str) -> None:
    losses = [
        SAMPLED_LOSSES[name](
            torch.full((2,), gap), torch.full((2, 3), -gap), margin=6.0, temperature=1.0
        )
        for gap in (-2.0, 0.0, 2.0)
    ]
    assert all(later < earlier for earlier, later in pairwise(losses))


@pytest.mark.parametrize("name", ONE_VS_ALL_LOSSES)
def test_one_vs_all_losses_never_read_values(name: str) -> None:
    # Tensors on the meta device have shapes only: whatever would wait for a GPU fails here.
    scores = torch.empty(BATCH, NUM_NODES, device="meta", requires_grad=True)
    weight = torch.empty(3, device="meta")
    loss = ONE_VS_ALL_LOSSES[name](scores, ANSWERS.to("meta"), weight, smoothing=0.1)
    assert torch.autograd.grad(loss, scores)[0].shape == scores.shape


@pytest.mark.parametrize("name", SAMPLED_LOSSES)
def test_sampled_losses_never_read_values(name: str) -> None:
    positive, negative = torch.empty(2, device="meta"), torch.empty(2, 3, device="meta")
    loss = SAMPLED_LOSSES[name](positive, negative, margin=1.0, temperature=1.0)
    assert loss.shape == ()


@pytest.mark.gpu
@pytest.mark.parametrize("name", ONE_VS_ALL_LOSSES)
def test_one_vs_all_losses_fit_into_a_cuda_graph(name: str) -> None:
    scores = random_scores(BATCH, NUM_NODES).detach().cuda().requires_grad_()
    answers, weight = ANSWERS.cuda(), torch.ones(3, device="cuda", dtype=torch.float64)

    def gradient() -> Tensor:
        loss = ONE_VS_ALL_LOSSES[name](scores, answers, weight, smoothing=0.1)
        return torch.autograd.grad(loss, scores)[0]

    expected = gradient()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = gradient()
    graph.replay()
    torch.testing.assert_close(captured, expected)


def test_on_a_cpu_the_loss_of_many_blocks_is_that_of_the_plain_formula() -> None:
    scores = random_scores(6, 50)
    answers = torch.tensor([[0, 0, 3, 5], [1, 49, 7, 0]])
    weight = torch.tensor([1.0, 0.5, 2.0, 0.25], dtype=torch.float64)
    with mock.patch.object(softmax_cpu, "BLOCK_NUMBERS", 100):  # two rows at a time
        loss = 3 * cross_entropy_all(scores.T.contiguous().T, answers, weight, smoothing=0.1)
    labels = torch.full((4, 50), 0.1 / 49, dtype=torch.float64)
    labels[torch.arange(4), answers[1]] = 0.9
    each = functional.cross_entropy(scores[answers[0]], labels, reduction="none")
    assert_same_value_and_gradient(loss, 3 * (weight * each).sum() / weight.sum(), scores)
