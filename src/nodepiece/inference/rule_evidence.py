"""How strongly the facts of two nodes support a fact, by rules that hold in the graph.

A rule is what other nodes of the graph show: of all x with (x, r', u) and some (x, r, ?), how many
have (x, r, t)? A fact that the strongest rules are grounded in is one that a model, trained again
without it, misses too, as deletions chosen by rules show (Betz et al., 2022). Four kinds of rules,
for a fact (h, r, t):

    r(x, t) <- r'(x, u)            grounded in a fact (h, r', u), in either direction
    r(h, y) <- r'(y, v)            grounded in a fact (t, r', v), in either direction
    r(x, y) <- r'(x, y)            grounded in a fact between h and t, in either direction
    r(x, y) <- r'(x, z), r''(z, y) grounded in two facts, h - z and z - t

The confidence of a rule is (true cases + PRIOR * share) / (all cases + PRIOR), where `share` is
that of t among all x with some (x, r, ?): a rule with few cases says little more than that. A rule
adds to the odds of the fact what the odds of its confidence exceed those of the share by, and
nothing if they do not. The case of the fact itself does not count. In a large graph the cases of
the last two kinds are counted from the first heads only (`Support.is_limited`).
"""

from dataclasses import dataclass

import numpy as np

from nodepiece.compiled import njit
from nodepiece.graph.adjacency import Adjacency
from nodepiece.graph.arrays import FloatArray, LongArray

PRIOR = 5.0  # cases in which a rule is true as often as without it
MAX_CONFIDENCE = 0.99  # and the largest share
MAX_HEADS = 200  # from which the cases of a rule of two variables are counted
MAX_CASES = 5000  # after which no other head is taken


@dataclass(frozen=True, eq=False)
class Support:
    """What rules add to the odds of a fact, by the facts that they are grounded in.

    Rules of the same kind say much the same: what they add is summed up. Those of the head, those
    of the tail and those of paths are different evidence: their odds are multiplied.
    """

    facts: LongArray  # (num_own,) positions of the facts of head and tail, ascending
    of_facts: FloatArray  # (2, num_own) by rules that one fact grounds: of the head, of the tail
    paths: LongArray  # (num_paths, 2) places in `facts`
    of_paths: FloatArray  # (num_paths,) by rules that two facts ground together
    is_limited: bool = False  # some rules have more cases than were counted

    def log_odds(self, gone: LongArray) -> float:
        """What rules add to the log of the odds without some facts, by position."""
        of_facts, of_paths = self._left(gone)
        return float(np.log1p(of_facts.sum(axis=1)).sum() + np.log1p(of_paths.sum()))

    def losses(self, gone: LongArray) -> FloatArray:
        """(num_own,) what each fact adds to `log_odds`, where some are gone already."""
        of_facts, of_paths = self._left(gone)
        by_path = np.zeros_like(of_facts[:1])
        for column in self.paths.T:
            by_path = by_path + np.bincount(column, of_paths, by_path.shape[1])
        every = np.concatenate([of_facts, by_path])  # (3, num_own)
        totals = np.array([*of_facts.sum(axis=1), of_paths.sum()])[:, None]
        lost: FloatArray = np.log1p(totals) - np.log1p((totals - every).clip(min=0.0))
        return lost.sum(axis=0)

    def _left(self, gone: LongArray) -> tuple[FloatArray, FloatArray]:
        is_gone = np.isin(self.facts, gone)
        of_paths = np.where(is_gone[self.paths].any(axis=1), 0.0, self.of_paths)
        return np.where(is_gone, 0.0, self.of_facts), of_paths


