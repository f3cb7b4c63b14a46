"""The likeliest missing facts of a whole graph."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import pyarrow as pa
import torch

from nodepiece.data.column_names import ROLES
from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress
from nodepiece.graph.arrays import LongArray
from nodepiece.graph.names import Names, UnknownName
from nodepiece.inference.bulk import Calibrated, Scoring, named_triples
from nodepiece.inference.candidate_search import (
    Plan,
    has_candidates,
    plan_of,
    search_candidates,
)
from nodepiece.inference.fact_search import Found, Limits, Scope, scores_queries, search, size_of
from nodepiece.inference.pair_search import NOTHING
from nodepiece.inference.queries import removed_node
from nodepiece.inference.search_progress import SearchProgress, ShouldStop

log = logging.getLogger("nodepiece")

FEW_QUERIES = 200  # that are scored without an estimate of the time
TIMED_QUERIES = 16  # by which the time is estimated
MANY_SECONDS = 3.0  # from which on the estimate is a warning
LONG_SECONDS = 60.0  # from which on candidates are searched, unless `exact` says otherwise
ROUND_FACTS = 10_000  # smallest number found in a round, where `per_node` leaves out some
ROUND_FACTS_BY_QUERY = 1 << 20  # the same where every query is scored again in each round

EXACT = "exact"
BY_CANDIDATES = (
    "candidates: the best facts by the vectors alone, those that walks lead to, and the likeliest "
    "between nodes that facts link, scored by the whole model; others may be missing"
)


@dataclass(frozen=True)
class DiscoverSettings:
    """Which missing facts are looked for."""

    top: int = 1000
    relations: Sequence[str] | None = None  # None: all
    heads: Sequence[str] | None = None  # None: all
    tails: Sequence[str] | None = None
    per_node: int | None = None  # facts that a node may occur in; None: any number
    min_score: float = -np.inf
    min_probability: float = 0.0
    any_candidate: bool = False  # also nodes that the graph does not have at that end
    memory_budget: int = 2**30  # bytes for scores
    calibrated: Calibrated | None = None  # None: without probabilities
    exact: bool | None = None  # False: only candidates are scored; None: where all take long

    def __post_init__(self) -> None:
        if self.top < 1 or (self.per_node is not None and self.per_node < 1):
            raise InputError(
                f"top and per_node must be at least 1, got {self.top} and {self.per_node}"
            )
        if self.min_probability > 0 and self.calibrated is None:
            raise InputError(
                "min_probability needs a run with calibrated probabilities, and this one has none; "
                "run nodepiece calibrate first, or give min_score"
            )

    @property
    def schema(self) -> pa.Schema:
        """The columns of a table of missing facts."""
        fields = [*((role, pa.string()) for role in ROLES), ("score", pa.float32())]
        fields.append(("rank", pa.int32()))
        return pa.schema(
            fields + ([("probability", pa.float64())] if self.calibrated is not None else [])
        )


def discover_facts(
    snapshot: Scoring,
    settings: DiscoverSettings,
    *,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> pa.Table:
    """A table of the facts of highest score that are not known, best first.

    With probabilities, the best are those of highest probability among the best of each relation.
    `progress` gets the numbers of relations searched and of all, or of queries (`scores_queries`).
    If `should_stop` returns True, the search ends with the best facts so far. The metadata of the
    table state how facts were searched: `search` is EXACT or BY_CANDIDATES, and `vectors` the part
    of the queries whose vectors were searched for candidates, if not all.
    """
    scope = scope_of(snapshot, settings)
    plan = chosen_search(snapshot, scope, settings, should_stop)
    found = best_facts(snapshot, scope, settings, plan, SearchProgress(progress, should_stop))
    found = found.take(np.arange(min(settings.top, len(found.scores))))
    columns = named_triples(snapshot.dataset.names, *found.triples.T)
    columns["score"] = pa.array(found.scores.astype(np.float32))
    columns["rank"] = pa.array(np.arange(1, len(found.scores) + 1, dtype=np.int32))
    if found.probabilities is not None:
        columns["probability"] = pa.array(found.probabilities)
    return pa.table(columns, schema=settings.schema.with_metadata(metadata_of(plan)))


def chosen_search(
    snapshot: Scoring, scope: Scope, settings: DiscoverSettings, should_stop: ShouldStop | None
) -> Plan | None:
    """How candidates are searched; None: the search is exact. Logged unless it is quick."""
    if not scores_queries(snapshot):
        return None  # the search of vectors is exact, and quick
    if settings.exact is False and not has_candidates(snapshot):
        raise InputError(
            "the scores of this decoder are no products or distances of vectors, by which "
            "candidates are found; leave out --approximate (exact=False)"
        )
    num_queries = size_of(snapshot, scope)
    is_exact, seconds = settings.exact, 0.0
    if num_queries > FEW_QUERIES and settings.exact is not False:
        seconds = estimated_seconds(snapshot, scope, num_queries)
    if is_exact is None:
        is_exact = seconds < LONG_SECONDS or not has_candidates(snapshot)
    queries = "1 query" if num_queries == 1 else f"{num_queries:,} queries"
    if not is_exact:
        plan = plan_of(snapshot, scope, settings.top, should_stop)
        all_of_them = f"all {queries} (head, relation, ?) would take about {duration(seconds)}, so "
        if should_stop is None or not should_stop():  # else the time is not known
            log.warning("%s%s", all_of_them if seconds else "", describe(plan, queries, settings))
        return plan
    if num_queries > FEW_QUERIES:
        log.log(
            logging.WARNING if seconds >= MANY_SECONDS else logging.INFO,
            "the scores of this model are not products of vectors, so all %s "
            "(head, relation, ?) are scored, in about %s; name relations or heads to search fewer",
            queries,
            duration(seconds),
        )
    return None


def duration(seconds: float) -> str:
    return f"{max(1, round(seconds)):,} s" if seconds < 120 else f"{seconds / 60:,.0f} minutes"


def describe(plan: Plan, queries: str, settings: DiscoverSettings) -> str:
    """What a search of candidates does, how long it takes, and what it may miss."""
    rounds = "" if settings.per_node is None else " for each round of --per-node (per_node)"
    steps = "1 step" if plan.walk_steps == 1 else f"{plan.walk_steps} steps"
    walks = f", those that walks of {steps} lead to" if plan.walk_steps else ""
    part = f" ({part_of_vectors(plan)})" if plan.vector_share < 1 else ""
    return (
        f"only candidates are scored among the facts of {queries}, in about "
        f"{duration(plan.seconds)}{rounds}: the best facts by the vectors alone{part}{walks} and "
        "the likeliest between nodes that facts link; the result may miss some facts, --exact "
        "(exact=True) finds all of them"
    )


def part_of_vectors(plan: Plan) -> str:
    """Which queries have their vectors searched, where all would take too long."""
    return f"of 1 in {round(1 / plan.vector_share):,} queries, as all would take too long"


def metadata_of(plan: Plan | None) -> dict[str, str]:
    """How facts were searched, for the metadata of a table."""
    if plan is None:
        return {"search": EXACT}
    part = {} if plan.vector_share == 1 else {"vectors": part_of_vectors(plan)}
    return {"search": BY_CANDIDATES} | part


def estimated_seconds(snapshot: Scoring, scope: Scope, num_queries: int) -> float:
    """How long the scores of so many queries take, by the time of a few of them."""
    relation = max(scope.relations, key=lambda each: len(scope.heads(snapshot, each)))
    some = torch.from_numpy(scope.heads(snapshot, relation)[:TIMED_QUERIES])
    snapshot.score_tails(some[:1], torch.full_like(some[:1], relation))  # the first one compiles
    start = perf_counter()
    snapshot.score_tails(some, torch.full_like(some, relation)).cpu()
    return (perf_counter() - start) / len(some) * num_queries


def scope_of(snapshot: Scoring, settings: DiscoverSettings) -> Scope:
    names, present = snapshot.dataset.names, snapshot.candidates.is_present
    relations = list(range(len(names.relations)))
    if settings.relations is not None:
        relations = sorted({direct_relation(names, name) for name in settings.relations})
    ends = []
    for chosen in (settings.heads, settings.tails):
        is_wanted = present
        if chosen is not None:
            ids = names.node_ids(list(chosen))
            if not present[ids].all():
                raise UnknownName(removed_node(names.node(ids[~present[ids]][0])))
            is_wanted = np.zeros_like(present)
            is_wanted[ids] = True
        ends.append(is_wanted)
    return Scope(relations, ends[0], ends[1], settings.any_candidate)


def direct_relation(names: Names, name: str) -> int:
    relation = names.relation_id(name)
    if relation >= len(names.relations):
        raise InputError(
            f"{name!r} states the facts of the relation in the other direction; name that one"
        )
    return relation


def best_facts(
    snapshot: Scoring,
    scope: Scope,
    settings: DiscoverSettings,
    plan: Plan | None,  # None: the search is exact
    progress: SearchProgress,
) -> Found:
    """The best missing facts, best first.

    With `per_node`, facts are taken in their order, unless an end of the fact has enough of them
    already. They are found in rounds: nodes that have enough are left out of the next one, so that
    every round finds facts that count.
    """
    limits = Limits(settings.top, settings.min_score, settings.memory_budget)
    if settings.per_node is None:
        return one_round(snapshot, scope, limits, plan, settings, NOTHING, progress)[0]
    at_once = ROUND_FACTS_BY_QUERY if scores_queries(snapshot) else ROUND_FACTS
    if plan is not None:
        at_once = plan.a_relation * (len(scope.relations) if settings.calibrated is None else 1)
    limits = limits._replace(most=max(settings.top, at_once))
    num_facts = np.zeros(len(scope.is_head), np.int64)
    rounds: list[Found] = []
    taken = NOTHING
    while True:
        found, is_all = one_round(snapshot, scope, limits, plan, settings, taken, progress)
        rounds.append(found.take(take_few(found.triples, num_facts, settings.per_node)))
        taken = np.concatenate([taken, rounds[-1].triples])
        if is_all or len(taken) >= settings.top:
            return joined(rounds)
        is_open = num_facts < settings.per_node
        scope = replace(scope, is_head=scope.is_head & is_open, is_tail=scope.is_tail & is_open)


def one_round(
    snapshot: Scoring,
    scope: Scope,
    limits: Limits,
    plan: Plan | None,  # None: the search is exact
    settings: DiscoverSettings,
    taken: LongArray,  # facts that are not to be found again
    progress: SearchProgress,
) -> tuple[Found, bool]:
    """The best missing facts of a scope, best first, and whether there are no others.

    With probabilities, the best of each relation are compared. A fact that is less likely than some
    that were not found, as its relation had too many, is left to another round.
    """
    progress.expect(size_of(snapshot, scope) if plan is None else plan.num_queries(snapshot, scope))

    def best_of(scope: Scope) -> Found:
        if plan is None:
            return search(snapshot, scope, limits, taken, progress)
        return search_candidates(snapshot, scope, limits, plan, taken, progress)

    if settings.calibrated is None:
        found = best_of(scope)
        enough = limits.most if plan is None else plan.a_relation  # with fewer there are no others
        return found, progress.is_stopped or len(found.scores) < enough
    parts, reached = [], settings.min_probability
    is_all = True
    for relation in scope.relations:
        best = best_of(replace(scope, relations=[relation]))
        chances = settings.calibrated(snapshot, best.triples, best.scores, True)
        parts.append(best._replace(probabilities=chances))
        if len(chances) == limits.most and chances.min() > settings.min_probability:
            is_all, reached = False, max(reached, float(chances.min()))
        if progress.is_stopped:
            break
    found = joined(parts)
    is_all = is_all or progress.is_stopped or settings.per_node is None
    reached = settings.min_probability if is_all else reached
    order = np.lexsort((-found.scores, -found.keys))
    return found.take(order[found.keys[order] >= reached]), is_all


def joined(parts: Sequence[Found]) -> Found:
    """Facts of several searches, one after the other; probabilities where there are some."""
    scores = np.concatenate([np.empty(0), *(part.scores for part in parts)])
    triples = np.concatenate([NOTHING, *(part.triples for part in parts)])
    if parts and parts[0].probabilities is None:
        return Found(scores, triples, None)
    return Found(scores, triples, np.concatenate([np.empty(0), *(part.keys for part in parts)]))


def take_few(triples: LongArray, number: LongArray, most: int) -> LongArray:
    """Positions of the facts that are taken in order; `number` of facts by node is updated."""
    taken = []
    for place, (head, _, tail) in enumerate(triples.tolist()):
        if number[head] < most and number[tail] < most:
            taken.append(place)
            number[head] += 1
            number[tail] += head != tail
    return np.array(taken, np.int64)
