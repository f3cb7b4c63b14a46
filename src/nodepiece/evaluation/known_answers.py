"""The known answers that filtered ranking leaves out."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nodepiece.graph.arrays import IntArray, LongArray, read_only
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses

Kind = Literal["tails", "relations", "direct relations"]


@dataclass(frozen=True, eq=False)
class KnownAnswers:
    """The known tails of (head, relation), or relations of (head, tail), as compressed sparse rows.

    Facts count with their inverses, except for "direct relations". Every query with an answer is
    one row; a query is one number, first id * num_second + second id.
    """

    kind: Kind
    num_nodes: int
    num_relations: int  # without inverses
    queries: LongArray  # (num_queries,) ascending
    offsets: LongArray  # (num_queries + 1,) where the answers of a query start
    answers: IntArray  # (num_answers,) ascending and distinct within a query
    stride: int = 0  # of the numbers of queries by two nodes; 0: num_nodes

    def __post_init__(self) -> None:
        for name in ("queries", "offsets", "answers"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def num_second(self) -> int:
        """The number of ids that the second part of a query may have."""
        return 2 * self.num_relations if self.kind == "tails" else self.stride or self.num_nodes

    @property
    def num_candidates(self) -> int:
        sizes = {"tails": self.num_nodes, "relations": 2 * self.num_relations}
        return sizes.get(self.kind, self.num_relations)

    def find(
        self, first: NDArray[np.integer], second: NDArray[np.integer]
    ) -> tuple[LongArray, LongArray]:
        """The position in `answers` and the number of answers of each query; (batch,) each."""
        query = first.astype(np.int64) * self.num_second + second
        row = np.searchsorted(self.queries, query)
        start = self.offsets[row]
        end = self.offsets[np.minimum(row + 1, len(self.queries))]
        is_known = end > start  # no row is empty, so false for those behind the last one
        is_known[is_known] = self.queries[row[is_known]] == query[is_known]
        return start, np.where(is_known, end - start, 0)

    def answers_at(self, positions: LongArray) -> IntArray:
        """The answers at some positions of `find`."""
        return self.answers[positions]

    def only_of(self, start: LongArray, number: LongArray) -> tuple[LongArray, IntArray]:
        """Positions and answers of some queries of `find`, in an array of all answers or of these.

        These alone are few where there are few queries; many queries may share their answers.
        """
        if int(number.sum()) >= len(self.answers):
            return start, self.answers
        return self._gathered(start, number)

    def _gathered(self, start: LongArray, number: LongArray) -> tuple[LongArray, IntArray]:
        first = np.cumsum(number) - number
        positions = np.repeat(start - first, number) + np.arange(int(number.sum()))
        return first, self.answers_at(positions)

    def contains(self, triples: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Whether each of (num_facts, 3) is known; of tails, with relations or inverses."""
        start, number = self.find(triples[:, 0], triples[:, 1])
        row = np.repeat(np.arange(len(triples)), number)
        is_answer = self._gathered(start, number)[1] == triples[row, 2]
        result = np.zeros(len(triples), np.bool_)
        result[row[is_answer]] = True
        return result


def with_stride(num_nodes: int) -> int:
    """A stride for the numbers of queries by two nodes, with space for nodes that are added."""
    return num_nodes + num_nodes // 8 + 1024


def known_tails(triples: IntArray, num_nodes: int, num_relations: int) -> KnownAnswers:
    """The tails of (head, relation), inverse relations included: the filter of `rank_links`."""
    graph = KnowledgeGraph(triples, num_nodes, num_relations)
    return known_tails_of(with_inverses(graph), num_nodes, num_relations)


def known_tails_of(edges: IntArray, num_nodes: int, num_relations: int) -> KnownAnswers:
    """The tails of edges, without inverses; their heads need not be nodes of the graph."""
    head, relation, tail = edges.T
    rows = _compress(head.astype(np.int64) * (2 * num_relations) + relation, tail, num_nodes)
    return KnownAnswers("tails", num_nodes, num_relations, *rows)


def known_relations(
    triples: IntArray, num_nodes: int, num_relations: int, *, direct_only: bool = False
) -> KnownAnswers:
    """The relations of (head, tail): the filter of `rank_relations`.

    The published ranking has all 2 * num_relations as candidates; `direct_only` leaves the
    inverses out, of the candidates and of the filter.
    """
    graph = KnowledgeGraph(triples, num_nodes, num_relations)
    head, relation, tail = (graph.triples if direct_only else with_inverses(graph)).T
    rows = _compress(head.astype(np.int64) * num_nodes + tail, relation, 2 * num_relations)
    kind: Kind = "direct relations" if direct_only else "relations"
    return KnownAnswers(kind, num_nodes, num_relations, *rows)


def _compress(
    query: LongArray, answer: IntArray, num_candidates: int
) -> tuple[LongArray, LongArray, IntArray]:
    """Sort and make distinct the pairs (query, answer): distinct queries, offsets, answers.

    A pair is sorted as one number where that fits into 63 bits, which is much faster.
    """
    if query.size and int(query.max()) < 2**63 // max(1, num_candidates) - 1:
        pair = np.sort(query * num_candidates + answer)
        query, remainder = np.divmod(pair, max(1, num_candidates))
        answer = remainder.astype(np.int32)
    else:
        order = np.lexsort((answer, query))
        query, answer = query[order], answer[order]
    is_new_query = np.diff(query, prepend=-1) != 0
    is_new = is_new_query | (np.diff(answer, prepend=-1) != 0)
    starts = np.flatnonzero(is_new_query[is_new])
    query, answer = query[is_new], answer[is_new]
    return query[starts], np.append(starts, len(query)), answer
