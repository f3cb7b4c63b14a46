"""The few facts without which an answer would fall, found without training.

Candidates are the facts of head and tail, first those whose other node is near the other end, as in
Kelpie (Rossi et al., 2022). Each is taken out of the graph: tokens and vectors of the change are
computed again, path scorers do not see its edges, and the answer is ranked again. A cheap estimate
chooses which are taken out exactly; facts are then combined until the answer falls.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nodepiece.compiled import njit
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray
from nodepiece.inference.answer_rank import Outcome, RankedAnswer
from nodepiece.inference.explained import Explainable, named_fact
from nodepiece.inference.explanation import NecessaryFact

NUM_NEAR = 32  # candidates by closeness
NUM_BY_PATHS = 32  # candidates by what paths lose without them
NUM_LATER = 12  # candidates for a second fact and later ones
NUM_EXACT = 3  # combinations that are tried exactly, where estimates are uncertain
FAR = 4  # hops: as far as any node farther away


class Estimates(Protocol):
    """Cheap estimates of how an answer fares without some facts."""

    def log_shares(self, removals: Sequence[IntArray], path_losses: FloatArray) -> FloatArray:
        """The log of the answer's softmax, for each of some sets of facts."""


@dataclass(frozen=True, eq=False)
class Necessity:
    """The search for the necessary facts of one answer."""

    snapshot: Explainable
    answer: RankedAnswer
    before: Outcome
    path_losses: FloatArray | None  # (num_facts,) estimated; None: the model has no path scorers
    estimates: Estimates | None  # None: removals are all exact

    def find(self, most: int) -> tuple[tuple[NecessaryFact, ...], Outcome | None]:
        """At most so many facts, most necessary first, and the answer without all of them."""
        pool = self.candidates()
        chosen: list[int] = []
        after: Outcome | None = None
        while len(chosen) < most and len(pool):
            estimated = self.estimate([[*chosen, fact] for fact in pool.tolist()])
            pool = pool[np.argsort(estimated, kind="stable")]
            number = 1 if self.is_certain else NUM_EXACT if chosen else 2 * NUM_EXACT
            tried = [(self.outcome([*chosen, fact]), fact) for fact in pool[:number].tolist()]
            best, fact = min(tried, key=lambda pair: pair[0].log_share)
            if best.log_share >= (after or self.before).log_share:
                break
            chosen, after = [*chosen, fact], best
            if after.rank > self.before.rank:
                break
            pool = pool[pool != fact][:NUM_LATER]
        return tuple(self.necessary(fact, chosen, after) for fact in chosen), after

    @property
    def is_certain(self) -> bool:
        """Whether estimates can be trusted: they are nearly exact for vectors."""
        return self.estimates is not None and self.path_losses is None

    def outcome(self, facts: list[int]) -> Outcome:
        triples = self.snapshot.dataset.train.triples
        return self.answer.outcome(self.snapshot.without(triples[facts]))

    def necessary(self, fact: int, chosen: list[int], after: Outcome | None) -> NecessaryFact:
        alone = after if after is not None and chosen == [fact] else self.outcome([fact])
        named = named_fact(self.snapshot.dataset.names, self.snapshot.dataset.train.triples[fact])
        return NecessaryFact(named, alone.rank, alone.score)

    def estimate(self, sets: list[list[int]]) -> FloatArray:
        """How the answer fares without each of some sets of facts: lower is worse."""
        lost = np.zeros(len(sets))
        if self.path_losses is not None:
            lost = np.array([self.path_losses[facts].sum() for facts in sets])
        if self.estimates is None:
            return -lost
        triples = self.snapshot.dataset.train.triples
        return self.estimates.log_shares([triples[facts] for facts in sets], lost)

    def candidates(self) -> LongArray:
        """The positions of facts that may be necessary, likely ones first."""
        graph, answer = self.snapshot.dataset.train, self.answer
        triples, head, tail = graph.triples, answer.head, answer.tail
        of_head = (triples[:, 0] == head) | (triples[:, 2] == head)
        of_tail = (triples[:, 0] == tail) | (triples[:, 2] == tail)
        direct = answer.relation % graph.num_relations
        ends = [head, tail] if answer.relation < graph.num_relations else [tail, head]
        itself = (triples == [ends[0], direct, ends[1]]).all(axis=1)
        facts = np.flatnonzero((of_head | of_tail) & ~itself)
        order = facts[np.argsort(self.distances(facts), kind="stable")]
        if self.path_losses is None:
            return order[: NUM_NEAR + NUM_BY_PATHS]
        lost = self.path_losses[facts]
        by_paths = facts[np.argsort(-lost, kind="stable")][: int((lost > 0).sum())]
        every = np.concatenate([by_paths[:NUM_BY_PATHS], order[:NUM_NEAR]])
        first = np.unique(every, return_index=True)[1]
        return every[np.sort(first)]

    def distances(self, facts: LongArray) -> FloatArray:
        """How far the other node of each fact is from the other end; rare nodes first in a tie."""
        answer, adjacency = self.answer, self.snapshot.adjacency
        triples = self.snapshot.dataset.train.triples[facts]
        found = np.full(len(facts), float(FAR))
        other_degree = np.full(len(facts), np.inf)
        for near, far in ((answer.head, answer.tail), (answer.tail, answer.head)):
            hops = hops_from(adjacency.offsets, adjacency.neighbours, far, FAR)
            for this, that in ((0, 2), (2, 0)):
                mine = triples[:, this] == near
                other = triples[mine, that]
                found[mine] = np.minimum(found[mine], hops[other])
                degree = adjacency.degrees[other]
                other_degree[mine] = np.minimum(other_degree[mine], degree)
        return found - 1 / (1 + other_degree)


@njit(cache=True)
def hops_from(offsets, neighbours, start, most):  # type: ignore[no-untyped-def]
    """The hops from a node to every node, `most` for those as far or farther: (num_nodes,)."""
    num_nodes = len(offsets) - 1
    hops = np.full(num_nodes, most, np.int64)
    queue = np.empty(num_nodes, np.int64)
    hops[start], queue[0] = 0, start
    first, last = 0, 1
    while first < last:
        node = queue[first]
        first += 1
        if hops[node] + 1 >= most:
            break
        for position in range(offsets[node], offsets[node + 1]):
            there = neighbours[position]
            if hops[there] == most and there != start:
                hops[there] = hops[node] + 1
                queue[last] = there
                last += 1
    return hops
