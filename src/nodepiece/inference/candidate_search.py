"""Missing facts in two stages: candidates that are found quickly, and the scores of these.

With path scorers a score is no product of vectors, and the exact search scores every query. Most of
the best facts are among three kinds of candidates: those of highest score by the vectors alone,
those between nodes that other facts link, such as the inverse of a known fact, and with walks the
few tails of each query that they reach best, without a score for every node. The scores of
candidates are exact; a fact that is no candidate is missed.
"""

from dataclasses import replace
from time import process_time
from typing import NamedTuple

import numba
import numpy as np
import torch

from nodepiece.decoders.path_scorers import PossibleTails, QueryFacts
from nodepiece.decoders.triple_scores import VectorScores
from nodepiece.graph.arrays import FloatArray, LongArray
from nodepiece.graph.linked_pairs import LinkedPairs, best_confidence
from nodepiece.inference.bulk import Scoring
from nodepiece.inference.fact_search import (
    Found,
    Limits,
    Scope,
    allowed_facts,
    codes_of,
    search_vectors,
    size_of,
)
from nodepiece.inference.pair_search import Allowed, Best
from nodepiece.inference.search_progress import SearchProgress

TIMES_TOP = 20  # candidates of each kind for every fact that is wanted, in all relations together
TIMES_TOP_OF_RELATION = 2  # the same in each relation
A_RELATION = 300  # least candidates of each kind of a relation
IN_ALL = 50_000  # limit of that, over all relations
TAILS_OF_QUERY = 16  # that walks reach best
WALKING_SECONDS = 300.0  # in which walks find tails of all queries; else they have fewer steps
TIMED_QUERIES = 64  # by which that time is estimated
FACTS_AT_ONCE = 1 << 16  # scored by vectors
QUERIES_AT_ONCE = 1024  # followed by path scorers
TIES = 1e-3  # of confidence, ordered by vectors

Estimated = tuple[FloatArray, LongArray]  # facts, (num_facts, 3), after their estimated scores


class Plan(NamedTuple):
    """How many candidates there are, and how they are found."""

    a_relation: int  # of each kind, where there are as many
    walk_steps: int  # of walks that find tails of every query; 0: none do

    def num_queries(self, snapshot: Scoring, scope: Scope) -> int:
        """The queries that progress begins with: there are two lists of candidates."""
        walked = size_of(snapshot, scope) if self.walk_steps else 0
        return walked + 2 * self.a_relation * len(scope.relations)


def has_candidates(snapshot: Scoring) -> bool:
    """Whether facts can be searched in two stages: the model has path scorers beside vectors."""
    return bool(snapshot.scorers) and snapshot.vectors_alone() is not None


def plan_of(snapshot: Scoring, scope: Scope, top: int) -> Plan:
    return Plan(candidates_of_relation(top, len(scope.relations)), walk_steps(snapshot, scope))


