"""Walks on a CPU whose cost is that of the edges they follow, in a graph of any size.

Nodes that no walk reaches share one score. So the softmax over all nodes needs the scores of the
reached ones and the number of the others, and no number for every node is stored in training. Each
query is answered without its own fact: a walk skips that edge, and the degrees of its two ends are
one less. The gradient is computed with the loss, from the same walk.
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.compiled import njit, prange
from nodepiece.decoders.path_scorers import PossibleTails, QueryFacts
from nodepiece.encoders.edge_rows import EdgeRows, find_row

UNLIMITED = 2**62
BYTES_PER_STATE = 12  # of a node at one level: its place in a list, its probability, its gradient
MAX_STATE_BYTES = 2**30  # of all threads; with more nodes fewer threads walk


@dataclass(frozen=True)
class WalkWeights:
    """What the relation of each query makes of the probabilities of walks.

    The score of a node is power * log(floor + sum over lengths of mix * probability).
    """

    preferences: Tensor  # (batch, num_steps, num_relations)
    mix: Tensor  # (batch, num_steps)
    power: Tensor  # (batch,)
    floor: Tensor  # (batch,)

    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        tensors = self.preferences, self.mix, self.power, self.floor
        preferences, mix, power, floor = (each.contiguous() for each in tensors)
        return preferences, mix, power, floor


def walk_loss(
    heads: Tensor,
    relations: Tensor,
    tails: Tensor,
    weights: WalkWeights,
    rows: EdgeRows,
    max_degree: int,
) -> Tensor:
    """The mean cross-entropy of tails among all nodes, each without its own fact: ()."""
    facts = torch.stack([heads, relations, tails], dim=1).long().numpy()
    losses: Tensor = _WalkLoss.apply(*weights.tensors(), facts, rows, max_degree)  # type: ignore[no-untyped-call]
    return losses.mean()


def add_walk_scores(
    scores: Tensor,  # (batch, num_nodes) float32, contiguous; changed
    heads: Tensor,
    weights: WalkWeights,
    rows: EdgeRows,
    max_degree: int,
    coefficient: float,
) -> None:
    """Add coefficient * the scores of walks, without a second matrix of this size."""
    preferences, mix, power, floor = (each.detach().numpy() for each in weights.tensors())
    arrays = preferences, mix, power, floor  # of a fixed length, as numba needs it
    threads, limit = num_walking(preferences.shape[1], rows.num_nodes), max_degree or UNLIMITED
    starts = heads.long().contiguous().numpy()
    _add_scores(scores.numpy(), starts, arrays, rows.arrays, limit, coefficient, threads)


def walk_fact_scores(
    facts: QueryFacts, weights: WalkWeights, rows: EdgeRows, max_degree: int
) -> Tensor:
    """The scores of walks of single facts: (num_facts,)."""
    preferences, mix, power, floor = (each.detach().numpy() for each in weights.tensors())
    arrays = preferences, mix, power, floor
    heads, tails = (each.long().contiguous().numpy() for each in (facts.heads, facts.tails))
    starts = np.searchsorted(facts.rows.numpy(), np.arange(len(heads) + 1))
    scores = np.empty(len(tails), power.dtype)
    sizes = num_walking(preferences.shape[1], rows.num_nodes), rows.num_nodes
    limit = max_degree or UNLIMITED
    _fact_scores(heads, starts, tails, arrays, rows.arrays, limit, scores, sizes)
    return torch.from_numpy(scores)


def likely_tails(
    heads: Tensor,
    tails: PossibleTails,
    weights: WalkWeights,  # of one query, for all of them
    rows: EdgeRows,
    max_degree: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The tails of each head that walks reach best, and their scores of walks.

    Rows of `heads`, nodes and scores: (num_found,) each.
    """
    preferences, mix, power, floor = (each.detach().numpy() for each in weights.tensors())
    shape = len(heads), tails.most
    found, chances = np.full(shape, -1, np.int64), np.zeros(shape, power.dtype)
    possible = tails.is_tail, tails.known, tails.start, tails.number
    threads, limit = num_walking(preferences.shape[1], rows.num_nodes), max_degree or UNLIMITED
    walk = preferences[0], mix[0]
    starts = heads.long().contiguous().numpy()
    _likely_tails(starts, walk, possible, rows.arrays, limit, found, chances, threads)
    place = np.nonzero(found >= 0)
    scores = power[0] * np.log(chances[place] + floor[0])
    row, nodes, scores = (torch.from_numpy(each) for each in (place[0], found[place], scores))
    return row, nodes, scores


