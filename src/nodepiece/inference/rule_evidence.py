"""How strongly the facts of two nodes support a fact, by rules that hold in the graph.

A rule is what other nodes of the graph show: of all x with (x, r', u), how many have (x, r, t)? Its
confidence is (true cases) / (all cases + PRIOR), as in AnyBURL (Meilicke et al., 2019). A fact that
the strongest rules are grounded in is one that a model, trained again without it, misses too, as
deletions chosen by rules show (Betz et al., 2022). Three kinds of rules, for a fact (h, r, t):

    r(x, t) <- r'(x, u)            grounded in a fact (h, r', u), in either direction
    r(h, y) <- r'(y, v)            grounded in a fact (t, r', v), in either direction
    r(x, y) <- r'(x, y)            grounded in a fact between h and t, in either direction
    r(x, y) <- r'(x, z), r''(z, y) grounded in two facts, h - z and z - t

The case of the fact itself does not count.
"""

from dataclasses import dataclass

import numpy as np

from nodepiece.compiled import njit
from nodepiece.graph.adjacency import Adjacency
from nodepiece.graph.arrays import FloatArray

PRIOR = 5.0  # cases that no rule has, so that rules with few cases have low confidence
MAX_CASES = 200  # heads from which the cases of a rule of two variables are counted


@dataclass(frozen=True, eq=False)
class Support:
    """The confidences of rules, for the edges of head and of tail."""

    of_head: FloatArray  # (degree of the head,) for each of its edges, in the order of `adjacency`
    of_tail: FloatArray  # (degree of the tail,)


def rule_support(adjacency: Adjacency, head: int, relation: int, tail: int) -> Support:
    """The largest confidence of a rule that is grounded in each edge of head and tail.

    relation: maybe an inverse.
    """
    num_direct = adjacency.num_relations // 2
    inverse = (relation + num_direct) % (2 * num_direct)
    arrays = (adjacency.offsets, adjacency.neighbours, adjacency.relations)
    marks = np.zeros(adjacency.num_nodes, np.bool_)
    of_head = _by_constants(arrays, head, tail, inverse, num_direct, marks)
    of_tail = _by_constants(arrays, tail, head, relation, num_direct, marks)
    _by_paths(arrays, (head, relation, tail), num_direct, marks, of_head, of_tail)
    return Support(of_head, of_tail)


@njit(cache=True)
def _by_constants(edges, node, answer, back, num_direct, marks):  # type: ignore[no-untyped-def]
    """Confidences of r(x, answer) <- r'(x, u) for every edge (node, r', u).

    back: the relation from `answer` to the x that have it. marks: all False, and left so.
    """
    offsets, neighbours, relations = edges
    for place in range(offsets[answer], offsets[answer + 1]):
        if relations[place] == back and neighbours[place] != node:
            marks[neighbours[place]] = True
    start, end = offsets[node], offsets[node + 1]
    result = np.zeros(end - start)
    for place in range(start, end):
        other = neighbours[place]
        towards = (relations[place] + num_direct) % (2 * num_direct)
        if other == answer and relations[place] == (back + num_direct) % (2 * num_direct):
            continue  # the fact itself
        cases, true = 0, 0
        for step in range(offsets[other], offsets[other + 1]):
            if relations[step] == towards and neighbours[step] != node:
                cases += 1
                true += marks[neighbours[step]]
        result[place - start] = true / (cases + PRIOR)
    for place in range(offsets[answer], offsets[answer + 1]):
        marks[neighbours[place]] = False
    return result


@njit(cache=True)
def _by_paths(edges, fact, num_direct, marks, of_head, of_tail):  # type: ignore[no-untyped-def]
    """Raise confidences to those of rules without constants, of one fact or of two.

    The cases of a rule are counted from up to MAX_CASES heads of its relation.
    """
    offsets, neighbours, relations = edges
    head, relation, tail = fact
    num_relations = 2 * num_direct
    # Which relations lead from each neighbour to the tail: the edges of the tail, by neighbour.
    order = np.argsort(neighbours[offsets[tail] : offsets[tail + 1]])
    sorted_other = neighbours[offsets[tail] : offsets[tail + 1]][order]
    # Confidences that were counted, of relations of the head and of the tail; last column: alone.
    of_first = np.unique(relations[offsets[head] : offsets[head + 1]])
    of_back = np.unique(relations[offsets[tail] : offsets[tail + 1]])
    known = np.full((len(of_first), len(of_back) + 1), -1.0)
    for place in range(offsets[head], offsets[head + 1]):
        first, middle = relations[place], neighbours[place]
        row = np.searchsorted(of_first, first)
        if middle == tail and first != relation:
            if known[row, -1] < 0.0:
                known[row, -1] = _confidence(edges, fact, first, -1, num_direct, marks)
            found = known[row, -1]
            of_head[place - offsets[head]] = max(of_head[place - offsets[head]], found)
            for back in range(offsets[tail], offsets[tail + 1]):
                is_same = neighbours[back] == head
                if is_same and relations[back] == (first + num_direct) % num_relations:
                    of_tail[back - offsets[tail]] = max(of_tail[back - offsets[tail]], found)
        at = np.searchsorted(sorted_other, middle)
        while at < len(sorted_other) and sorted_other[at] == middle:
            back = order[at]
            at += 1
            if middle in (head, tail):
                continue
            column = np.searchsorted(of_back, relations[offsets[tail] + back])
            if known[row, column] < 0.0:
                second = (relations[offsets[tail] + back] + num_direct) % num_relations
                known[row, column] = _confidence(edges, fact, first, second, num_direct, marks)
            found = known[row, column]
            of_head[place - offsets[head]] = max(of_head[place - offsets[head]], found)
            of_tail[back] = max(of_tail[back], found)


@njit(cache=True)
def _confidence(edges, fact, first, second, num_direct, marks):  # type: ignore[no-untyped-def]
    """The confidence of r(x, y) <- first(x, y), or <- first(x, z), second(z, y)."""
    offsets, neighbours, relations = edges
    head, relation, _ = fact
    cases, true, seen = 0, 0, 0
    # Start from nodes that have `first`: those on the other side of the head's edges along it.
    for node in range(len(offsets) - 1):
        if seen >= MAX_CASES:
            break
        if node == head:
            continue
        has_first = False
        for place in range(offsets[node], offsets[node + 1]):
            if relations[place] == first:
                has_first = True
                break
        if not has_first:
            continue
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
    return true / (cases + PRIOR)
