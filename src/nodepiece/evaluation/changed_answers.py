"""Known answers after some facts were added and removed, without sorting all of them again."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nodepiece.evaluation.known_answers import KnownAnswers
from nodepiece.graph.arrays import IntArray, LongArray, ScalarT


def answers_after(
    known: KnownAnswers, added: IntArray, removed: IntArray, num_nodes: int
) -> KnownAnswers:
    """The known answers with some facts added and others removed, inverses included.

    added, removed: (num_facts, 3) direct facts; those to remove are known. Equal to the answers
    computed from all facts; the time is that of a copy of the arrays. num_nodes: after the change.
    """
    known = with_nodes(known, num_nodes)
    if len(removed):
        known = without_pairs(known, *pairs_of(known, removed))
    if len(added):
        known = with_pairs(known, *pairs_of(known, added))
    return known


def with_nodes(known: KnownAnswers, num_nodes: int) -> KnownAnswers:
    """The answers in a graph with more nodes; a query by two nodes is another number there."""
    if known.kind == "tails" or num_nodes == known.num_nodes:
        return replace(known, num_nodes=num_nodes)
    first, second = np.divmod(known.queries, max(1, known.num_nodes))
    return replace(known, num_nodes=num_nodes, queries=first * num_nodes + second)


def pairs_of(known: KnownAnswers, facts: IntArray) -> tuple[LongArray, IntArray]:
    """Distinct queries and answers of facts and their inverses, in ascending order."""
    head, relation, tail = facts.T
    inverse = relation + np.int32(known.num_relations)
    edges = [(head, relation, tail)]
    edges += [(tail, inverse, head)] if known.kind != "direct relations" else []
    first = np.concatenate([edge[0] for edge in edges]).astype(np.int64)
    labels, ends = (np.concatenate([edge[place] for edge in edges]) for place in (1, 2))
    second, answer = (labels, ends) if known.kind == "tails" else (ends, labels)
    query = first * known.num_second + second
    order = np.lexsort((answer, query))
    query, answer = query[order], answer[order]
    is_new = (np.diff(query, prepend=-1) != 0) | (np.diff(answer, prepend=-1) != 0)
    return query[is_new], answer[is_new].astype(np.int32)


def places_of(
    known: KnownAnswers, query: LongArray, answer: IntArray
) -> tuple[LongArray, LongArray, NDArray[np.bool_]]:
    """Row and position of each pair, where it is or would be, and whether it is there."""
    row = np.searchsorted(known.queries, query)
    is_row = values_at(known.queries, row) == query
    start = known.offsets[row]
    end = np.where(is_row, known.offsets[np.minimum(row + 1, len(known.queries))], start)
    place = np.array(
        [
            first + int(np.searchsorted(known.answers[first:last], value))
            for first, last, value in zip(
                start.tolist(), end.tolist(), answer.tolist(), strict=True
            )
        ],
        np.int64,
    )
    is_there = (place < end) & (values_at(known.answers, place) == answer)
    return row, place, is_there


def without_pairs(known: KnownAnswers, query: LongArray, answer: IntArray) -> KnownAnswers:
    _, place, is_there = places_of(known, query, answer)
    gone = place[is_there]
    answers = np.delete(known.answers, gone)
    offsets = known.offsets - np.searchsorted(gone, known.offsets)
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        return replace(
            known,
            queries=np.delete(known.queries, empty),
            offsets=np.delete(offsets, empty),
            answers=answers,
        )
    return replace(known, offsets=offsets, answers=answers)


def with_pairs(known: KnownAnswers, query: LongArray, answer: IntArray) -> KnownAnswers:
    row, place, is_there = places_of(known, query, answer)
    row, place = row[~is_there], place[~is_there]
    query, answer = query[~is_there], answer[~is_there]
    is_row = values_at(known.queries, row) == query
    is_first = (np.diff(query, prepend=-1) != 0) & ~is_row  # of a new query
    answers = np.insert(known.answers, place, answer)
    # Where a row starts: after all that was inserted into earlier rows, which are those of
    # smaller queries.
    queries = np.insert(known.queries, row[is_first], query[is_first])
    starts = np.insert(known.offsets[:-1], row[is_first], known.offsets[row[is_first]])
    earlier = np.searchsorted(query, queries)
    offsets = np.append(starts + earlier, len(answers))
    return replace(known, queries=queries, offsets=offsets, answers=answers)


def values_at(values: NDArray[ScalarT], places: LongArray) -> NDArray[ScalarT]:
    """The values at some places; after the end, the last one, or -1 if there are none."""
    if not len(values):
        return np.full(len(places), -1, values.dtype)
    return values.take(places, mode="clip")
