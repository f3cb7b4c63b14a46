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
from nodepiece.decoders.reached_edges import ReachedEdges, reached_edges
from nodepiece.decoders.walks import DAMPING, LOG_FLOOR, MIN_FLOOR, PLAIN_FLOOR, Walks
from nodepiece.graph.arrays import FloatArray

MAX_OPENED = 100_000  # partial walks; beyond that the search ends with what it has found

# (num_steps, num_relations) weights of relations; `ReachedEdges.shares`; (num_steps,) weights of
# the lengths of walks.
WalkKind = tuple[FloatArray, FloatArray, FloatArray]


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

    reached: ReachedEdges
    max_degree: int  # of walks with preferences; see `WalkSettings`
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
    def kinds(self) -> tuple[WalkKind, WalkKind]:
        """Walks with preferences, and without."""
        shares = self.reached.shares(self.max_degree), self.reached.shares()
        equal = np.ones_like(self.preferences)
        return (self.preferences, shares[0], self.mix), (equal, shares[1], self.plain_mix)

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
    found = k_best(terms.reached, terms.kinds, terms.rates, top=top, is_simple=False)
    paths = tuple(ScoredPath(scale * value, edges) for value, edges in found)
    return ScoredPaths(paths, scale * terms.total), terms


def walk_terms(walks: Walks, head: int, relation: int, tail: int, graph: PathGraph) -> WalkTerms:
    """What the score of walks for one tail consists of; see `Walks`."""
    with torch.no_grad():
        queries = graph.relations[relation][None]
        preferences, mix = (each.cpu() for each in walks.step_weights(queries, graph.relations))
        reach, log_floor = walks.weigh(queries)[0].double().tolist()
        plain, out = -1.0, 0.0
        if walks.weigh_plain is not None:
            plain, out = walks.weigh_plain(queries)[0].double().tolist()
    length = max(len(mix), walks.plain_steps)
    lengths = np.arange(1, length + 1)
    own_mix, padded = np.zeros(length), np.ones((length, preferences.shape[1]))
    own_mix[: len(mix)] = mix[:, 0].double().numpy()
    padded[: len(preferences)] = preferences[:, :, 0].double().numpy()
    plain_mix: FloatArray = np.where(lengths <= walks.plain_steps, 1 - DAMPING, 0.0)
    plain_mix = plain_mix * DAMPING**lengths
    max_degree = walks.settings.max_degree
    of_all = 0 if walks.plain_steps else max_degree  # plain walks do not end at hubs
    reached = reached_edges(graph, head, tail, length, of_all)
    if 0 < max_degree < reached.degrees[0]:
        own_mix[1:] = 0.0  # from this head walks with preferences have one step
    padded, own_mix, plain_mix = (
        each[: reached.num_steps] for each in (padded, own_mix, plain_mix)
    )
    terms = WalkTerms(
        reached,
        max_degree,
        padded,
        own_mix,
        plain_mix,
        1 + reach,
        max(math.exp(LOG_FLOOR + log_floor), MIN_FLOOR),
        1 + plain,
        out,
        probability=0.0,
        chance=0.0,
    )
    if head == tail:
        return terms
    rests = (float(_rests(reached.local, *kind, reached.tail)[0, 0]) for kind in terms.kinds)
    return replace(terms, probability=next(rests), chance=next(rests))


def k_best(
    reached: ReachedEdges,
    kinds: tuple[WalkKind, WalkKind],
    rates: tuple[float, float],
    *,
    top: int,
    is_simple: bool,  # no node twice
) -> list[tuple[float, tuple[int, ...]]]:
    """The walks of largest absolute value, and the values.

    The value of a walk is the sum over both kinds of rate * mix of its length * product over its
    edges of share * weight of the relation in this step. Best-first search, with a bound from
    the best way from every node to the tail, in the steps that remain.
    """
    if reached.tail < 0:
        return []
    bounds = tuple(
        _best_ends(reached.local, weights, shares, mix * abs(rate), reached.tail)
        if rate and mix.any()
        else np.zeros((len(mix) + 1, reached.num_nodes))
        for (weights, shares, mix), rate in zip(kinds, rates, strict=True)
    )
    limits = top, MAX_OPENED
    arrays = _search(reached.local, kinds, rates, bounds, reached.tail, limits, is_simple)
    values, lengths, found = arrays
    return [
        (float(value), tuple(reached.edges[row[:length]].tolist()))
        for value, length, row in zip(values, lengths, found, strict=True)
    ]


