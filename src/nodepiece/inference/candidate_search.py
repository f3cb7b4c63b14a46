"""Missing facts in two stages: candidates that are found quickly, and the scores of these.

With path scorers a score is no product of vectors, and the exact search scores every query. Most of
the best facts are among three kinds of candidates: those of highest score by the vectors alone,
those between nodes that other facts link, such as the inverse of a known fact, and with walks the
few tails of each query that they reach best, without a score for every node. The scores of
candidates are exact; a fact that is no candidate is missed.

Before, a few queries of every stage are timed. Where all of them would take too long, walks have
fewer steps, and the vectors of a part of the queries are searched.
"""

import math
from dataclasses import replace
from functools import partial
from time import perf_counter, process_time
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
    least_of_sample,
    pairs_of,
    size_of,
)
from nodepiece.inference.pair_search import (
    NOTHING,
    Allowed,
    Best,
    num_in_part,
    part_of,
    search_pairs,
    some_of,
)
from nodepiece.inference.search_progress import SearchProgress, ShouldStop
from nodepiece.inference.timed_work import PART_SECONDS, seconds_an_item, seconds_of, timed_slices

TIMES_TOP = 20  # candidates of each kind for every fact that is wanted, in all relations together
TIMES_TOP_OF_RELATION = 2  # the same in each relation
A_RELATION = 300  # least candidates of each kind of a relation
IN_ALL = 50_000  # limit of that, over all relations
TAILS_OF_QUERY = 16  # that walks reach best
WALKING_SECONDS = 300.0  # in which walks find tails of all queries; else they have fewer steps
TIMED_QUERIES = 64  # by which that time is estimated
VECTOR_SECONDS = 300.0  # in which the vectors of all queries are searched; else those of a part
MIN_SHARE = 1 / 256  # of the queries, however long they take
TIMED_VECTORS = 2048  # queries by which that time is estimated
FACTS_AT_ONCE = 1 << 16  # scored by vectors
QUERIES_AT_ONCE = 1024  # followed by path scorers, at most
WALKS_AT_ONCE = 1 << 14  # queries that walks find tails of, at most
TIES = 1e-3  # of confidence, ordered by vectors

Estimated = tuple[FloatArray, LongArray]  # facts, (num_facts, 3), after their estimated scores


class Plan(NamedTuple):
    """How many candidates there are, how they are found, and how long that takes."""

    a_relation: int  # of each kind, where there are as many
    walk_steps: int  # of walks that find tails of every query; 0: none do
    vector_share: float = 1.0  # of the queries of a relation, whose vectors are searched
    seconds: float = 0.0  # of the whole search, about

    def num_queries(self, snapshot: Scoring, scope: Scope) -> int:
        """The queries that progress begins with: of vectors, of walks and of candidates.

        There are two lists of candidates.
        """
        searched = sum(
            num_in_part(len(scope.heads(snapshot, each)), self.vector_share)
            for each in scope.relations
        )
        walked = size_of(snapshot, scope) if self.walk_steps else 0
        return searched + walked + 2 * self.a_relation * len(scope.relations)


def has_candidates(snapshot: Scoring) -> bool:
    """Whether facts can be searched in two stages: the model has path scorers beside vectors."""
    return bool(snapshot.scorers) and snapshot.vectors_alone() is not None


def plan_of(
    snapshot: Scoring, scope: Scope, top: int, should_stop: ShouldStop | None = None
) -> Plan:
    """The plan for a search of so many facts; if it is to stop, without what was not timed yet."""
    progress = SearchProgress(should_stop=should_stop)
    plan = Plan(candidates_of_relation(top, len(scope.relations)), 0)
    if not size_of(snapshot, scope) or progress.is_stopped:
        return plan
    share, seconds = vector_part(snapshot, scope, plan.a_relation, progress)
    if progress.is_stopped:
        return plan
    plan = plan._replace(walk_steps=walk_steps(snapshot, scope), vector_share=share)
    return plan._replace(seconds=seconds + seconds_of_others(snapshot, scope, plan, progress))


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
    relation = largest(snapshot, scope)
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


def vector_part(
    snapshot: Scoring, scope: Scope, a_relation: int, progress: SearchProgress
) -> tuple[float, float]:
    """The share of queries whose vectors are searched soon enough, and the seconds of that.

    One, a half, a quarter and so on: mostly the same share whatever else the machine does.
    """
    share = 1.0
    while True:
        seconds = seconds_of_vectors(snapshot, scope, a_relation, share, progress)
        if seconds <= VECTOR_SECONDS or share <= MIN_SHARE:
            return share, seconds
        share /= 2 ** max(1, round(math.log2(seconds / VECTOR_SECONDS)))


