"""The best paths from a head to a tail by what they add to the score of walks, exactly.

The probability of reaching the tail is a sum over all walks that end there, so each walk has its
share of it. What walks add to a score, compared with a tail that no walk reaches, is

    (1 + reach) * log((floor + probability) / floor)
    + (1 + plain) * log((PLAIN_FLOOR + chance) / PLAIN_FLOOR) - out,

and a walk gets that share of each of the two terms. So the parts of all walks sum up to the whole.
"""

import math
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np
import torch

from nodepiece.compiled import njit
from nodepiece.decoders.path_scorers import PathGraph
from nodepiece.decoders.walk_graph import WalkGraph
from nodepiece.decoders.walks import DAMPING, LOG_FLOOR, PLAIN_FLOOR, Walks
from nodepiece.decoders.walks_cpu import edges_by_tail
from nodepiece.graph.arrays import FloatArray, LongArray

MAX_OPENED = 100_000  # partial walks; beyond that the search ends with what it has found


# Offsets and positions of edges by the node that they leave; where they lead to, their relations,
# and their transition probabilities.
Edges = tuple[LongArray, LongArray, LongArray, LongArray, FloatArray]


@dataclass(frozen=True)
class ScoredPath:
    """A path by the edges that it follows, in the order of an edge index, and what it adds."""

    score: float
    edges: tuple[int, ...]


@dataclass(frozen=True)
class ScoredPaths:
    """The best paths, best first, and what all paths together add to the score."""

    paths: tuple[ScoredPath, ...]
    total: float


@dataclass(frozen=True, eq=False)
class WalkTerms:
    """The two sums over walks that the score of a tail is computed from, and how they enter it."""

    edges: Edges  # with transition probabilities without damping
    preferences: FloatArray  # (num_steps, num_relations)
    mix: FloatArray  # (num_steps,) weights of the lengths of walks with preferences
    plain_mix: FloatArray  # (num_steps,) the same without preferences, damping included
    weight: float  # 1 + reach
    floor: float
    plain_weight: float  # 1 + plain; 0: there are no walks without preferences
    out: float
    probability: float  # of reaching the tail with preferences, weighted by length
    chance: float  # of reaching it without

    def amount(self, probability: float) -> float:
        """What walks with preferences add, if they reach the tail with this probability."""
        return self.weight * math.log((probability + self.floor) / self.floor)

    def plain_amount(self, chance: float) -> float:
        """What walks without preferences add."""
        if chance <= 0 or not self.plain_weight:
            return 0.0
        return self.plain_weight * math.log((chance + PLAIN_FLOOR) / PLAIN_FLOOR) - self.out

    @property
    def total(self) -> float:
        return self.amount(self.probability) + self.plain_amount(self.chance)

    def loss(self, flow: float, plain_flow: float) -> float:
        """What the score loses if the two probabilities are lower by these."""
        left = self.amount(max(0.0, self.probability - flow))
        return self.total - left - self.plain_amount(max(0.0, self.chance - plain_flow))

    @property
    def rates(self) -> tuple[float, float]:
        """What a unit of either probability adds to the score."""
        return (
            self.amount(self.probability) / self.probability if self.probability else 0.0,
            self.plain_amount(self.chance) / self.chance if self.chance else 0.0,
        )


def best_walks(
    walks: Walks, head: int, relation: int, tail: int, graph: PathGraph, *, top: int
) -> tuple[ScoredPaths, WalkTerms]:
    """The walks from head to tail that add most to the score, times the coefficient of walks.

    A walk may visit a node twice. `graph` is that of one query, without edges of its own.
    """
    terms = walk_terms(walks, head, relation, tail, graph)
    if head == tail or not (terms.probability or terms.chance):
        return ScoredPaths((), 0.0), terms
    scale = float(walks.coefficient)
    steps = (terms.preferences, np.ones_like(terms.preferences))
    mixes = (terms.mix, terms.plain_mix)
    found = k_best(terms.edges, steps, mixes, terms.rates, (head, tail), top, False)
    paths = tuple(ScoredPath(scale * value, edges) for value, edges in found)
    return ScoredPaths(paths, scale * terms.total), terms


