"""The missing facts of highest score of some relations and nodes: by vectors, or by query."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nodepiece.decoders.triple_scores import VectorScores
from nodepiece.graph.arrays import FloatArray, LongArray
from nodepiece.inference.bulk import Scoring
from nodepiece.inference.pair_search import Allowed, Best, Pairs, sample_pairs, search_pairs
from nodepiece.inference.search_progress import SearchProgress

QUERIES_AT_ONCE = 256  # where scores are no products of vectors
FACTS_AT_ONCE = 1 << 21  # compared at once until the best list is full
ROUNDING = 1e-4  # of scores that are computed in another order


@dataclass(frozen=True, eq=False)
class Scope:
    """The relations, and the nodes at either end, of the facts that are looked for."""

    relations: list[int]
    is_head: NDArray[np.bool_]  # (num_nodes,)
    is_tail: NDArray[np.bool_]  # (num_nodes,)
    any_candidate: bool

    def heads(self, snapshot: Scoring, relation: int) -> LongArray:
        return self._within(self.is_head, snapshot.candidates.seen_heads(relation))

    def tails(self, snapshot: Scoring, relation: int) -> LongArray:
        return self._within(self.is_tail, snapshot.candidates.seen_tails(relation))

    def _within(self, is_wanted: NDArray[np.bool_], seen: NDArray[np.int32]) -> LongArray:
        if self.any_candidate:
            return np.flatnonzero(is_wanted)
        return seen[is_wanted[seen]].astype(np.int64)


class Limits(NamedTuple):
    """What a search finds at most, and the memory that it may take."""

    most: int  # facts
    min_score: float
    memory_budget: int  # bytes for scores


class Found(NamedTuple):
    """Missing facts, best first."""

    scores: FloatArray  # (num_facts,)
    triples: LongArray  # (num_facts, 3)
    probabilities: FloatArray | None  # (num_facts,); None: the run has no calibration

    @property
    def keys(self) -> FloatArray:
        """What facts are ordered by."""
        return self.scores if self.probabilities is None else self.probabilities

    def take(self, places: LongArray) -> "Found":
        chances = None if self.probabilities is None else self.probabilities[places]
        return Found(self.scores[places], self.triples[places], chances)


def scores_queries(snapshot: Scoring) -> bool:
    """Whether every query (head, relation, ?) is scored: scores are no products of vectors."""
    return snapshot.vector_scores() is None


def size_of(snapshot: Scoring, scope: Scope) -> int:
    """The number of queries that are scored, or of relations that are searched."""
    if not scores_queries(snapshot):
        return len(scope.relations)
    return sum(len(scope.heads(snapshot, each)) for each in scope.relations)


def search(
    snapshot: Scoring,
    scope: Scope,
    limits: Limits,
    taken: LongArray,  # facts that are not to be found again
    progress: SearchProgress,
) -> Found:
    """The missing facts of highest score of a scope, best first, without probabilities."""
    most = limits.most
    start = float(np.nextafter(limits.min_score, -np.inf))
    best, allowed = Best(most, start), allowed_facts(snapshot, taken)
    vectors = snapshot.vector_scores()
    if vectors is None:
        for relation in scope.relations:
            search_queries(
                snapshot,
                scope,
                relation,
                best,
                allowed,
                memory_budget=limits.memory_budget,
                progress=progress,
            )
    else:
        search_vectors(snapshot, scope, vectors, best, allowed, progress)
    best.settle()
    return Found(best.scores, best.triples, None)


def search_vectors(
    snapshot: Scoring,
    scope: Scope,
    vectors: VectorScores,
    best: Best,
    allowed: Allowed,
    progress: SearchProgress,
) -> None:
    """Add the best facts of all relations by the scores of vectors; `progress` counts relations."""
    every = (pairs_of(snapshot, scope, relation, vectors) for relation in scope.relations)
    best.least = least_of_sample(every, best, allowed)
    queries = SearchProgress(should_stop=progress.should_stop)  # within a relation
    for relation in scope.relations:
        search_pairs(pairs_of(snapshot, scope, relation, vectors), best, allowed, queries)
        if progress.is_stopped:
            break
        progress.add(1)


def least_of_sample(parts: Iterable[Pairs], best: Best, allowed: Allowed) -> float:
    """A score that as many facts exceed as are looked for, by some pairs of each part."""
    sampled = Best(best.most, best.least)
    for pairs in parts:
        sample_pairs(pairs, sampled, allowed)
    sampled.settle()
    if len(sampled.scores) < best.most:
        return best.least
    return max(best.least, sampled.least - ROUNDING * (1 + abs(sampled.least)))


def allowed_facts(snapshot: Scoring, taken: LongArray) -> Allowed:
    """Which facts may be found: not known, not taken, loops only where the relation has some."""
    candidates, num_nodes = snapshot.candidates, snapshot.dataset.num_nodes
    codes = codes_of(taken, num_nodes)

    def allowed(triples: LongArray) -> NDArray[np.bool_]:
        is_loop = (triples[:, 0] == triples[:, 2]) & ~candidates.has_loops[triples[:, 1]]
        is_found = candidates.known_tails.contains(triples) | is_loop
        return ~(is_found | np.isin(codes_of(triples, num_nodes), codes))

    return allowed


def codes_of(triples: LongArray, num_nodes: int) -> LongArray:
    """One number for each fact."""
    return (triples[:, 1] * num_nodes + triples[:, 0]) * num_nodes + triples[:, 2]


def pairs_of(snapshot: Scoring, scope: Scope, relation: int, vectors: VectorScores) -> Pairs:
    heads, tails = scope.heads(snapshot, relation), scope.tails(snapshot, relation)
    device, decoder = vectors.nodes.device, vectors.decoder
    if decoder.tail_query is None:
        raise ValueError("the scores of this decoder are no products")
    with torch.no_grad():
        head = vectors.nodes[torch.from_numpy(heads).to(device)]
        queries = decoder.tail_query(head, vectors.relations[relation])
        nodes = vectors.nodes[torch.from_numpy(tails).to(device)]
    return Pairs(relation, heads, tails, queries, nodes, decoder.is_distance)


def search_queries(
    snapshot: Scoring,
    scope: Scope,
    relation: int,
    best: Best,
    allowed: Allowed,
    *,
    memory_budget: int,
    progress: SearchProgress,
) -> None:
    """Add the best facts of a relation by the scores of all nodes, query by query."""
    heads, tails = scope.heads(snapshot, relation), scope.tails(snapshot, relation)
    fitting = memory_budget // (16 * max(1, snapshot.dataset.num_nodes))
    columns = torch.from_numpy(tails).to(snapshot.device)
    start = 0
    while start < len(heads) and not progress.is_stopped:
        most = QUERIES_AT_ONCE if best.is_full else FACTS_AT_ONCE // max(1, len(tails))
        at_once = max(1, min(most, QUERIES_AT_ONCE, fitting))
        some = torch.from_numpy(heads[start : start + at_once])
        scores = snapshot.score_tails(some, torch.full_like(some, relation))[:, columns]
        row, column = torch.nonzero(scores > best.least, as_tuple=True)
        found = scores[row, column].double().cpu().numpy()
        ends = heads[start + row.cpu().numpy()], tails[column.cpu().numpy()]
        triples = np.stack([ends[0], np.full(len(found), relation), ends[1]], axis=1)
        is_allowed = allowed(triples)
        best.add(found[is_allowed], triples[is_allowed])
        start += at_once
        progress.add(len(some))
