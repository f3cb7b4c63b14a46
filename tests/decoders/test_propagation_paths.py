"""The importance of edges for a score of propagation, against plain autograd over edge weights."""

from collections.abc import Iterable
from typing import cast

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear

from nodepiece.decoders.path_scorers import PathGraph
from nodepiece.decoders.propagation import (
    Propagation,
    PropagationLayer,
    PropagationSettings,
    degree_scalers,
    followed_edges,
)
from nodepiece.decoders.propagation_paths import best_by_mean, best_propagated, edge_importance
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.message_moments import SMALLEST_VARIANCE
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses

NUM_NODES, NUM_RELATIONS = 9, 2
HEAD, RELATION, TAIL = 0, 1, 7


def a_graph(seed: int) -> PathGraph:
    rng = np.random.default_rng(seed)
    facts = rng.integers(0, [NUM_NODES, NUM_RELATIONS, NUM_NODES], (20, 3)).astype(np.int32)
    graph = KnowledgeGraph(np.unique(facts, axis=0), NUM_NODES, NUM_RELATIONS)
    edges = torch.tensor(with_inverses(graph))
    visible = torch.ones(len(edges))
    visible[3] = 0.0
    index = EdgeIndex(edges, NUM_NODES, 2 * NUM_RELATIONS)
    return PathGraph(index, torch.zeros(2 * NUM_RELATIONS, 1), visible)


def a_scorer(seed: int) -> Propagation:
    settings = PropagationSettings(3, dim=8, rank=2, coefficient=2.0)
    generator = torch.manual_seed(seed)
    return Propagation(2 * NUM_RELATIONS, settings, generator=generator).eval()


def score_by_weights(scorer: Propagation, graph: PathGraph, weights: Tensor) -> Tensor:
    """The score of TAIL, with a weight for each edge in each layer; plain PyTorch in float64."""
    edges, visible = followed_edges(graph)
    shown = visible > 0
    target = edges.target.rows[shown]
    query = scorer.queries[RELATION]
    start = torch.zeros(NUM_NODES, len(query), dtype=torch.float64)
    start = start.index_put((torch.tensor([HEAD]),), query[None])
    states, scalers = start, degree_scalers(visible, edges).double()
    count = 1.0 + torch.bincount(target, minlength=NUM_NODES)[:, None]
    where = target[:, None].expand(-1, len(query))
    layers = cast(Iterable[PropagationLayer], scorer.layers)
    for layer, weight in zip(layers, weights, strict=True):
        relations = layer.relations_for(query[None], edges.num_relations)[:, 0]
        messages = states[edges.source.rows] * relations[edges.relation.rows] * weight[:, None]
        messages = messages[shown]
        mean = start.index_add(0, target, messages) / count
        squares = start.square().index_add(0, target, messages.square()) / count
        deviation = (squares - mean.square()).clamp_min(0).add(SMALLEST_VARIANCE).sqrt()
        largest = start.scatter_reduce(0, where, messages, "amax")
        smallest = start.scatter_reduce(0, where, messages, "amin")
        moments = torch.cat([mean, deviation, largest, smallest, states], dim=1)
        parts = linear(moments, layer.weight).view(NUM_NODES, 3, -1)
        update = (parts * scalers[..., None]).sum(dim=1) + layer.bias
        norm = layer_norm(update, layer.bias.shape, layer.scale, layer.shift, 1e-5)
        states = states + norm.relu()
    hidden = linear(torch.cat([states[TAIL], query]), scorer.hidden, scorer.hidden_bias).relu()
    return linear(hidden, scorer.output)[0]


@pytest.mark.parametrize("seed", range(3))  # without messages that tie for an extreme
def test_importance_is_the_gradient_of_the_score_by_the_weight_of_an_edge(seed: int) -> None:
    graph, scorer = a_graph(seed), a_scorer(seed)
    found = edge_importance(scorer, HEAD, RELATION, TAIL, graph)
    score = scorer(torch.tensor([HEAD]), torch.tensor([RELATION]), graph)[0, TAIL].item()
    weights = torch.ones(found.shape, dtype=torch.float64, requires_grad=True)
    expected = score_by_weights(scorer.double(), graph, weights)
    assert score == pytest.approx(2.0 * expected.item(), abs=1e-4)
    (gradient,) = torch.autograd.grad(expected, weights)
    np.testing.assert_allclose(found, gradient.numpy(), rtol=1e-3, atol=1e-4)


def test_edges_and_importance_are_in_the_order_of_the_given_graph() -> None:
    graph, scorer = a_graph(1), a_scorer(1)
    found, importance = best_propagated(scorer, HEAD, RELATION, TAIL, graph, top=5)
    assert importance[3] == 0 and importance.any()  # the hidden edge
    edges = graph.edge_index.edges.tolist()
    assert found.paths
    for path in found.paths:
        node = HEAD
        for edge in path.edges:
            target, _, source = edges[edge]
            assert source == node
            node = target
        assert node == TAIL


def test_the_beam_finds_the_path_of_largest_mean() -> None:
    """0 -> 1 -> 3 with importance 1 each, 0 -> 2 -> 3 with 3 and 0.5, and 0 -> 3 with 1.5."""
    edges = torch.tensor([[1, 0, 0], [2, 0, 0], [3, 0, 0], [3, 0, 1], [3, 0, 2]])
    index = EdgeIndex(edges, 4, 2, "target", is_sorted=True)
    layers = np.array([[1.0, 3.0, 1.5, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.5]])
    found = best_by_mean(index, layers, 0, 3, top=3)
    assert [(path.edges, path.score) for path in found] == [
        ((1, 4), 1.75),
        ((2,), 1.5),
        ((0, 3), 1.0),
    ]