def walk_terms(walks: Walks, head: int, relation: int, tail: int, graph: PathGraph) -> WalkTerms:
    """What the score of walks for one tail consists of; see `Walks`."""
    with torch.no_grad():
        heads = torch.tensor([head], device=graph.relations.device)
        queries = graph.relations[relation][None]
        walk_graph = WalkGraph(graph.edge_index, graph.visible(), 1)
        preferences, mix = (each.cpu() for each in walks.step_weights(queries, graph.relations))
        reach, log_floor = walks.weigh(queries)[0].double().tolist()
        reached = walks.reached(heads, queries, graph.relations, walk_graph)[tail, 0]
        plain, out, chance = -1.0, 0.0, 0.0
        if walks.weigh_plain is not None:
            plain, out = walks.weigh_plain(queries)[0].double().tolist()
            chance = float(walks.reached_uniformly(heads, walk_graph)[tail, 0])
    length = max(len(mix), walks.plain_steps)
    lengths = np.arange(1, length + 1)
    own_mix, padded = np.zeros(length), np.ones((length, preferences.shape[1]))
    own_mix[: len(mix)] = mix[:, 0].double().numpy()
    padded[: len(preferences)] = preferences[:, :, 0].double().numpy()
    plain_mix: FloatArray = np.where(lengths <= walks.plain_steps, 1 - DAMPING, 0.0)
    plain_mix = plain_mix * DAMPING**lengths
    return WalkTerms(
        edges_on_cpu(walk_graph),
        padded,
        own_mix,
        plain_mix,
        1 + reach,
        math.exp(LOG_FLOOR + log_floor),
        1 + plain,
        out,
        float(reached),
        chance,
    )


def edges_on_cpu(walk_graph: WalkGraph) -> Edges:
    """Edges by tail, of a graph on any device."""
    index = walk_graph.edge_index
    if index.device.type != "cpu":
        on_cpu, mask = replace(index, edges=index.edges.cpu()), walk_graph.edge_mask.cpu()
        walk_graph = WalkGraph(on_cpu, mask, walk_graph.num_queries)
    offsets, members, targets, relations, chances = edges_by_tail(walk_graph)
    whole = [each.astype(np.int64) for each in (offsets, members, targets, relations)]
    return whole[0], whole[1], whole[2], whole[3], chances.astype(np.float64)


def k_best(
    edges: Edges,
    steps: tuple[FloatArray, FloatArray],  # (num_steps, num_relations) weights of two kinds
    mixes: tuple[FloatArray, FloatArray],  # (num_steps,) weights of the lengths
    rates: tuple[float, float],
    ends: tuple[int, int],
    top: int,
    is_simple: bool,  # no node twice
) -> list[tuple[float, tuple[int, ...]]]:
    """The walks of largest absolute value, and the values.

    The value of a walk is the sum over both kinds of rate * mix of its length * product over its
    edges of chance * weight of the relation in this step. Best-first search, with a bound from the
    best way from every node to the tail, in the steps that remain.
    """
    bounds = tuple(
        _best_ends(edges, weights, mix * abs(rate), ends[1])
        if rate and mix.any()
        else np.zeros((len(mix) + 1, len(edges[0]) - 1))
        for weights, mix, rate in zip(steps, mixes, rates, strict=True)
    )
    arrays = _search(edges, steps, mixes, rates, bounds, ends, (top, MAX_OPENED), is_simple)
    values, lengths, found = arrays
    return [
        (float(value), tuple(int(edge) for edge in row[:length]))
        for value, length, row in zip(values, lengths, found, strict=True)
    ]


@njit(cache=True)
def _best_ends(edges, weights, mix, tail):  # type: ignore[no-untyped-def]
    """The largest value of the rest of a walk, after each number of steps at each node.

    (num_steps + 1, num_nodes): mix included.
    """
    offsets, members, targets, relations, chances = edges
    num_steps, num_nodes = len(mix), len(offsets) - 1
    best = np.zeros((num_steps + 1, num_nodes))
    for step in range(num_steps, -1, -1):
        if step > 0:
            best[step, tail] = mix[step - 1]
        if step == num_steps:
            continue
        for node in range(num_nodes):
            for position in range(offsets[node], offsets[node + 1]):
                edge = members[position]
                after = best[step + 1, targets[edge]]
                if after > 0.0:
                    value = chances[edge] * weights[step, relations[edge]] * after
                    best[step, node] = max(best[step, node], value)
    return best