def rule_support(
    adjacency: Adjacency,
    head: int,
    relation: int,
    tail: int,
    facts_of: tuple[LongArray, LongArray],
) -> Support:
    """What the rules that are grounded in facts of head and tail add.

    relation: maybe an inverse. facts_of: the positions of the facts that the edges of head and of
    tail are, in the order of the edges.
    """
    num_direct = adjacency.num_relations // 2
    inverse = (relation + num_direct) % (2 * num_direct)
    arrays = (adjacency.offsets, adjacency.neighbours, adjacency.relations)
    marks = np.zeros(adjacency.num_nodes, np.bool_)
    shares, of_edges = [], []
    for node, kind, answer in ((head, relation, tail), (tail, inverse, head)):
        has_kind = _nodes_with(arrays, kind)
        others = _number_of(arrays, answer, (kind + num_direct) % (2 * num_direct), node)
        shares.append(min((others + 0.1) / (has_kind.sum() + 1.0), MAX_CONFIDENCE))
        fact = (node, kind, answer)
        of_edges.append(_by_constants(arrays, fact, num_direct, shares[-1], has_kind, marks))
    ends = (head, relation, tail)
    paths, of_paths, is_limited = _by_paths(arrays, ends, num_direct, shares[0], marks, of_edges[0])
    facts, place = np.unique(np.concatenate(facts_of), return_inverse=True)
    num_edges = len(of_edges[0])  # of the head
    sides = zip(np.split(place, [num_edges]), of_edges, strict=True)
    of_facts = np.stack([np.bincount(own, added, len(facts)) for own, added in sides]).astype(float)
    paths[:, 1] += num_edges
    return Support(facts, of_facts, place[paths], of_paths, is_limited)


@njit(cache=True)
def _nodes_with(edges, kind):  # type: ignore[no-untyped-def]
    """(num_nodes,) whether each node has an edge of a relation."""
    offsets, _, relations = edges
    result = np.zeros(len(offsets) - 1, np.bool_)
    for node in range(len(offsets) - 1):
        for place in range(offsets[node], offsets[node + 1]):
            if relations[place] == kind:
                result[node] = True
                break
    return result


@njit(cache=True)
def _number_of(edges, node, kind, other):  # type: ignore[no-untyped-def]
    """The number of edges of a node with a relation that lead elsewhere than to `other`."""
    offsets, neighbours, relations = edges
    result = 0
    for place in range(offsets[node], offsets[node + 1]):
        result += relations[place] == kind and neighbours[place] != other
    return result


@njit(cache=True)
def _added(true, cases, share):  # type: ignore[no-untyped-def]
    """By how much a rule raises the odds, as a factor less 1."""
    confidence = min((true + PRIOR * share) / (cases + PRIOR), MAX_CONFIDENCE)
    factor = confidence / (1.0 - confidence) * (1.0 - share) / share
    return max(0.0, factor - 1.0)


@njit(cache=True)
def _by_constants(edges, fact, num_direct, share, has_kind, marks):  # type: ignore[no-untyped-def]
    """What r(x, answer) <- r'(x, u) adds, for every edge (node, r', u): (num_edges,).

    has_kind: nodes with some (x, r, ?). marks: all False, and left so.
    """
    offsets, neighbours, relations = edges
    node, kind, answer = fact
    back = (kind + num_direct) % (2 * num_direct)
    for place in range(offsets[answer], offsets[answer + 1]):
        if relations[place] == back and neighbours[place] != node:
            marks[neighbours[place]] = True
    start, end = offsets[node], offsets[node + 1]
    result = np.zeros(end - start)
    for place in range(start, end):
        other = neighbours[place]
        towards = (relations[place] + num_direct) % (2 * num_direct)
        if other == answer and relations[place] == kind:
            continue  # the fact itself
        cases, true = 0, 0
        for step in range(offsets[other], offsets[other + 1]):
            x = neighbours[step]
            if relations[step] == towards and x != node and has_kind[x]:
                cases += 1
                true += marks[x]
        result[place - start] = _added(true, cases, share)
    for place in range(offsets[answer], offsets[answer + 1]):
        marks[neighbours[place]] = False
    return result