def seconds_of_vectors(
    snapshot: Scoring, scope: Scope, a_relation: int, share: float, progress: SearchProgress
) -> float:
    """How long the search of vectors takes, by some queries of the relation with most pairs.

    The time grows with the queries and with the tails. Of fewer queries fewer facts are looked for,
    so that as small a share of the pairs is computed in full.
    """
    sizes = {
        each: (len(scope.heads(snapshot, each)), len(scope.tails(snapshot, each)))
        for each in scope.relations
    }
    relation = max(sizes, key=lambda each: sizes[each][0] * sizes[each][1])
    num_tails = sizes[relation][1]
    pairs = part_of(pairs_of(snapshot, scope, relation, vectors_of(snapshot)), share)
    if not pairs.count:
        return 0.0
    allowed, number = allowed_facts(snapshot, NOTHING), min(TIMED_VECTORS, len(pairs.heads))
    some, most = some_of(pairs, number), max(1, a_relation * number // len(pairs.heads))
    least = least_of_sample([pairs], Best(a_relation), allowed)

    def search(should_stop: ShouldStop | None) -> None:
        search_pairs(some, Best(most, least), allowed, SearchProgress(None, should_stop))

    timed = seconds_of(partial(search, progress.should_stop))
    fixed = seconds_of(partial(search, lambda: True))  # before the first query
    each = max(0.0, timed - fixed) / number
    all_tails = sum(tails for _, tails in sizes.values())
    all_pairs = sum(heads * tails for heads, tails in sizes.values())
    return (fixed * all_tails + each * share * all_pairs) / num_tails


def seconds_of_others(
    snapshot: Scoring, scope: Scope, plan: Plan, progress: SearchProgress
) -> float:
    """How long it takes beside the vectors, by some queries of the relation with most heads."""
    relation = largest(snapshot, scope)
    heads, tails = scope.heads(snapshot, relation), scope.tails(snapshot, relation)
    if not len(tails):
        return 0.0
    rng, vectors = np.random.default_rng(0), vectors_of(snapshot)
    allowed, followed = allowed_facts(snapshot, NOTHING), followed_pairs(snapshot)
    some = rng.choice(heads, len(heads), replace=False)
    edge_estimates(snapshot, relation, followed)  # the first one may build indices
    find = partial(by_edges, snapshot, scope, relation, vectors, followed, allowed, progress)
    seconds = seconds_of(find) * len(scope.relations)
    if progress.is_stopped:
        return seconds
    if plan.walk_steps:

        def walk(number: int) -> None:
            few = walked_tails(snapshot, scope, relation, some[:number], plan.walk_steps)
            vector_fact_scores(vectors, few[1][allowed(few[1])])

        seconds += seconds_an_item(walk, len(some)) * size_of(snapshot, scope)
    drawn = np.stack([some, np.full(len(some), relation), rng.choice(tails, len(some))], axis=1)

    def score(number: int) -> None:
        fact_scores(snapshot, vectors, distinct(drawn[:number], snapshot))

    scored = sum(min(2 * plan.a_relation, len(scope.heads(snapshot, r))) for r in scope.relations)
    return seconds + seconds_an_item(score, len(some)) * scored


def largest(snapshot: Scoring, scope: Scope) -> int:
    """The relation with most queries."""
    return max(scope.relations, key=lambda each: len(scope.heads(snapshot, each)))


def vectors_of(snapshot: Scoring) -> VectorScores:
    vectors = snapshot.vectors_alone()
    if vectors is None:
        raise ValueError("the scores of this decoder are no products")
    return vectors


def search_candidates(
    snapshot: Scoring,
    scope: Scope,
    limits: Limits,
    plan: Plan,
    taken: LongArray,  # facts that are not to be found again
    progress: SearchProgress,
) -> Found:
    """The candidates of highest score, best first, without probabilities.

    `progress` counts queries, at first those of the plan, then those of the candidates found. If it
    is stopped, the likeliest candidates so far are scored.
    """
    vectors = vectors_of(snapshot)
    allowed, followed = allowed_facts(snapshot, taken), followed_pairs(snapshot)
    best = Best(limits.most, float(np.nextafter(limits.min_score, -np.inf)))
    for relation in scope.relations:
        if progress.is_stopped:
            break
        likely = by_vectors(snapshot, scope, relation, vectors, plan, allowed, progress)
        near = NOTHING
        if not progress.is_stopped:
            near = by_links(snapshot, scope, relation, vectors, followed, plan, allowed, progress)
        if progress.is_stopped:
            add_few_scored(snapshot, vectors, likely, near, best)
            break
        triples = distinct(np.concatenate([likely, near]), snapshot)
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
    for part in timed_slices(num_queries, QUERIES_AT_ONCE):
        if part.start and progress.is_stopped:
            break
        first, last = np.searchsorted(rows, [part.start, part.stop])
        add_kept(snapshot, vectors, triples[first:last], best)
        progress.add(part.stop - part.start)


def add_few_scored(
    snapshot: Scoring, vectors: VectorScores, likely: LongArray, near: LongArray, best: Best
) -> None:
    """Add the first facts of two lists with their scores, as many as there is time for."""
    place = np.concatenate([np.arange(len(each)) for each in (likely, near)])
    triples = np.concatenate([likely, near])[np.argsort(place, kind="stable")]
    codes = codes_of(triples, snapshot.dataset.num_nodes)
    triples = triples[np.sort(np.unique(codes, return_index=True)[1])]
    start = perf_counter()
    for part in timed_slices(len(triples), QUERIES_AT_ONCE):
        add_kept(snapshot, vectors, distinct(triples[part], snapshot), best)
        if perf_counter() - start > PART_SECONDS:
            break


def add_kept(snapshot: Scoring, vectors: VectorScores, triples: LongArray, best: Best) -> None:
    scores = fact_scores(snapshot, vectors, triples)
    kept = scores > best.least
    best.add(scores[kept], triples[kept])


def by_vectors(
    snapshot: Scoring,
    scope: Scope,
    relation: int,
    vectors: VectorScores,
    plan: Plan,
    allowed: Allowed,
    progress: SearchProgress,
) -> LongArray:
    """The best facts of a relation by the vectors alone, best first: (num_facts, 3)."""
    likely = Best(plan.a_relation)
    pairs = part_of(pairs_of(snapshot, scope, relation, vectors), plan.vector_share)
    likely.least = least_of_sample([pairs], likely, allowed)
    search_pairs(pairs, likely, allowed, progress)
    likely.settle()
    return likely.triples


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
    progress: SearchProgress,
) -> LongArray:
    """The likeliest facts of a relation between nodes with an edge or a walk, likeliest first."""
    parts = [by_edges(snapshot, scope, relation, vectors, followed, allowed, progress)]
    if plan.walk_steps:
        parts.append(by_walks(snapshot, scope, relation, vectors, plan, allowed, progress))
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
    progress: SearchProgress,
) -> Estimated:
    """All facts of a relation between nodes with an edge, or those before a stop."""
    is_head, is_tail = np.zeros((2, snapshot.dataset.num_nodes), np.bool_)
    is_head[scope.heads(snapshot, relation)] = True
    is_tail[scope.tails(snapshot, relation)] = True
    estimates, is_part = edge_estimates(snapshot, relation, followed)
    is_possible = is_head[followed.heads] & is_tail[followed.tails] & (estimates > -np.inf)
    places = np.flatnonzero(is_possible)
    triples = triples_of(followed, places, relation)
    is_allowed = allowed(triples)
    triples, estimates = triples[is_allowed], estimates[places[is_allowed]]
    scores = vector_fact_scores(vectors, triples, progress)
    triples, estimates = triples[: len(scores)], estimates[: len(scores)]
    return combined(estimates, scores, is_part=is_part), triples


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
    plan: Plan,
    allowed: Allowed,
    progress: SearchProgress,
) -> Estimated:
    """The likeliest facts of a relation among those of each query that walks reach best."""
    heads, best = scope.heads(snapshot, relation), Best(plan.a_relation)
    for part in timed_slices(len(heads), WALKS_AT_ONCE):
        if progress.is_stopped:
            break
        estimates, triples = walked_tails(snapshot, scope, relation, heads[part], plan.walk_steps)
        is_allowed = allowed(triples)
        triples, estimates = triples[is_allowed], estimates[is_allowed]
        scores = combined(estimates, vector_fact_scores(vectors, triples), is_part=True)
        kept = scores > best.least
        best.add(scores[kept], triples[kept])
        progress.add(part.stop - part.start)
    best.settle()
    return best.scores, best.triples


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


def combined(estimates: FloatArray, scores: FloatArray, *, is_part: bool) -> FloatArray:
    """Estimates with the scores of vectors added, or ordered by these where they are equal."""
    if is_part:
        return estimates + scores
    place = np.empty(len(scores))
    place[np.argsort(scores, kind="stable")] = np.arange(len(scores))
    return estimates + TIES * place / max(1, len(scores))


def vector_fact_scores(
    vectors: VectorScores, triples: LongArray, progress: SearchProgress | None = None
) -> FloatArray:
    """The scores of facts by the vectors alone: (num_facts,), or fewer if stopped."""
    device, parts = vectors.nodes.device, [np.empty(0)]
    for start in range(0, len(triples), FACTS_AT_ONCE):
        if progress is not None and progress.is_stopped:
            break
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