def candidates_of_relation(top: int, num_relations: int) -> int:
    """Enough candidates of each kind and relation for the best `top` facts."""
    number = max(1, num_relations)
    in_all = TIMES_TOP * top // number
    return max(min(A_RELATION, IN_ALL // number), in_all, TIMES_TOP_OF_RELATION * top)


def walk_steps(snapshot: Scoring, scope: Scope) -> int:
    """The most steps with which walks find tails of all queries soon enough, by a few of them."""
    with torch.no_grad():
        steps = snapshot.scorers.likely_steps(snapshot.path_graph())
    if not (steps and scope.relations):
        return 0
    relation = max(scope.relations, key=lambda each: len(scope.heads(snapshot, each)))
    heads, rng = scope.heads(snapshot, relation), np.random.default_rng(0)
    some = rng.choice(heads, min(TIMED_QUERIES, len(heads)), replace=False)
    for number in range(steps, 0, -1):
        walked_tails(snapshot, scope, relation, some[:1], number)  # the first one compiles
        start = process_time()  # of all threads, whatever else the machine does
        walked_tails(snapshot, scope, relation, some, number)
        seconds = (process_time() - start) / max(1, len(some)) / numba.get_num_threads()
        if seconds * size_of(snapshot, scope) <= WALKING_SECONDS:
            return number
    return 0


def search_candidates(
    snapshot: Scoring,
    scope: Scope,
    limits: Limits,
    plan: Plan,
    taken: LongArray,  # facts that are not to be found again
    progress: SearchProgress,
) -> Found:
    """The candidates of highest score, best first, without probabilities.

    `progress` counts queries, at first those of the plan, then those of the candidates found.
    """
    vectors = snapshot.vectors_alone()
    if vectors is None:
        raise ValueError("the scores of this decoder are no products")
    allowed, followed = allowed_facts(snapshot, taken), followed_pairs(snapshot)
    best = Best(limits.most, float(np.nextafter(limits.min_score, -np.inf)))
    for relation in scope.relations:
        if progress.is_stopped:
            break
        likely = Best(plan.a_relation)
        of_relation = replace(scope, relations=[relation])
        search_vectors(snapshot, of_relation, vectors, likely, allowed, SearchProgress())
        likely.settle()
        near = by_links(snapshot, scope, relation, vectors, followed, plan, allowed)
        if plan.walk_steps:
            progress.add(len(scope.heads(snapshot, relation)))
        triples = distinct(np.concatenate([likely.triples, near]), snapshot)
        rows = query_rows(triples)
        progress.expect((int(rows[-1]) + 1 if len(rows) else 0) - 2 * plan.a_relation)
        add_scored(snapshot, vectors, triples, best, progress)
    best.settle()
    return Found(best.scores, best.triples, None)


def distinct(triples: LongArray, snapshot: Scoring) -> LongArray:
    """Each fact once, sorted by relation, head and tail."""
    codes = codes_of(triples, snapshot.dataset.num_nodes)
    return triples[np.unique(codes, return_index=True)[1]]


def query_rows(triples: LongArray) -> LongArray:
    """The number of the query (head, relation, ?) of each fact, of facts in that order."""
    is_new = (np.diff(triples[:, :2], axis=0, prepend=-1) != 0).any(axis=1)
    return np.cumsum(is_new) - 1


def add_scored(
    snapshot: Scoring,
    vectors: VectorScores,
    triples: LongArray,  # as `distinct` has them
    best: Best,
    progress: SearchProgress,
) -> None:
    """Add facts with their scores by the whole model."""
    rows = query_rows(triples)
    num_queries = int(rows[-1]) + 1 if len(rows) else 0
    for start in range(0, num_queries, QUERIES_AT_ONCE):
        if start and progress.is_stopped:
            break
        first, last = np.searchsorted(rows, [start, start + QUERIES_AT_ONCE])
        some = triples[first:last]
        scores = fact_scores(snapshot, vectors, some)
        kept = scores > best.least
        best.add(scores[kept], some[kept])
        progress.add(min(QUERIES_AT_ONCE, num_queries - start))


def followed_pairs(snapshot: Scoring) -> LinkedPairs:
    """The linked pairs of the graph, with the relations of the path graph."""
    linked, num_relations = snapshot.candidates.linked_pairs, snapshot.dataset.train.num_relations
    rows = [snapshot.path_relation(each) for each in range(2 * num_relations)]
    return replace(linked, relations=np.array(rows, np.int32)[linked.relations])


def by_links(
    snapshot: Scoring,
    scope: Scope,
    relation: int,
    vectors: VectorScores,
    followed: LinkedPairs,
    plan: Plan,
    allowed: Allowed,
) -> LongArray:
    """The likeliest facts of a relation between nodes with an edge or a walk: (num_facts, 3)."""
    parts = [by_edges(snapshot, scope, relation, vectors, followed, allowed)]
    if plan.walk_steps:
        parts.append(by_walks(snapshot, scope, relation, vectors, plan.walk_steps, allowed))
    scores, triples = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(-scores, kind="stable")
    codes = codes_of(triples[order], snapshot.dataset.num_nodes)
    order = order[np.unique(codes, return_index=True)[1]]  # the larger of two estimates
    few = Best(plan.a_relation)
    few.add(scores[order], triples[order])
    few.settle()
    return few.triples


def by_edges(
    snapshot: Scoring,
    scope: Scope,
    relation: int,
    vectors: VectorScores,
    followed: LinkedPairs,
    allowed: Allowed,
) -> Estimated:
    """All facts of a relation between nodes with an edge."""
    is_head, is_tail = np.zeros((2, snapshot.dataset.num_nodes), np.bool_)
    is_head[scope.heads(snapshot, relation)] = True
    is_tail[scope.tails(snapshot, relation)] = True
    estimates, is_part = edge_estimates(snapshot, relation, followed)
    is_possible = is_head[followed.heads] & is_tail[followed.tails] & (estimates > -np.inf)
    places = np.flatnonzero(is_possible)
    triples = triples_of(followed, places, relation)
    is_allowed = allowed(triples)
    triples, estimates = triples[is_allowed], estimates[places[is_allowed]]
    return with_vectors(vectors, triples, estimates, is_part=is_part), triples


def triples_of(linked: LinkedPairs, places: LongArray, relation: int) -> LongArray:
    heads, tails = linked.heads[places], linked.tails[places]
    return np.stack([heads, np.full(len(places), relation), tails], axis=1).astype(np.int64)


def edge_estimates(
    snapshot: Scoring, relation: int, followed: LinkedPairs
) -> tuple[FloatArray, bool]:
    """What the edges between two nodes say of a relation, and whether that is a part of the score.

    (num_pairs,): the scores of path scorers by these edges alone, or else the largest confidence
    of a rule from one of their relations; -inf: the graph has no pair with both.
    """
    with torch.no_grad():
        row, graph = snapshot.path_relation(relation), snapshot.path_graph()
        found = snapshot.scorers.edge_scores(row, followed, graph)
    if found is not None:
        return found.double().cpu().numpy(), True
    candidates = snapshot.candidates
    of_relations = candidates.confidences[:, [relation]].toarray()[:, 0]
    confidence = best_confidence(candidates.linked_pairs, of_relations)
    return np.where(confidence > 0, confidence, -np.inf), False


def by_walks(
    snapshot: Scoring,
    scope: Scope,
    relation: int,
    vectors: VectorScores,
    steps: int,
    allowed: Allowed,
) -> Estimated:
    """The facts of each query of a relation that walks reach best."""
    heads = scope.heads(snapshot, relation)
    scores, triples = walked_tails(snapshot, scope, relation, heads, steps)
    is_allowed = allowed(triples)
    triples, scores = triples[is_allowed], scores[is_allowed]
    return with_vectors(vectors, triples, scores, is_part=True), triples


def walked_tails(
    snapshot: Scoring, scope: Scope, relation: int, heads: LongArray, steps: int
) -> Estimated:
    """The tails that walks from each head reach best, without known ones, as facts."""
    is_tail, known = np.zeros(snapshot.dataset.num_nodes, np.bool_), snapshot.candidates.known_tails
    is_tail[scope.tails(snapshot, relation)] = True
    start, number = known.find(heads, np.full(len(heads), relation))
    start, answers = known.only_of(start, number)
    possible = PossibleTails(is_tail, answers, start, number, TAILS_OF_QUERY)
    row, given = snapshot.path_relation(relation), torch.from_numpy(heads).to(snapshot.device)
    with torch.no_grad():
        found = snapshot.scorers.likely_tails(row, given, possible, steps, snapshot.path_graph())
    rows, tails, scores = (each.cpu().numpy() for each in found)
    triples = np.stack([heads[rows], np.full(len(rows), relation), tails], axis=1)
    return scores.astype(np.float64), triples


def with_vectors(
    vectors: VectorScores, triples: LongArray, estimates: FloatArray, *, is_part: bool
) -> FloatArray:
    """Estimates with the scores of vectors added, or ordered by these where they are equal."""
    scores = vector_fact_scores(vectors, triples)
    if is_part:
        return estimates + scores
    place = np.empty(len(scores))
    place[np.argsort(scores, kind="stable")] = np.arange(len(scores))
    return estimates + TIES * place / max(1, len(scores))


def vector_fact_scores(vectors: VectorScores, triples: LongArray) -> FloatArray:
    """The scores of facts by the vectors alone: (num_facts,)."""
    device, parts = vectors.nodes.device, [np.empty(0)]
    for start in range(0, len(triples), FACTS_AT_ONCE):
        heads, relations, tails = torch.from_numpy(triples[start : start + FACTS_AT_ONCE]).T
        with torch.no_grad():
            scores = vectors.decoder.score(
                vectors.nodes[heads.to(device)],
                vectors.relations[relations.to(device)],
                vectors.nodes[tails.to(device)],
            )
        parts.append(scores.double().cpu().numpy())
    return np.concatenate(parts)


def fact_scores(snapshot: Scoring, vectors: VectorScores, triples: LongArray) -> FloatArray:
    """The scores of facts by the whole model, in the order of `distinct`: (num_facts,)."""
    rows = query_rows(triples)
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    relations = [snapshot.path_relation(each) for each in triples[first, 1].tolist()]
    parts = triples[first, 0], np.array(relations, np.int64), rows, triples[:, 2]
    facts = QueryFacts(
        *(torch.from_numpy(np.ascontiguousarray(each)).to(snapshot.device) for each in parts)
    )
    with torch.no_grad():
        of_paths = snapshot.scorers.fact_scores(facts, snapshot.path_graph())
    return vector_fact_scores(vectors, triples) + of_paths.double().cpu().numpy()