@njit(cache=True)
def _search(edges, steps, mixes, rates, bounds, ends, limits, is_simple):  # type: ignore[no-untyped-def]
    offsets, members, targets, relations, chances = edges
    head, tail = ends
    top, max_opened = limits
    num_steps = len(mixes[0])
    # Partial walks: values of both kinds, steps taken, node, the walk before, the last edge.
    first = [1.0]
    second = [1.0]
    taken = [0]
    places = [head]
    before = [-1]
    last = [-1]
    queue = [(-1.0, 0, False)]  # negative bound, partial walk, whether it ends here
    values = np.zeros(top)
    lengths = np.zeros(top, np.int64)
    found = np.full((top, num_steps), -1, np.int64)
    count, opened = 0, 0
    while len(queue) > 0 and count < top and opened < max_opened:
        _, walk, is_end = heappop(queue)
        opened += 1
        step, node = taken[walk], places[walk]
        if is_end:
            values[count] = (
                rates[0] * mixes[0][step - 1] * first[walk]
                + rates[1] * mixes[1][step - 1] * second[walk]
            )
            lengths[count] = step
            while step > 0:
                step -= 1
                found[count, step] = last[walk]
                walk = before[walk]
            count += 1
            continue
        if node == tail and step > 0:
            value = abs(
                rates[0] * mixes[0][step - 1] * first[walk]
                + rates[1] * mixes[1][step - 1] * second[walk]
            )
            if value > 0.0:
                heappush(queue, (-value, walk, True))
            if is_simple:
                continue
        if step == num_steps:
            continue
        for position in range(offsets[node], offsets[node + 1]):
            edge = members[position]
            there = targets[edge]
            one = first[walk] * chances[edge] * steps[0][step, relations[edge]]
            two = second[walk] * chances[edge] * steps[1][step, relations[edge]]
            bound = one * bounds[0][step + 1, there] + two * bounds[1][step + 1, there]
            if bound <= 0.0:
                continue
            if is_simple:
                earlier, is_new = walk, there != head
                while before[earlier] >= 0:
                    if places[earlier] == there:
                        is_new = False
                    earlier = before[earlier]
                if not is_new:
                    continue
            first.append(one)
            second.append(two)
            taken.append(step + 1)
            places.append(there)
            before.append(walk)
            last.append(edge)
            heappush(queue, (-bound, len(first) - 1, False))
    return values[:count], lengths[:count], found[:count]


def flows(terms: WalkTerms, head: int, tail: int) -> tuple[FloatArray, FloatArray]:
    """How much of either probability goes along each edge, (num_edges,) each.

    A walk that follows an edge twice counts twice. So this is at least what the probability loses
    without the edge, while the other edges keep their transition probabilities.
    """
    kinds = (terms.preferences, terms.mix), (np.ones_like(terms.preferences), terms.plain_mix)
    liked, plain = (
        _flow(terms.edges, weights, mix, head, tail) if mix.any() else np.zeros(len(terms.edges[2]))
        for weights, mix in kinds
    )
    return liked, plain


@njit(cache=True)
def _flow(edges, weights, mix, head, tail):  # type: ignore[no-untyped-def]
    offsets, members, targets, relations, chances = edges
    num_steps, num_nodes = len(mix), len(offsets) - 1
    ahead = np.zeros((num_steps + 1, num_nodes))  # from a node to the tail, mix included
    here = np.zeros((num_steps + 1, num_nodes))  # from the head to a node
    for step in range(num_steps, -1, -1):
        if step > 0:
            ahead[step, tail] = mix[step - 1]
        if step == num_steps:
            continue
        for node in range(num_nodes):
            for position in range(offsets[node], offsets[node + 1]):
                edge = members[position]
                after = ahead[step + 1, targets[edge]]
                if after > 0.0:
                    ahead[step, node] += chances[edge] * weights[step, relations[edge]] * after
    here[0, head] = 1.0
    flow = np.zeros(len(targets))
    for step in range(num_steps):
        for node in range(num_nodes):
            if here[step, node] == 0.0:
                continue
            for position in range(offsets[node], offsets[node + 1]):
                edge = members[position]
                share = here[step, node] * chances[edge] * weights[step, relations[edge]]
                here[step + 1, targets[edge]] += share
                flow[edge] += share * ahead[step + 1, targets[edge]]
    return flow
