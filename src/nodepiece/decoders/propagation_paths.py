"""The paths that a score of propagation depends on most, as in NBFNet (Zhu et al., 2021).

Every edge has a weight of 1 in every layer, by which its message is multiplied. The importance of
an edge in a layer is the gradient of the score with respect to that weight: to first order, what
the score loses without the message. A beam search then follows the edges from the head, one layer a
step, and returns the paths to the tail whose edges have the largest mean importance.
"""

from collections.abc import Iterable
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from nodepiece.compiled import njit, prange
from nodepiece.decoders.path_scorers import PathGraph
from nodepiece.decoders.propagation import (
    NUM_SCALERS,
    Propagation,
    PropagationLayer,
    degree_scalers,
    followed_edges,
    with_unseen,
)
from nodepiece.decoders.walk_paths import ScoredPath, ScoredPaths
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.message_moments import NUM_MOMENTS, message_moments, variance_of_constants
from nodepiece.encoders.scaled_update import scaled_update
from nodepiece.graph.arrays import FloatArray

BEAM = 10  # partial paths that are kept at every node


def best_propagated(
    propagation: Propagation, head: int, relation: int, tail: int, graph: PathGraph, *, top: int
) -> tuple[ScoredPaths, FloatArray]:
    """The best paths, and the importance of every edge: (num_edges,), summed over the layers.

    Both times the coefficient of propagation, and in the order of `graph.edge_index`. The total is
    the sum of all importances.
    """
    edges, _ = followed_edges(graph)
    layers = float(propagation.coefficient) * edge_importance(
        propagation, head, relation, tail, graph
    )
    found = best_by_mean(edges, layers, head, tail, top)
    place = graph.edge_index.by_target[1].cpu().numpy()  # where each edge is in the given order
    paths = tuple(
        ScoredPath(path.score, tuple(int(place[edge]) for edge in path.edges)) for path in found
    )
    importance = np.zeros(len(place))
    importance[place] = layers.sum(axis=0)
    return ScoredPaths(paths, float(importance.sum())), importance


def edge_importance(
    propagation: Propagation, head: int, relation: int, tail: int, graph: PathGraph
) -> FloatArray:
    """The gradient of a score by the weight of every edge in every layer: (num_layers, num_edges).

    Edges are those of `followed_edges`. One pass forward and one backward, with the kernels of
    training; the gradient of a weight is the product of a message and its gradient.
    """
    edges, edge_mask = followed_edges(graph)
    device = edge_mask.device
    heads = torch.tensor([head], device=device)
    with torch.no_grad():
        queries = with_unseen(propagation.queries, edges.num_relations)[relation][None]
    states = torch.zeros(edges.num_nodes, 1, queries.shape[1], device=device)
    states[head, 0] = queries[0]
    scalers, recorded, used = degree_scalers(edge_mask, edges), [], []
    with torch.enable_grad():
        for layer in cast(Iterable[PropagationLayer], propagation.layers):
            relations = layer.relations_for(queries, edges.num_relations).detach()
            moments = message_moments(states, relations, queries, heads, edge_mask, edges)
            moments = moments if moments.requires_grad else moments.requires_grad_()
            used.append((states.detach(), relations))
            recorded.append(moments)
            parts = linear(moments.flatten(start_dim=2), layer.weight.detach())
            parts = parts.view(*states.shape[:2], NUM_SCALERS, -1)
            weights = (layer.bias, layer.scale, layer.shift)
            states = scaled_update(parts, scalers, states, *(each.detach() for each in weights))
        score = _score(propagation, states[tail], queries)
        gradients = torch.autograd.grad(score, recorded)
    visible = (edge_mask > 0).cpu()
    count = 1 + torch.bincount(edges.target.rows.cpu()[visible], minlength=edges.num_nodes)
    ends = [each.rows.cpu().numpy() for each in (edges.target, edges.relation, edges.source)]
    constant = variance_of_constants(states.dtype)
    return np.stack(
        [
            _products(
                *(each.detach().cpu()[:, 0].contiguous().numpy() for each in (*pair, found, slope)),
                (*ends, visible.numpy(), count.numpy()),
                constant,
            )
            for pair, found, slope in zip(used, recorded, gradients, strict=True)
        ]
    )


