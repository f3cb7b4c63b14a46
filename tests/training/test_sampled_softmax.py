"""Sampled softmax: an estimate of the cross-entropy against all nodes."""

import math
from unittest import mock

import pytest
import torch
from tests.training.tiny_models import EDGES, tiny_model

from nodepiece.training import softmax_cpu
from nodepiece.training.batches import FactBatch, FactBatches
from nodepiece.training.links import link_trainer
from nodepiece.training.sampled_softmax import (
    distinct_vectors,
    expected_counts,
    sampled_softmax_loss,
    softmax_estimate,
    tail_frequencies,
)
from nodepiece.training.settings import SampledSettings, TrainingSettings

NUM_NODES = 5


def test_frequencies_are_shares_of_the_edges_that_lead_to_a_node() -> None:
    edges = torch.tensor([[0, 0, 1], [2, 0, 1], [1, 0, 3], [4, 1, 0]])
    assert tail_frequencies(edges, NUM_NODES).tolist() == [0.25, 0.5, 0.0, 0.25, 0.0]


def test_candidates_are_expected_as_tails_of_other_facts_or_drawn() -> None:
    frequencies = torch.tensor([0.25, 0.5, 0.0, 0.25, 0.0])
    found = expected_counts(torch.tensor([1, 0, 2, 3]), frequencies, batch_size=3)  # 1 was drawn
    assert found.tolist() == pytest.approx([2 * 0.5 + 0.2, 2 * 0.25 + 0.2, 0.2, 2 * 0.25 + 0.2])


def test_with_every_node_once_it_is_the_softmax_over_all_nodes() -> None:
    scores = torch.randn(1, NUM_NODES + 1, generator=torch.Generator().manual_seed(0))
    candidates = torch.tensor([3, 0, 1, 2, 3, 4])  # the answer, then every node
    scores[0, 4] = scores[0, 0]
    found = softmax_estimate(scores, torch.tensor([3]), candidates, torch.ones(6), torch.ones(1))
    expected = -scores[0, 1:].log_softmax(0)[3]
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


def test_the_sum_over_candidates_is_an_unbiased_estimate_of_that_over_all_nodes() -> None:
    model, generator = tiny_model(), torch.Generator().manual_seed(1)
    nodes, relations = model.node_vectors(), model.relation_vectors()
    frequencies = tail_frequencies(EDGES, NUM_NODES)
    batches = FactBatches(EDGES, 6, num_batches=3000)
    batches.start_epoch(generator=generator)
    ratios = []
    for step in range(batches.num_batches):
        batch = batches.take(torch.tensor([step]))
        drawn = torch.randint(NUM_NODES, (3,), generator=generator)
        candidates = torch.cat([batch.tails, drawn])
        head, relation, tail = (int(part[0]) for part in batch[:3])
        everything = model.decoder.score_all_tails(
            nodes[head][None], relations[relation][None], nodes
        )[0]
        others = [node for node in range(NUM_NODES) if node != tail]
        counts = expected_counts(candidates, frequencies, 6)
        is_other = candidates != tail
        estimate = (everything[candidates].exp() / counts)[is_other].sum()
        ratios.append(estimate / everything[others].exp().sum())
    mean = torch.stack(ratios).mean().item()
    assert mean == pytest.approx(1.0, abs=0.03)


def test_an_answer_that_is_drawn_is_no_rival_of_itself() -> None:
    batch = FactBatch(
        torch.tensor([0]), torch.tensor([0]), torch.tensor([1]), edges=torch.tensor([0])
    )
    model = tiny_model()
    frequencies = tail_frequencies(EDGES, NUM_NODES)
    for seed in range(20):  # some draw the answer alone
        model.zero_grad()
        generator = torch.Generator().manual_seed(seed)
        loss = sampled_softmax_loss(model, batch, 1, frequencies, generator=generator)
        loss.backward()  # type: ignore[no-untyped-call]
        assert math.isfinite(loss.item())
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_every_distinct_node_is_encoded_once() -> None:
    model, seen = tiny_model(), list[int]()
    vectors_of = model.vectors_of

    def count(nodes: torch.Tensor) -> torch.Tensor:
        seen.append(len(nodes))
        return vectors_of(nodes)

    nodes = torch.tensor([3, 1, 3, 3, 1])
    model.vectors_of = count  # type: ignore[method-assign]
    found = distinct_vectors(model, nodes)
    assert seen == [2]
    torch.testing.assert_close(found, vectors_of(nodes))


