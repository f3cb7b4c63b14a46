"""Known answers after some facts were added and removed, without a copy of all of them."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nodepiece.evaluation.known_answers import KnownAnswers, with_stride
from nodepiece.graph.arrays import IntArray, LongArray


@dataclass(frozen=True, eq=False, kw_only=True)
class ChangedAnswers(KnownAnswers):
    """Known answers of which some queries have other answers than in the arrays.

    The time and the memory of a change grow with the answers of its queries, and with the number
    of queries that were changed before, not with all facts.
    """

    changed: LongArray  # (num_changed,) queries, ascending
    own_offsets: LongArray  # (num_changed + 1,) where the answers of a changed query start
    own_answers: IntArray  # (num_own,) ascending and distinct within a query

    def find(
        self, first: NDArray[np.integer], second: NDArray[np.integer]
    ) -> tuple[LongArray, LongArray]:
        start, number = super().find(first, second)
        query = first.astype(np.int64) * self.num_second + second
        place = np.searchsorted(self.changed, query)
        is_changed = np.append(self.changed, -1)[place] == query
        own = place[is_changed]
        start[is_changed] = len(self.answers) + self.own_offsets[own]
        number[is_changed] = self.own_offsets[own + 1] - self.own_offsets[own]
        return start, number

    def only_of(self, start: LongArray, number: LongArray) -> tuple[LongArray, IntArray]:
        return self._gathered(start, number)

    def answers_at(self, positions: LongArray) -> IntArray:
        is_own = positions >= len(self.answers)
        found = np.empty(len(positions), np.int32)
        found[~is_own] = self.answers[positions[~is_own]]
        found[is_own] = self.own_answers[positions[is_own] - len(self.answers)]
        return found


def answers_after(
    known: KnownAnswers, added: IntArray, removed: IntArray, num_nodes: int
) -> KnownAnswers:
    """The known answers with some facts added and others removed, inverses included.

    added, removed: (num_facts, 3) direct facts. The answers are those computed from all facts.
    num_nodes: after the change.
    """
    known = with_nodes(known, num_nodes)
    if not len(added) and not len(removed):
        return known
    steps: dict[int, dict[int, bool]] = {}  # of each query, whether an answer is added
    for facts, is_added in ((removed, False), (added, True)):
        for first, second, answer in edges_of(known, facts).tolist():
            steps.setdefault(first * known.num_second + second, {})[answer] = is_added
    rows = {
        query: row_after(known_answers(known, *divmod(query, known.num_second)), step)
        for query, step in steps.items()
    }
    return with_rows(known, rows)


def row_after(before: IntArray, steps: dict[int, bool]) -> IntArray:
    """Ascending answers, with some added and others removed; there may be millions of them."""
    touched = np.array(sorted(steps), np.int32)
    place = np.searchsorted(before, touched)
    is_there = np.append(before, -1)[place] == touched
    left = np.delete(before, place[is_there])
    added = touched[[steps[answer] for answer in touched.tolist()]]
    return np.insert(left, np.searchsorted(left, added), added)


def with_nodes(known: KnownAnswers, num_nodes: int) -> KnownAnswers:
    """The answers in a graph with more nodes.

    A query by two nodes is another number there, if the numbers had no space for these nodes.
    """
    if known.kind == "tails" or num_nodes <= known.num_second:
        return replace(known, num_nodes=num_nodes)
    stride = with_stride(num_nodes)

    def renumbered(queries: LongArray) -> LongArray:
        first, second = np.divmod(queries, max(1, known.num_second))
        return first * stride + second

    queries = renumbered(known.queries)
    if isinstance(known, ChangedAnswers):
        known = replace(known, changed=renumbered(known.changed))
    return replace(known, num_nodes=num_nodes, stride=stride, queries=queries)


def edges_of(known: KnownAnswers, facts: IntArray) -> LongArray:
    """(num_edges, 3): first and second part of a query, and answer, of facts and inverses."""
    head, relation, tail = facts.astype(np.int64).T
    edges = [(head, relation, tail)]
    if known.kind != "direct relations":
        edges.append((tail, relation + known.num_relations, head))
    order = (0, 1, 2) if known.kind == "tails" else (0, 2, 1)
    parts = [np.stack([edge[place] for place in order], axis=1) for edge in edges]
    return np.concatenate(parts)


def known_answers(known: KnownAnswers, first: int, second: int) -> IntArray:
    """The answers to one query, ascending."""
    (start,), (number,) = known.find(np.array([first]), np.array([second]))
    return known.answers_at(np.arange(start, start + number))


def with_rows(known: KnownAnswers, rows: dict[int, IntArray]) -> ChangedAnswers:
    """The known answers with those of some queries replaced, by ascending ones."""
    nothing = np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.int32)
    before = (
        (known.changed, known.own_offsets, known.own_answers)
        if isinstance(known, ChangedAnswers)
        else nothing
    )
    new = np.array(sorted(rows), np.int64)
    answers = [rows[query] for query in new.tolist()]
    queries = np.concatenate([before[0], new])
    counts = np.concatenate([np.diff(before[1]), [len(each) for each in answers]]).astype(np.int64)
    # Of a query that was changed before, the last row counts.
    distinct, from_end = np.unique(queries[::-1], return_index=True)
    last = len(queries) - 1 - from_end
    starts = np.cumsum(counts) - counts
    values = np.concatenate([before[2], *answers])
    number = counts[last]
    offsets = np.concatenate([[0], np.cumsum(number)]).astype(np.int64)
    positions = np.repeat(starts[last] - offsets[:-1], number) + np.arange(int(offsets[-1]))
    return ChangedAnswers(
        known.kind,
        known.num_nodes,
        known.num_relations,
        known.queries,
        known.offsets,
        known.answers,
        known.stride,
        changed=distinct,
        own_offsets=offsets,
        own_answers=values[positions],
    )