def _score(propagation: Propagation, state: Tensor, queries: Tensor) -> Tensor:
    """The score of one node from its last state, (1, dim)."""
    dim = queries.shape[1]
    by_state, by_query = propagation.hidden[:, :dim], propagation.hidden[:, dim:]
    hidden = linear(state, by_state) + linear(queries, by_query, propagation.hidden_bias)
    return linear(hidden.relu(), propagation.output).sum()


@njit(parallel=True, cache=True)
def _products(states, relations, found, slope, edges, constant):  # type: ignore[no-untyped-def]
    """The sum over message * gradient of the message, for every edge.

    states: (num_nodes, dim); relations: (num_relations, dim); found, slope: (num_nodes, 5, dim),
    the moments and their gradients.
    """
    targets, labels, sources, visible, count = edges
    result = np.zeros(len(targets))
    # Many nodes have no state yet in the first layers, or do not reach the tail in the last ones.
    has_state, has_slope = _is_not_zero(states), _is_not_zero(slope[:, :NUM_MOMENTS])
    for edge in prange(len(targets)):
        if not (visible[edge] and has_state[sources[edge]] and has_slope[targets[edge]]):
            continue
        at, total = targets[edge], 0.0
        for k in range(states.shape[1]):
            message = states[sources[edge], k] * relations[labels[edge], k]
            if message == 0.0:
                continue
            inner = slope[at, 0, k]
            deviation = found[at, 1, k]
            if deviation * deviation > constant:
                inner += slope[at, 1, k] / deviation * (message - found[at, 0, k])
            inner /= count[at]
            if message == found[at, 2, k]:
                inner += slope[at, 2, k]
            if message == found[at, 3, k]:
                inner += slope[at, 3, k]
            total += inner * message
        result[edge] = total
    return result


@njit(cache=True)
def _is_not_zero(values):  # type: ignore[no-untyped-def]
    """(num_rows,) whether any number of each row is not 0."""
    result = np.zeros(len(values), np.bool_)
    for row in range(len(values)):
        result[row] = (values[row] != 0).any()
    return result


def best_by_mean(
    edges: EdgeIndex, layers: FloatArray, head: int, tail: int, top: int
) -> list[ScoredPath]:
    """The paths of largest mean importance without a node twice, found with a beam."""
    columns = [each.rows.cpu().numpy() for each in (edges.target, edges.source)]
    value, edge_of, before = _beam(*columns, layers, head, edges.num_nodes, BEAM)
    targets, sources = columns
    found: dict[tuple[int, ...], float] = {}
    for length in range(1, len(layers) + 1):
        for place in range(BEAM):
            if not np.isfinite(value[length, tail, place]):
                continue
            path: list[int] = []
            node, slot = tail, place
            for step in range(length, 0, -1):
                edge = int(edge_of[step, node, slot])
                path.append(edge)
                slot, node = int(before[step, node, slot]), int(sources[edge])
            path.reverse()
            nodes = [head, *(int(targets[edge]) for edge in path)]
            if len(set(nodes)) == len(nodes):
                found[tuple(path)] = float(value[length, tail, place]) / length
    best = sorted(found.items(), key=lambda item: -item[1])[:top]
    return [ScoredPath(score, path) for path, score in best]


@njit(cache=True)
def _beam(targets, sources, layers, head, num_nodes, width):  # type: ignore[no-untyped-def]
    """The best sums at every node after every step, the last edge, and the place before it."""
    num_steps = len(layers)
    value = np.full((num_steps + 1, num_nodes, width), -np.inf)
    edge_of = np.full((num_steps + 1, num_nodes, width), -1, np.int64)
    before = np.full((num_steps + 1, num_nodes, width), -1, np.int64)
    value[0, head, 0] = 0.0
    for step in range(1, num_steps + 1):
        for edge in range(len(targets)):
            source, target = sources[edge], targets[edge]
            gain = layers[step - 1, edge]
            if gain == 0.0 or target == head:
                continue
            for slot in range(width):
                total = value[step - 1, source, slot] + gain
                if total <= value[step, target, width - 1]:  # also where there is no such path
                    break
                place = width - 1
                while place > 0 and value[step, target, place - 1] < total:
                    value[step, target, place] = value[step, target, place - 1]
                    edge_of[step, target, place] = edge_of[step, target, place - 1]
                    before[step, target, place] = before[step, target, place - 1]
                    place -= 1
                value[step, target, place] = total
                edge_of[step, target, place] = edge
                before[step, target, place] = slot
    return value, edge_of, before
