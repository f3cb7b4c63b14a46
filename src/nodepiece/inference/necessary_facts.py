"""The few facts without which an answer would fall, found without training.

Candidates are facts of head and tail: those that rules of the graph support the answer with
(`rule_evidence.py`), those that paths follow, and those whose other node is near the other end, as
in Kelpie (Rossi et al., 2022). Each is taken out of the graph: tokens and vectors of the change are
computed again, path scorers do not follow its edges, and the answer is ranked again.

A model may depend on a fact that is no evidence, for example because it makes an anchor near: when
it is trained again without the fact, it makes up for it. And where several facts are evidence for
the same, a model that is trained again without one uses the others. So each fact is evaluated by
what the model loses without it and by what rules lose, given the facts that are taken out already.
A cheap estimate chooses which facts are taken out exactly. Facts are combined until the answer
falls and the rules that are left no longer support it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from nodepiece.compiled import njit
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray
from nodepiece.inference.answer_rank import Outcome, RankedAnswer
from nodepiece.inference.explained import Explainable, named_fact
from nodepiece.inference.explanation import NecessaryFact
from nodepiece.inference.rule_evidence import MAX_CASES, MAX_HEADS, Support, rule_support

NUM_BY_RULES = 40  # candidates by the support of rules
NUM_NEAR = 12  # candidates by closeness
NUM_BY_PATHS = 32  # candidates by what paths lose without them
NUM_LATER = 16  # candidates for a second fact and later ones
NUM_EXACT = 2  # combinations that are tried exactly, where estimates are uncertain
MIN_SUPPORT = 1e-3  # of a fact that no rule is grounded in
ENOUGH = 0.02  # of the log of the answer's softmax that a fact takes away, by vectors alone
ENOUGH_BY_PATHS = 3.0  # the same with path scorers, which follow edges and not pieces
FALLEN = 2  # ranks that an answer falls before no more facts are taken out
UNSUPPORTED = np.log(4.0)  # that the log of the odds by rules falls by before that, or all of it
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
    outcomes: dict[frozenset[int], Outcome] = field(default_factory=dict)  # by positions of facts

    def find(self, most: int) -> tuple[tuple[NecessaryFact, ...], Outcome | None]:
        """At most so many facts, most necessary first, and the answer without all of them.

        If no such facts make the answer fall, they are those that lower it most.
        """
        pool, _ = self.candidates
        chosen: list[int] = []
        after = self.before
        while len(chosen) < most and len(pool) and not self.is_enough(chosen, after):
            gain = self.gains(self.estimate(chosen, pool, after), pool, chosen)
            order = np.argsort(-gain, kind="stable")
            pool = pool[order[gain[order] > 0]] if self.is_certain else pool[order]
            number = 1 if self.is_certain else NUM_EXACT if chosen else 2 * NUM_EXACT
            tried = [(self.outcome([*chosen, fact]), fact) for fact in pool[:number].tolist()]
            if not tried:
                break
            lost = np.array([after.log_share - outcome.log_share for outcome, _ in tried])
            gain = np.where(lost > 0, self.gains(lost, pool[: len(tried)], chosen), 0.0)
            if not gain.any():
                break
            after, fact = tried[int(gain.argmax())]
            chosen = [*chosen, fact]
            pool = pool[pool != fact][:NUM_LATER]
        if not chosen:
            return (), None
        return tuple(self.necessary(fact, chosen, after) for fact in chosen), after

    def is_enough(self, chosen: list[int], after: Outcome) -> bool:
        """Whether the answer falls without the chosen facts, and rules hardly support it then."""
        if after.rank < self.before.rank + FALLEN:
            return False
        before, left = (self.support.log_odds(np.array(gone)) for gone in ([], chosen))
        return left <= max(before - UNSUPPORTED, before / 4)

    def gains(self, lost: FloatArray, facts: LongArray, chosen: list[int]) -> FloatArray:
        """How much each fact is a reason, by what the model and what rules lose without it.

        Vectors alone may lose something without being any the worse after another training, so
        there a loss only has to be large enough, and the rest is the support of rules.
        """
        support = self.support
        by_rules = support.losses(np.array(chosen, np.int64))
        gain = by_rules[np.searchsorted(support.facts, facts)] + MIN_SUPPORT
        if self.path_losses is None:
            return lost.clip(0, ENOUGH) / ENOUGH * gain
        return lost.clip(0, ENOUGH_BY_PATHS) + gain

    @cached_property
    def support(self) -> Support:
        """How strongly rules of the graph support the answer with each fact of its nodes."""
        answer = self.answer
        facts_of = (self.facts_of_edges(answer.head), self.facts_of_edges(answer.tail))
        adjacency = self.snapshot.adjacency
        return rule_support(adjacency, answer.head, answer.relation, answer.tail, facts_of)

    def facts_of_edges(self, node: int) -> LongArray:
        """The positions of the facts that the edges of a node are, in the order of its edges.

        An adjacency has the edges of a node in the order of the facts; a fact from a node to itself
        is two edges.
        """
        heads, _, tails = self.snapshot.dataset.train.triples.T
        mine = np.flatnonzero((heads == node) | (tails == node))
        return np.repeat(mine, 1 + (heads[mine] == tails[mine]))

    @property
    def is_certain(self) -> bool:
        """Whether estimates can be trusted: they are nearly exact for vectors."""
        return self.estimates is not None and self.path_losses is None

    def outcome(self, facts: list[int]) -> Outcome:
        """The answer without some facts, computed once for each set of facts."""
        key = frozenset(facts)
        if key not in self.outcomes:
            triples = self.snapshot.dataset.train.triples
            self.outcomes[key] = self.answer.outcome(self.snapshot.without(triples[facts]))
        return self.outcomes[key]

    def necessary(self, fact: int, chosen: list[int], after: Outcome) -> NecessaryFact:
        alone = after if chosen == [fact] else self.outcome([fact])
        named = named_fact(self.snapshot.dataset.names, self.snapshot.dataset.train.triples[fact])
        return NecessaryFact(named, alone.rank, alone.score)

    def estimate(self, chosen: list[int], pool: LongArray, after: Outcome) -> FloatArray:
        """What the answer loses, estimated, with each fact of a pool taken out beside others."""
        if self.estimates is None:
            return np.ones(len(pool)) if self.path_losses is None else self.path_losses[pool]
        sets = [[*chosen, fact] for fact in pool.tolist()]
        lost = np.zeros(len(sets))
        if self.path_losses is not None:
            lost = np.array([self.path_losses[facts].sum() for facts in sets])
        triples = self.snapshot.dataset.train.triples
        found = self.estimates.log_shares([triples[facts] for facts in sets], lost)
        return after.log_share - found

    def limits(self) -> tuple[str, ...]:
        """Which limits the search reached, a sentence each."""
        pool, num_facts = self.candidates
        reached = []
        if len(pool) < num_facts:
            reached.append(
                f"of the {num_facts:,} facts of the two nodes, the {len(pool):,} likeliest ones "
                "were taken out"
            )
        if self.support.is_limited:
            reached.append(
                f"the cases of rules were counted from {MAX_HEADS:,} heads, or up to "
                f"{MAX_CASES:,} cases; the graph has more"
            )
        return tuple(reached)

    @cached_property
    def candidates(self) -> tuple[LongArray, int]:
        """The positions of facts that may be necessary, and the number of all facts of the nodes.

        The fact itself is none of them.
        """
        graph, answer = self.snapshot.dataset.train, self.answer
        triples, head, tail = graph.triples, answer.head, answer.tail
        of_head = (triples[:, 0] == head) | (triples[:, 2] == head)
        of_tail = (triples[:, 0] == tail) | (triples[:, 2] == tail)
        direct = answer.relation % graph.num_relations
        ends = [head, tail] if answer.relation < graph.num_relations else [tail, head]
        itself = (triples == [ends[0], direct, ends[1]]).all(axis=1)
        facts = np.flatnonzero((of_head | of_tail) & ~itself)
        near = facts[np.argsort(self.distances(facts), kind="stable")]
        own = self.support
        lost = own.losses(np.empty(0, np.int64))[np.searchsorted(own.facts, facts)]
        by_rules = facts[np.argsort(-lost, kind="stable")]
        every = [by_rules[:NUM_BY_RULES], near[:NUM_NEAR]]
        if self.path_losses is not None:
            lost = self.path_losses[facts]
            by_paths = facts[np.argsort(-lost, kind="stable")][: int((lost > 0).sum())]
            every.append(by_paths[:NUM_BY_PATHS])
        return np.unique(np.concatenate(every)), len(facts)

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
