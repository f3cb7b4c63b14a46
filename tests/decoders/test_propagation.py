"""Scores by propagation: what they may depend on, and that they can be learned."""

from unittest.mock import patch

import numpy as np
import pytest
import torch

from nodepiece.decoders.path_scorers import PathGraph
from nodepiece.decoders.propagation import NUMBERS_ON_CPU, Propagation, PropagationSettings
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


def test_on_a_cpu_states_have_the_precision_that_its_kernels_have() -> None:
    model, edges = model_of(3), edges_of(BOTH_WAYS)
    heads, relations = torch.tensor([0, 3, 1]), torch.tensor([0, 1, 2])
    graph = PathGraph(edges, torch.zeros(4, 4))
    found = model.scores(heads, relations, graph)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(model.scores(heads, relations, graph), found)


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


def test_on_a_cpu_few_queries_are_scored_at_once_with_the_same_scores() -> None:
    model, heads = model_of(2), torch.arange(5)
    relations = torch.tensor([0, 1, 2, 3, 0])
    graph = PathGraph(edges_of(BOTH_WAYS), torch.zeros(4, 1))
    whole = model.scores(heads, relations, graph)
    numbers = 5 * 4 * 5  # of the moments and the state of a query
    for limit, at_once in ((numbers, 1), (2 * numbers, 2), (numbers - 1, 1)):
        with (
            patch("nodepiece.decoders.propagation.NUMBERS_ON_CPU", limit),
            torch.no_grad(),
        ):
            assert model.queries_at_once(graph) == at_once
            torch.testing.assert_close(model(heads, relations, graph), whole)
    assert 4 * NUMBERS_ON_CPU < 2**25


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match=r"propagation\.layers"):
        PropagationSettings(layers=-1)