def state_bytes(num_steps: int, num_nodes: int) -> int:
    """The bytes of what a thread writes down of a walk."""
    return BYTES_PER_STATE * (num_steps + 2) * num_nodes


def num_walking(num_steps: int, num_nodes: int) -> int:
    """How many threads walk."""
    limit = MAX_STATE_BYTES // max(1, state_bytes(num_steps, num_nodes))
    return max(1, min(numba.get_num_threads(), limit))


# Of each thread and level: a list of nodes, probabilities (0 between two queries), their gradients;
# and of each thread, logarithms.
States = tuple[NDArray[np.int32], NDArray[Any], NDArray[Any], NDArray[Any]]


def take_states(num_steps: int, rows: EdgeRows, dtype: np.dtype[Any]) -> States:
    """What threads write down of walks: that of the last step if there is one.

    New memory would cost as much as walks do: a large graph has a page for every few nodes.
    """
    num_nodes = rows.num_nodes
    shape = num_walking(num_steps, num_nodes), num_steps + 2, num_nodes
    try:
        spare: States = rows.spare.pop()
    except IndexError:  # another thread has it
        pass
    else:
        if spare[1].shape == shape and spare[1].dtype == dtype:
            return spare
    logs = np.empty((shape[0], num_nodes), dtype)
    return np.empty(shape, np.int32), np.zeros(shape, dtype), np.empty(shape, dtype), logs