@njit(cache=True)
def _best_ends(local, weights, shares, mix, tail):  # type: ignore[no-untyped-def]
    """The largest value of the rest of a walk, after each number of steps at each node.

    (num_steps + 1, num_nodes): mix included. Only for nodes that so many steps may reach.
    """
    offsets, targets, relations, counts = local
    num_steps = len(mix)
    best = np.zeros((num_steps + 1, counts[-1]))
    best[num_steps, tail] = mix[num_steps - 1]
    for step in range(num_steps - 1, -1, -1):
        for node in range(counts[step]):
            most, share = 0.0, shares[min(step, 1), node]
            for edge in range(offsets[node], offsets[node + 1]):
                after = best[step + 1, targets[edge]]
                if after > 0.0:
                    most = max(most, share * weights[step, relations[edge]] * after)
            best[step, node] = most
        if step > 0:
            best[step, tail] = max(best[step, tail], mix[step - 1])
    return best


@njit(cache=True)
def _search(local, kinds, rates, bounds, tail, limits, is_simple):  # type: ignore[no-untyped-def]
    offsets, targets, relations, _ = local
    (liked, own_shares, own_mix), (plain, plain_shares, plain_mix) = kinds
    steps, mixes = (liked, plain), (own_mix, plain_mix)
    top, max_opened = limits
    num_steps = len(mixes[0])
    # Partial walks: values of both kinds, steps taken, node, the walk before, the last edge.
    first = [1.0]
    second = [1.0]
    taken = [0]
    places = [0]
    before = [-1]
    last = [-1]
    queue = [(-1.0, 0, False)]  # negative bound, partial walk, whether it ends here
    values = np.zeros(top)
    lengths = np.zeros(top, np.int64)
    found = np.full((top, num_steps), -1, np.int64)
    count, opened = 0, 0
    while len(queue) > 0 and count < top and opened < max_opened:
        _, walk, is_done = heappop(queue)
        opened += 1
        step, node = taken[walk], places[walk]
        if is_done:
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
        for edge in range(offsets[node], offsets[node + 1]):
            there = int(targets[edge])
            one = first[walk] * own_shares[min(step, 1), node] * steps[0][step, relations[edge]]
            two = second[walk] * plain_shares[min(step, 1), node] * steps[1][step, relations[edge]]
            bound = one * bounds[0][step + 1, there] + two * bounds[1][step + 1, there]
            if bound <= 0.0:
                continue
            if is_simple:
                earlier, is_new = walk, there != 0
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


def flows(terms: WalkTerms) -> tuple[FloatArray, FloatArray]:
    """How much of either probability goes along each edge of `terms.reached`.

    A walk that follows an edge twice counts twice. So this is at least what the probability loses
    without the edge, while the other edges keep their transition probabilities.
    """
    local, tail = terms.reached.local, terms.reached.tail
    liked, plain = (
        _flow(local, weights, shares, _rests(local, weights, shares, mix, tail))
        if mix.any()
        else np.zeros(len(terms.reached.edges))
        for weights, shares, mix in terms.kinds
    )
    return liked, plain


@njit(cache=True)
def _rests(local, weights, shares, mix, tail):  # type: ignore[no-untyped-def]
    """The sum over the rests of walks, after each number of steps at each node.

    (num_steps + 1, num_nodes): mix included. Only for nodes that so many steps may reach.
    """
    offsets, targets, relations, counts = local
    num_steps = len(mix)
    ahead = np.zeros((num_steps + 1, counts[-1]))
    if tail < 0:
        return ahead
    for step in range(num_steps, -1, -1):
        if step > 0:
            ahead[step, tail] = mix[step - 1]
        if step == num_steps:
            continue
        for node in range(counts[step]):
            share = shares[min(step, 1), node]
            for edge in range(offsets[node], offsets[node + 1]):
                after = ahead[step + 1, targets[edge]]
                if after > 0.0:
                    ahead[step, node] += share * weights[step, relations[edge]] * after
    return ahead


@njit(cache=True)
def _flow(local, weights, shares, ahead):  # type: ignore[no-untyped-def]
    offsets, targets, relations, counts = local
    num_steps = len(ahead) - 1
    here = np.zeros((num_steps + 1, counts[-1]))  # from the head to a node
    here[0, 0] = 1.0
    flow = np.zeros(len(targets))
    for step in range(num_steps):
        for node in range(counts[step]):
            leaving = here[step, node] * shares[min(step, 1), node]
            if leaving == 0.0:
                continue
            for edge in range(offsets[node], offsets[node + 1]):
                share = leaving * weights[step, relations[edge]]
                here[step + 1, targets[edge]] += share
                flow[edge] += share * ahead[step + 1, targets[edge]]
    return flow
