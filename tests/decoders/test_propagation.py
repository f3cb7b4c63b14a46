"""Scores by propagation: what they may depend on, and that they can be learned."""

from unittest.mock import patch

import numpy as np
import pytest
import torch
from benchmarks.propagation import Batch, Queries, batch_loss, hidden_together

from nodepiece.decoders.propagation import Propagation, PropagationSettings
from nodepiece.encoders import message_moments_cpu
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray

#  0 -r0-> 1 -r1-> 2     3 -r0-> 4    and the inverses, r + 2
FACTS = np.array([[0, 0, 1], [1, 1, 2], [3, 0, 4]], dtype=np.int32)
BOTH_WAYS = np.concatenate([FACTS, np.stack([FACTS[:, 2], FACTS[:, 1] + 2, FACTS[:, 0]], axis=1)])


def edges_of(facts: IntArray) -> EdgeIndex:
    return EdgeIndex(torch.tensor(facts[:, [2, 1, 0]]), 5, 4, "target")


def model_of(layers: int) -> Propagation:
    settings = PropagationSettings(layers, dim=4, rank=2)
    return Propagation(4, settings, generator=torch.Generator().manual_seed(0))


def test_a_hidden_edge_is_an_edge_that_is_not_there() -> None:
    model, heads, relations = model_of(3), torch.tensor([0, 3]), torch.tensor([1, 0])
    whole = edges_of(BOTH_WAYS)
    keep = np.array([True, False, True, True, False, True])
    mask = torch.tensor(keep, dtype=torch.float32)[whole.order]
    without = edges_of(BOTH_WAYS[keep])
    torch.testing.assert_close(
        model.score_tails(heads, relations, whole, mask),
        model.score_tails(heads, relations, without, torch.ones(without.num_edges)),
    )


def test_nodes_farther_than_the_layers_reach_score_as_nodes_out_of_reach() -> None:
    edges, heads = edges_of(BOTH_WAYS), torch.tensor([0])
    scores = model_of(1).score_tails(heads, torch.tensor([0]), edges, torch.ones(6))[0].tolist()
    assert scores[2] == pytest.approx(scores[4])  # two hops away, and in another component
    deeper = model_of(2).score_tails(heads, torch.tensor([0]), edges, torch.ones(6))[0].tolist()
    assert deeper[2] != pytest.approx(deeper[4])


def test_queries_of_a_batch_do_not_touch_each_other() -> None:
    model, edges, mask = model_of(2), edges_of(BOTH_WAYS), torch.ones(6)
    heads, relations = torch.tensor([0, 3, 1]), torch.tensor([0, 1, 2])
    together = model.score_tails(heads, relations, edges, mask)
    alone = [model.score_tails(heads[[i]], relations[[i]], edges, mask) for i in range(3)]
    torch.testing.assert_close(together, torch.cat(alone))


def test_kernels_and_plain_pytorch_give_the_same_scores_and_gradients() -> None:
    model, edges = model_of(3), edges_of(BOTH_WAYS)
    heads, relations = torch.tensor([0, 3, 1]), torch.tensor([0, 1, 2])
    mask = torch.tensor([1.0, 1, 0, 1, 1, 1])[edges.order]

    def result() -> list[torch.Tensor]:
        scores = model.score_tails(heads, relations, edges, mask)
        slope = torch.arange(scores.numel()).cos().view_as(scores)
        return [scores, *torch.autograd.grad((scores * slope).sum(), list(model.parameters()))]

    fast = result()
    with patch.object(message_moments_cpu, "has_kernel", lambda *values: False):
        torch.testing.assert_close(fast, result(), rtol=1e-4, atol=1e-5)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match=r"propagation\.layers"):
        PropagationSettings(layers=-1)


def test_every_query_has_its_answers_and_at_least_one_target() -> None:
    queries = Queries(BOTH_WAYS, 4, hidden_together(BOTH_WAYS, 5, "facts"))
    rng, device = np.random.default_rng(0), torch.device("cpu")
    batches = queries.shuffled(2, 0.5, rng, device)
    asked = {
        (int(batch.heads[row]), int(batch.relations[row]), int(answer))
        for batch in batches
        for row, answer in zip(batch.rows.tolist(), batch.answers.tolist(), strict=True)
    }
    assert asked == {tuple(fact) for fact in BOTH_WAYS.tolist()}
    assert all(set(batch.rows[batch.targets].tolist()) == {0, 1} for batch in batches)


def test_edges_are_hidden_with_their_inverses_or_with_all_between_two_nodes() -> None:
    facts = np.array([[0, 0, 1], [1, 1, 0], [1, 1, 2]], dtype=np.int32)
    both = np.concatenate([facts, np.stack([facts[:, 2], facts[:, 1] + 2, facts[:, 0]], axis=1)])
    assert hidden_together(both, 3, "facts").tolist() == [0, 1, 2, 0, 1, 2]
    assert hidden_together(both, 3, "pairs").tolist() == [0, 0, 1, 0, 0, 1]


def test_other_answers_are_no_negatives() -> None:
    # One query with answers 0 and 1, of which 1 is the target; node 2 is no answer.
    one, both = torch.ones(1, dtype=torch.int64), torch.tensor([0, 1])
    batch = Batch(one, one, torch.tensor([0, 0]), both, one, torch.ones(1), one)
    loss = batch_loss(torch.tensor([[100.0, 2.0, 1.0]]), batch)
    assert loss.item() == pytest.approx(np.log1p(np.exp(-1)))
