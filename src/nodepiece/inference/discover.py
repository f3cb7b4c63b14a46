"""The likeliest missing facts of a whole graph."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from nodepiece.data.column_names import ROLES
from nodepiece.decoders.triple_scores import VectorScores
from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress
from nodepiece.graph.arrays import FloatArray, LongArray
from nodepiece.graph.names import Names
from nodepiece.inference.bulk import Calibrated, Scoring, named_triples
from nodepiece.inference.pair_search import (
    NOTHING,
    Allowed,
    Best,
    Pairs,
    sample_pairs,
    search_pairs,
)

log = logging.getLogger("nodepiece")

QUERIES_AT_ONCE = 256  # where scores are no products of vectors
FACTS_AT_ONCE = 1 << 21  # compared at once until the best list is full
MANY_QUERIES = 50_000  # that are scored without a remark, where every one has to be
ROUND_FACTS = 10_000  # smallest number found in a round, where `per_node` leaves out some
ROUNDING = 1e-4  # of scores that are computed in another order


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


def discover_facts(
    snapshot: Scoring, settings: DiscoverSettings, *, progress: Progress | None = None
) -> pa.Table:
    """A table of the facts of highest score that are not known, best first.

    With probabilities, the best are those of highest probability among the best of each relation.
    `progress` gets the numbers of relations searched and of all, or of queries (`scores_queries`).
    """
    names = snapshot.dataset.names
    scope = scope_of(snapshot, settings)
    num_all = size_of(snapshot, scope)
    if scores_queries(snapshot):
        warn_of_many(num_all)
    groups = [scope.relations] if settings.calibrated is None else [[r] for r in scope.relations]
    num_done, found = 0, []
    for relations in groups:
        part = replace(scope, relations=relations)

        def count(done: int, _: int, before: int = num_done) -> None:
            if progress is not None:
                progress(before + done, num_all)

        found.append(best_facts(snapshot, part, settings, count))
        num_done += size_of(snapshot, part)
    scores = np.concatenate([np.empty(0), *(scores for scores, _ in found)])
    triples = np.concatenate([NOTHING, *(triples for _, triples in found)])
    columns: dict[str, FloatArray] = {}
    order = np.argsort(-scores, kind="stable")
    if settings.calibrated is not None:
        probability = settings.calibrated(snapshot, triples, scores, True)
        order = np.lexsort((-scores, -probability))
        order = order[probability[order] >= settings.min_probability]
        columns["probability"] = probability
    order = order[: settings.top]
    return pa.table(
        named_triples(names, *triples[order].T)
        | {
            "score": pa.array(scores[order].astype(np.float32)),
            "rank": pa.array(np.arange(1, len(order) + 1, dtype=np.int32)),
        }
        | {name: pa.array(column[order]) for name, column in columns.items()},
        schema=settings.schema,
    )


def scores_queries(snapshot: Scoring) -> bool:
    """Whether every query (head, relation, ?) is scored: scores are no products of vectors."""
    return snapshot.vector_scores() is None


def size_of(snapshot: Scoring, scope: Scope) -> int:
    """The number of queries that are scored, or of relations that are searched."""
    if not scores_queries(snapshot):
        return len(scope.relations)
    return sum(len(scope.heads(snapshot, each)) for each in scope.relations)


def warn_of_many(num_queries: int) -> None:
    """Log how many queries have to be scored, if that takes long."""
    if num_queries > MANY_QUERIES:
        log.warning(
            "the scores of this model are not products of vectors, so all %s queries "
            "(head, relation, ?) are scored; name relations, heads or tails to search fewer",
            f"{num_queries:,}",
        )


def scope_of(snapshot: Scoring, settings: DiscoverSettings) -> Scope:
    names, present = snapshot.dataset.names, snapshot.candidates.is_present
    relations = list(range(len(names.relations)))
    if settings.relations is not None:
        relations = sorted({direct_relation(names, name) for name in settings.relations})
    ends = []
    for chosen in (settings.heads, settings.tails):
        is_wanted = present
        if chosen is not None:
            is_wanted = np.zeros_like(present)
            is_wanted[names.node_ids(list(chosen))] = True
            is_wanted &= present
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
    snapshot: Scoring, scope: Scope, settings: DiscoverSettings, progress: Progress
) -> tuple[FloatArray, LongArray]:
    """Scores and triples of the best missing facts, best first.

    With `per_node`, facts are taken in the order of their scores, unless an end of the fact has
    enough of them already. They are found in rounds: nodes that have enough are left out of the
    next one, so that every round finds facts that count.
    """
    if settings.per_node is None:
        return search(snapshot, scope, settings.top, settings, NOTHING, progress)
    scores, triples = np.empty(0), NOTHING
    number = np.zeros(len(scope.is_head), np.int64)
    at_once = max(settings.top, ROUND_FACTS)
    while len(scores) < settings.top:
        found = search(snapshot, scope, at_once, settings, triples, progress)
        taken = take_few(found[1], number, settings.per_node)
        scores = np.concatenate([scores, found[0][taken]])
        triples = np.concatenate([triples, found[1][taken]])
        if len(found[0]) < at_once:
            break
        is_open = number < settings.per_node
        scope = replace(scope, is_head=scope.is_head & is_open, is_tail=scope.is_tail & is_open)
    return scores[: settings.top], triples[: settings.top]


def take_few(triples: LongArray, number: LongArray, most: int) -> LongArray:
    """Positions of the facts that are taken in order; `number` of facts by node is updated."""
    taken = []
    for place, (head, _, tail) in enumerate(triples.tolist()):
        if number[head] < most and number[tail] < most:
            taken.append(place)
            number[head] += 1
            number[tail] += head != tail
    return np.array(taken, np.int64)


def search(
    snapshot: Scoring,
    scope: Scope,
    most: int,
    settings: DiscoverSettings,
    taken: LongArray,  # facts that are not to be found again
    progress: Progress,
) -> tuple[FloatArray, LongArray]:
    """Scores and triples of the best missing facts of a scope, `most` of them, best first."""
    start = float(np.nextafter(settings.min_score, -np.inf))
    best, allowed = Best(most, start), allowed_facts(snapshot, taken)
    vectors = snapshot.vector_scores()
    if vectors is None:
        num_done = 0
        for relation in scope.relations:

            def count(done: int, _: int, before: int = num_done) -> None:
                progress(before + done, 0)

            search_queries(snapshot, scope, relation, best, allowed, settings.memory_budget, count)
            num_done += len(scope.heads(snapshot, relation))
    else:
        sampled = Best(most, start)
        for relation in scope.relations:
            sample_pairs(pairs_of(snapshot, scope, relation, vectors), sampled, allowed)
        sampled.settle()
        if len(sampled.scores) == most:
            best.least = max(start, sampled.least - ROUNDING * (1 + abs(sampled.least)))
        for done, relation in enumerate(scope.relations, start=1):
            search_pairs(pairs_of(snapshot, scope, relation, vectors), best, allowed)
            progress(done, len(scope.relations))
    best.settle()
    return best.scores, best.triples


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
    memory_budget: int,
    progress: Progress | None = None,
) -> None:
    """Add the best facts of a relation by the scores of all nodes, query by query.

    `progress` gets the number of queries done, and that of all.
    """
    heads, tails = scope.heads(snapshot, relation), scope.tails(snapshot, relation)
    fitting = memory_budget // (16 * max(1, snapshot.dataset.num_nodes))
    columns = torch.from_numpy(tails).to(snapshot.device)
    start = 0
    while start < len(heads):
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
        if progress is not None:
            progress(min(start, len(heads)), len(heads))