def test_the_loss_falls() -> None:
    training = TrainingSettings(loss="sampled-softmax", batch_size=4, learning_rate=0.1)
    made = link_trainer(
        tiny_model(),
        EDGES,
        training,
        sampled=SampledSettings(num_negatives=8),
        generator=torch.Generator().manual_seed(0),
    )
    losses = [made.run_epoch(epoch, lambda done, total: None) for epoch in range(30)]
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])


def test_on_a_cpu_blocks_of_rows_give_the_same_losses_and_gradients() -> None:
    generator = torch.Generator().manual_seed(0)
    answers = torch.tensor([3, 1, 3, 5])
    candidates = torch.cat([answers, torch.tensor([0, 1, 7])])
    counts = torch.rand(7, generator=generator, dtype=torch.float64) + 0.1
    weight = torch.rand(4, generator=generator, dtype=torch.float64)
    scores = 5 * torch.randn(4, 7, generator=generator, dtype=torch.float64)
    found = []
    for largest in (14, 2**18):  # two rows at a time, and the plain formula
        leaf = scores.clone().requires_grad_()
        with mock.patch.object(softmax_cpu, "BLOCK_NUMBERS", largest):
            loss = softmax_estimate(leaf, answers, candidates, counts, weight)
        found += [loss, *torch.autograd.grad(3 * loss, leaf)]
    torch.testing.assert_close(found[0], found[2])
    torch.testing.assert_close(found[1], found[3])


def test_scores_of_half_precision_have_gradients_of_half_precision() -> None:
    scores = torch.tensor([[1.0, 0.5, -1.0], [0.0, 2.0, 1.0]], dtype=torch.bfloat16)
    answers, candidates = torch.tensor([3, 1]), torch.tensor([3, 1, 0])
    found = []
    for dtype in (torch.bfloat16, torch.float32):
        leaf = scores.to(dtype).requires_grad_()
        with mock.patch.object(softmax_cpu, "BLOCK_NUMBERS", 3):
            loss = softmax_estimate(leaf, answers, candidates, torch.ones(3), torch.ones(2))
        found += [loss, *torch.autograd.grad(loss, leaf)]
    assert found[1].dtype == torch.bfloat16
    torch.testing.assert_close(found[0], found[2])
    torch.testing.assert_close(found[1].float(), found[3], rtol=0.01, atol=0.01)


def test_walks_are_trained_beside_vectors_on_the_first_facts_of_a_batch() -> None:
    model = tiny_model(walks=2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    made = link_trainer(
        model,
        EDGES,
        TrainingSettings(loss="sampled-softmax", batch_size=4, hide_targets=True),
        sampled=SampledSettings(num_negatives=8, path_queries=2),
        generator=torch.Generator().manual_seed(0),
    )
    made.run_epoch(0, lambda done, total: None)
    after = model.state_dict()
    changed = {name for name, value in before.items() if not torch.equal(value, after[name])}
    assert {"scorers.walks.mix.weight", "nodes.vectors"} <= changed


def test_groups_share_candidates_and_the_loss_is_the_mean_of_theirs() -> None:
    model, frequencies = tiny_model(), tail_frequencies(EDGES, NUM_NODES)
    heads, relations, tails = EDGES[:6].T

    def loss(rows: slice, group_size: int = 0) -> torch.Tensor:
        batch = FactBatch(heads[rows], relations[rows], tails[rows], torch.arange(6)[rows])
        generator = torch.Generator().manual_seed(0)  # draws the same negatives
        return sampled_softmax_loss(
            model, batch, 3, frequencies, group_size=group_size, generator=generator
        )

    apart = [loss(slice(0, 4)), loss(slice(4, 6))]
    torch.testing.assert_close(loss(slice(0, 6), group_size=4), (4 * apart[0] + 2 * apart[1]) / 6)