class _WalkLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        preferences: Tensor,
        mix: Tensor,
        power: Tensor,
        floor: Tensor,
        facts: Any,
        rows: EdgeRows,
        max_degree: int,
    ) -> Tensor:
        """(batch,)."""
        weights = preferences.numpy(), mix.numpy(), power.numpy(), floor.numpy()
        gradients = tuple(map(np.empty_like, weights))
        losses = np.empty_like(weights[2])
        states = take_states(preferences.shape[1], rows, weights[2].dtype)
        limit = max_degree or UNLIMITED
        _losses(facts, weights, rows.arrays, limit, losses, gradients, states)
        rows.spare[:] = [states]
        ctx.save_for_backward(*map(torch.from_numpy, gradients))
        return torch.from_numpy(losses)

    @staticmethod
    def backward(ctx: Any, of_losses: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [
            gradient * of_losses.view(-1, *[1] * (gradient.dim() - 1))
            for gradient in ctx.saved_tensors
        ]
        return (*scaled, None, None, None)


@njit(cache=True)
def _is_hidden(node, along, there, query):  # type: ignore[no-untyped-def]
    """Whether an edge is the fact of the query, in either direction."""
    head, relation, tail, inverse = query[:4]
    is_back = node == tail and there == head and along == relation
    return is_back or (node == head and there == tail and along == inverse)


@njit(cache=True)
def _num_hidden(node, query, start, end, targets, relations):  # type: ignore[no-untyped-def]
    number = 0
    for edge in range(start, end):
        number += _is_hidden(node, relations[edge], targets[edge], query)
    return number


@njit(cache=True)
def _visible_degree(node, query, rows):  # type: ignore[no-untyped-def]
    """The number of edges of the head or the tail, without the fact of the query."""
    start, end, is_changed = find_row(node, rows)
    if is_changed:
        return end - start - _num_hidden(node, query, start, end, rows[6], rows[7])
    return end - start - _num_hidden(node, query, start, end, rows[1], rows[2])


@njit(cache=True)
def _without_fact(head, relation, tail, num_relations, rows):  # type: ignore[no-untyped-def]
    """A query whose fact is hidden: head, relation, tail, inverse relation, degrees of both ends.

    A tail of -1: no fact is hidden.
    """
    inverse = (relation + num_relations // 2) % num_relations
    query = head, relation, tail, inverse, np.int64(0), np.int64(0)
    if tail < 0:
        start, end, _ = find_row(head, rows)
        return head, relation, tail, inverse, end - start, np.int64(0)
    degrees = _visible_degree(head, query, rows), _visible_degree(tail, query, rows)
    return head, relation, tail, inverse, degrees[0], degrees[1]


@njit(cache=True, inline="always")
def _row(node, query, rows):  # type: ignore[no-untyped-def]
    """`find_row`, and the number of edges of a node, without the fact of the query."""
    start, end, is_changed = find_row(node, rows)
    degree = end - start
    if node == query[0]:
        degree = query[4]
    elif node == query[2]:
        degree = query[5]
    return start, end, is_changed, degree


@njit(cache=True, inline="always")
def _spread(way, targets, relations, liked, there, reached, count):  # type: ignore[no-untyped-def]
    """Add the share of each edge of a node to its target; returns the number of reached nodes.

    way: the node, the share of an edge without preferences, the query, where its edges are.
    """
    node, share, query, start, end = way
    is_end, least = node == query[0] or node == query[2], np.finfo(there.dtype).tiny
    for edge in range(start, end):
        along, target = relations[edge], targets[edge]
        if is_end and _is_hidden(node, along, target, query):
            continue
        before = there[target]
        if before == 0.0:
            reached[count] = target
            count += 1
        there[target] = before + max(share * liked[along], least)
    return count


@njit(cache=True)
def _walk(query, preferences, mix, rows, max_degree, nodes, counts, chances):  # type: ignore[no-untyped-def]
    """Compute the nodes that walks reach, and their probabilities, level by level.

    query: that of `_without_fact`. Level l is that of l steps: its nodes are nodes[l, :counts[l]],
    and chances[l] has their probabilities, and 0 for all others. The last level has the sum of the
    others with weights `mix`, without the head.
    nodes, chances: (num_steps + 2, num_nodes).
    """
    head, num_steps, least = query[0], len(preferences), np.finfo(chances.dtype).tiny
    counts[:] = 0
    nodes[0, 0], counts[0], chances[0, head] = head, 1, 1.0
    if _row(head, query, rows)[3] > max_degree:
        num_steps = 1
    _, targets, relations, _, _, _, new_targets, new_relations = rows
    for step in range(num_steps):
        here, there, liked = chances[step], chances[step + 1], preferences[step]
        reached, count = nodes[step + 1], 0
        for node in nodes[step, : counts[step]]:
            start, end, is_changed, degree = _row(node, query, rows)
            if step > 0 and degree > max_degree:
                continue
            way = node, here[node] / max(1, degree), query, start, end
            if is_changed:
                count = _spread(way, new_targets, new_relations, liked, there, reached, count)
            else:
                count = _spread(way, targets, relations, liked, there, reached, count)
        counts[step + 1] = count
    total, count = chances[-1], 0
    for step in range(1, num_steps + 1):
        for node in nodes[step, : counts[step]]:
            if node != head:
                if total[node] == 0.0:
                    nodes[-1, count] = node
                    count += 1
                total[node] += max(mix[step - 1] * chances[step, node], least)
    counts[-1] = count


@njit(cache=True, inline="always")
def _slope_of_leaving(way, targets, relations, liked, after, of_liked):  # type: ignore[no-untyped-def]
    """The sum over the edges of a node; adds the gradients of preferences to `of_liked`."""
    node, share, query, start, end = way
    is_end, of_leaving = node == query[0] or node == query[2], share * 0  # of the same type
    for edge in range(start, end):
        along, target = relations[edge], targets[edge]
        if is_end and _is_hidden(node, along, target, query):
            continue
        of_liked[along] += share * after[target]
        of_leaving += liked[along] * after[target]
    return of_leaving


@njit(cache=True)
def _walk_back(query, preferences, mix, rows, max_degree, nodes, counts, chances, slopes):  # type: ignore[no-untyped-def]
    """The gradients of preferences and mix, where slopes[-1] are those of the last level.

    slopes: like `chances`.
    """
    of_preferences, of_mix = np.zeros_like(preferences), np.zeros_like(mix)
    _, targets, relations, _, _, _, new_targets, new_relations = rows
    for step in range(len(preferences), -1, -1):
        goes_on = step < len(preferences) and counts[step + 1] > 0
        place = step if goes_on else 0  # of the arrays of the step, which are not used otherwise
        liked, of_liked, after = preferences[place], of_preferences[place], slopes[place + 1]
        for node in nodes[step, : counts[step]]:
            chance = chances[step, node]
            slope = chance * 0  # of the same type
            if step > 0 and node != query[0]:
                of_mix[step - 1] += slopes[-1, node] * chance
                slope = mix[step - 1] * slopes[-1, node]
            if goes_on:
                start, end, is_changed, degree = _row(node, query, rows)
                if degree > 0 and not (step > 0 and degree > max_degree):
                    way = node, chance / degree, query, start, end
                    if is_changed:
                        slope += (
                            _slope_of_leaving(
                                way, new_targets, new_relations, liked, after, of_liked
                            )
                            / degree
                        )
                    else:
                        slope += (
                            _slope_of_leaving(way, targets, relations, liked, after, of_liked)
                            / degree
                        )
            slopes[step, node] = slope
    return of_preferences, of_mix


@njit(cache=True)
def _clear(nodes, counts, chances):  # type: ignore[no-untyped-def]
    """Leave a probability of 0 for every node."""
    for level in range(len(counts)):
        for node in nodes[level, : counts[level]]:
            chances[level, node] = 0.0


@njit(cache=True)
def _loss(answer, power, floor, reached, chances, logs, slopes):  # type: ignore[no-untyped-def]
    """The cross-entropy of an answer, and the gradients of power and floor.

    reached: the nodes of which `chances`, (num_nodes,), is not 0. The gradients of `chances` are
    written to `slopes`; `logs` is room for as many numbers.
    """
    log_floor, num_unreached = np.log(floor), len(chances) - len(reached)
    largest = power * log_floor
    for place, node in enumerate(reached):
        logs[place] = np.log(chances[node] + floor)
        largest = max(largest, power * logs[place])
    unreached = num_unreached * np.exp(power * log_floor - largest)
    total = unreached
    for place, node in enumerate(reached):
        slopes[node] = np.exp(power * logs[place] - largest)
        total += slopes[node]
    is_unreached = chances[answer] == 0.0
    of_score = unreached / total - is_unreached
    of_power, of_floor = of_score * log_floor, of_score * power / floor
    for place, node in enumerate(reached):
        of_score = slopes[node] / total - (node == answer)
        of_power += of_score * logs[place]
        slopes[node] = of_score * power / (chances[node] + floor)
        of_floor += slopes[node]
    loss = largest + np.log(total) - power * np.log(chances[answer] + floor)
    return loss, of_power, of_floor


@njit(cache=True)
def _losses_of(part, facts, weights, rows, max_degree, losses, gradients, states):  # type: ignore[no-untyped-def]
    preferences, mix, power, floor = weights
    of_preferences, of_mix, of_power, of_floor = gradients
    nodes, chances, slopes, logs = states
    num_relations, counts = preferences.shape[2], np.zeros(len(nodes), np.int64)
    for row in part:
        head, relation, tail = facts[row]
        query = _without_fact(head, relation, tail, num_relations, rows)
        walk = preferences[row], mix[row], rows, max_degree, nodes, counts, chances
        _walk(query, *walk)
        reached = nodes[-1, : counts[-1]]
        losses[row], of_power[row], of_floor[row] = _loss(
            tail, power[row], floor[row], reached, chances[-1], logs, slopes[-1]
        )
        of_preferences[row], of_mix[row] = _walk_back(query, *walk, slopes)
        _clear(nodes, counts, chances)


@njit(parallel=True, cache=True)
def _losses(facts, weights, rows, max_degree, losses, gradients, states):  # type: ignore[no-untyped-def]
    """Write the loss of every fact, and the gradients of all weights."""
    nodes, chances, slopes, logs = states
    num_threads = len(nodes)
    for thread in prange(num_threads):
        part = range(thread, len(facts), num_threads)
        own = nodes[thread], chances[thread], slopes[thread], logs[thread]
        _losses_of(part, facts, weights, rows, max_degree, losses, gradients, own)


@njit(cache=True)
def _add_scores_of(rows_of_batch, scores, heads, weights, rows, max_degree, coefficient):  # type: ignore[no-untyped-def]
    preferences, mix, power, floor = weights
    shape = preferences.shape[1] + 2, scores.shape[1]
    nodes, counts = np.empty(shape, np.int32), np.zeros(shape[0], np.int64)
    chances = np.zeros(shape, power.dtype)
    for row in rows_of_batch:
        query = _without_fact(heads[row], np.int64(0), np.int64(-1), preferences.shape[2], rows)
        _walk(query, preferences[row], mix[row], rows, max_degree, nodes, counts, chances)
        unreached = power[row] * np.log(floor[row])
        scores[row] += coefficient * unreached
        for node in nodes[-1, : counts[-1]]:
            score = power[row] * np.log(chances[-1, node] + floor[row])
            scores[row, node] += coefficient * (score - unreached)
        _clear(nodes, counts, chances)


@njit(parallel=True, cache=True)
def _add_scores(scores, heads, weights, rows, max_degree, coefficient, num_threads):  # type: ignore[no-untyped-def]
    for thread in prange(num_threads):
        part = range(thread, len(heads), num_threads)
        _add_scores_of(part, scores, heads, weights, rows, max_degree, coefficient)


@njit(cache=True)
def _fact_scores_of(queries, heads, starts, tails, weights, rows, max_degree, scores, num_nodes):  # type: ignore[no-untyped-def]
    preferences, mix, power, floor = weights
    shape = preferences.shape[1] + 2, num_nodes
    nodes, counts = np.empty(shape, np.int32), np.zeros(shape[0], np.int64)
    chances = np.zeros(shape, power.dtype)
    for row in queries:
        query = _without_fact(heads[row], np.int64(0), np.int64(-1), preferences.shape[2], rows)
        _walk(query, preferences[row], mix[row], rows, max_degree, nodes, counts, chances)
        for place in range(starts[row], starts[row + 1]):
            scores[place] = power[row] * np.log(chances[-1, tails[place]] + floor[row])
        _clear(nodes, counts, chances)


@njit(parallel=True, cache=True)
def _fact_scores(heads, starts, tails, weights, rows, max_degree, scores, sizes):  # type: ignore[no-untyped-def]
    num_threads, num_nodes = sizes
    for thread in prange(num_threads):
        part = range(thread, len(heads), num_threads)
        _fact_scores_of(part, heads, starts, tails, weights, rows, max_degree, scores, num_nodes)


@njit(cache=True)
def _likely_tails_of(queries, heads, walk, possible, rows, max_degree, found, best):  # type: ignore[no-untyped-def]
    preferences, mix = walk
    is_tail, known, start, number = possible
    shape = preferences.shape[0] + 2, len(is_tail)
    nodes, counts = np.empty(shape, np.int32), np.zeros(shape[0], np.int64)
    chances = np.zeros(shape, best.dtype)
    for row in queries:
        query = _without_fact(heads[row], np.int64(0), np.int64(-1), preferences.shape[1], rows)
        _walk(query, preferences, mix, rows, max_degree, nodes, counts, chances)
        for place in range(start[row], start[row] + number[row]):
            chances[-1, known[place]] = 0.0
        for node in nodes[-1, : counts[-1]]:
            chance = chances[-1, node]
            if not is_tail[node] or chance <= best[row, -1]:
                continue
            place = len(best[row]) - 1
            while place > 0 and best[row, place - 1] < chance:
                best[row, place], found[row, place] = best[row, place - 1], found[row, place - 1]
                place -= 1
            best[row, place], found[row, place] = chance, node
        _clear(nodes, counts, chances)


@njit(parallel=True, cache=True)
def _likely_tails(heads, walk, possible, rows, max_degree, found, best, num_threads):  # type: ignore[no-untyped-def]
    for thread in prange(num_threads):
        part = range(thread, len(heads), num_threads)
        _likely_tails_of(part, heads, walk, possible, rows, max_degree, found, best)