@njit(cache=True)
def _by_paths(edges, fact, num_direct, share, marks, of_head):  # type: ignore[no-untyped-def]
    """What rules without constants add: those of one fact to `of_head`, those of two as paths.

    Returns (num_paths, 2) places among the edges of head and of tail, (num_paths,), and whether a
    rule has more cases than those of MAX_HEADS heads, or than MAX_CASES.
    """
    offsets, neighbours, relations = edges
    head, relation, tail = fact
    num_relations = 2 * num_direct
    # Which relations lead from each neighbour to the tail: the edges of the tail, by neighbour.
    order = np.argsort(neighbours[offsets[tail] : offsets[tail + 1]])
    sorted_other = neighbours[offsets[tail] : offsets[tail + 1]][order]
    # What was counted already, by relations of the head and of the tail; last column: alone.
    of_first = np.unique(relations[offsets[head] : offsets[head + 1]])
    of_back = np.unique(relations[offsets[tail] : offsets[tail + 1]])
    known = np.full((len(of_first), len(of_back) + 1), -1.0)
    paths, of_paths = np.empty((64, 2), np.int64), np.empty(64)
    number, is_limited = 0, False
    for place in range(offsets[head], offsets[head + 1]):
        first, middle = relations[place], neighbours[place]
        row = np.searchsorted(of_first, first)
        if middle == tail and first != relation:
            if known[row, -1] < 0.0:
                cases, true, is_cut = _cases(edges, fact, first, -1, marks)
                is_limited |= is_cut
                known[row, -1] = _added(true, cases, share)
            of_head[place - offsets[head]] += known[row, -1]
        at = np.searchsorted(sorted_other, middle)
        while at < len(sorted_other) and sorted_other[at] == middle:
            back = order[at]
            at += 1
            if middle in (head, tail):
                continue
            column = np.searchsorted(of_back, relations[offsets[tail] + back])
            if known[row, column] < 0.0:
                second = (relations[offsets[tail] + back] + num_direct) % num_relations
                cases, true, is_cut = _cases(edges, fact, first, second, marks)
                is_limited |= is_cut
                known[row, column] = _added(true, cases, share)
            if known[row, column] > 0.0:
                if number == len(of_paths):
                    paths = np.concatenate((paths, np.empty_like(paths)))
                    of_paths = np.concatenate((of_paths, np.empty_like(of_paths)))
                paths[number] = (place - offsets[head], back)
                of_paths[number] = known[row, column]
                number += 1
    return paths[:number].copy(), of_paths[:number].copy(), is_limited


@njit(cache=True)
def _cases(edges, fact, first, second, marks):  # type: ignore[no-untyped-def]
    """The cases of r(x, y) <- first(x, y), or <- first(x, z), second(z, y), and the true ones.

    The last result: whether there are heads whose cases were not counted.
    """
    offsets, neighbours, relations = edges
    head, relation, _ = fact
    cases, true, seen = 0, 0, 0
    # Start from nodes that have `first`: those on the other side of the head's edges along it.
    for node in range(len(offsets) - 1):
        if node == head:
            continue
        has_first = False
        for place in range(offsets[node], offsets[node + 1]):
            if relations[place] == first:
                has_first = True
                break
        if not has_first:
            continue
        if seen >= MAX_HEADS or cases >= MAX_CASES:
            return cases, true, True
        seen += 1
        for place in range(offsets[node], offsets[node + 1]):
            if relations[place] == relation:
                marks[neighbours[place]] = True
        for place in range(offsets[node], offsets[node + 1]):
            if relations[place] != first:
                continue
            middle = neighbours[place]
            if second < 0:
                cases += 1
                true += marks[middle]
                continue
            for step in range(offsets[middle], offsets[middle + 1]):
                if relations[step] == second and neighbours[step] != node:
                    cases += 1
                    true += marks[neighbours[step]]
        for place in range(offsets[node], offsets[node + 1]):
            marks[neighbours[place]] = False
    return cases, true, False
