"""Many queries answered at once, as a table: as fast as ranking, in bounded memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.data.column_names import ROLES
from nodepiece.data.dataset import Dataset
from nodepiece.data.query_rows import NumberedParts
from nodepiece.decoders.path_scorers import PathGraph, PathScorers
from nodepiece.decoders.triple_scores import VectorScores
from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress, expand_runs, query_batches
from nodepiece.evaluation.top_scores import TopScores, top_scores
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray
from nodepiece.graph.names import INVERSE_PREFIX, Names
from nodepiece.inference.candidates import Candidates
from nodepiece.inference.queries import (
    HEAD,
    RELATION,
    QueryIds,
    Refused,
    chunks,
    encode_queries,
    removed_node,
)

ROWS_AT_ONCE = 1 << 20  # answers in memory, of one query at least

OnRefused = Callable[[Refused], None]
Calibrated = Callable[["Scoring", LongArray, FloatArray, bool], FloatArray]
"""Probabilities of triples from their scores, which are those of the same snapshot.

The last argument: with a calibration for each relation.
"""


class BestTails(Protocol):
    """Finds the best tails without the scores of all nodes."""

    def find(
        self,
        snapshot: "Scoring",
        heads: LongArray,
        relations: LongArray,
        settings: "AnswerSettings",
    ) -> tuple[NDArray[np.bool_], TopScores]:
        """Which queries it answers, (num_queries,), and their best tails.

        The rows of the latter count the queries that are answered.
        """


class Scoring(Protocol):
    """An immutable state that scores many queries at once."""

    @property
    def dataset(self) -> Dataset:
        """The names of nodes and relations, and the known facts."""

    @property
    def candidates(self) -> Candidates:
        """Which answers queries may have."""

    @property
    def device(self) -> torch.device:
        """Where scores are computed."""

    @property
    def scorers(self) -> PathScorers:
        """The path scorers of the model; there may be none."""

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Scores of all nodes: (batch,) ids twice -> (batch, num_nodes)."""

    def score_relations(self, heads: Tensor, tails: Tensor) -> Tensor:
        """Scores of all relations and inverses: (batch,) ids twice -> (batch, num_relations)."""

    def vector_scores(self) -> VectorScores | None:
        """What scores are computed from; None: they are no products or distances of vectors."""

    def vectors_alone(self) -> VectorScores | None:
        """What scores are computed from, without path scorers; None as in `vector_scores`."""

    def path_graph(self) -> PathGraph:
        """The graph that path scorers follow."""

    def path_relation(self, relation: int) -> int:
        """The id that a relation, maybe an inverse, has in `path_graph`."""


@dataclass(frozen=True)
class AnswerSettings:
    """Which answers a query gets."""

    top: int = 10
    include_known: bool = False  # also answers that known facts state
    seen_candidates: bool = False  # only nodes that the graph has at that end of the relation
    memory_budget: int = 2**30  # bytes for scores
    calibrated: Calibrated | None = None  # None: without probabilities
    approximate: "BestTails | None" = None  # finds most of the best tails; None: all scores

    def __post_init__(self) -> None:
        if self.top < 1:
            raise InputError(f"top must be at least 1, got {self.top}")

    @property
    def schema(self) -> pa.Schema:
        """The columns of a table of answers."""
        fields = [
            ("query", pa.int64()),
            ("asked", pa.string()),
            *((role, pa.string()) for role in ROLES),
            ("score", pa.float32()),
            ("rank", pa.int32()),
        ]
        fields += [("probability", pa.float64())] if self.calibrated is not None else []
        return pa.schema(fields + ([("known", pa.bool_())] if self.include_known else []))


def answer_in_batches(
    snapshot: Scoring,
    rows: Iterable[NumberedParts],
    settings: AnswerSettings,
    *,
    on_refused: OnRefused,
    progress: Progress | None = None,
) -> Iterator[pa.Table]:
    """Tables of answers to queries, in the order of the queries.

    `query` is the number of the query, `asked` the part that was asked for. Queries that cannot be
    answered are passed to `on_refused`. `progress` gets the number of queries done, and 0.
    """
    names = snapshot.dataset.names
    most = max(len(names.nodes), 2 * len(names.relations))
    at_once = max(1, ROWS_AT_ONCE // max(1, min(settings.top, most)))
    num_done, num_refused = 0, 0
    for chunk in chunks(rows):
        queries, refused = encode_queries(names, chunk, num_refused)
        queries, removed = without_removed(snapshot, queries)
        refused = sorted(refused + removed)
        num_refused += len(refused)
        for each in refused:
            on_refused(each)
        for start in range(0, len(queries), at_once):
            yield answer(snapshot, part_of(queries, start, start + at_once), settings)
        num_done += len(chunk)
        if progress is not None:
            progress(num_done, 0)


def without_removed(snapshot: Scoring, queries: QueryIds) -> tuple[QueryIds, list[Refused]]:
    """The queries without those that name a removed node, and the latter."""
    absent = snapshot.candidates.absent
    if not len(absent):
        return queries, []
    is_gone = np.isin(queries.first, absent)
    is_tail_gone = (queries.asked == RELATION) & np.isin(queries.second, absent)
    nodes = np.where(is_gone, queries.first, queries.second)
    is_gone |= is_tail_gone
    names = snapshot.dataset.names
    refused = [
        Refused(number, removed_node(names.node(node)), True)
        for number, node in zip(
            queries.number[is_gone].tolist(), nodes[is_gone].tolist(), strict=True
        )
    ]
    kept = ~is_gone
    left = QueryIds(
        queries.number[kept], queries.first[kept], queries.second[kept], queries.asked[kept]
    )
    return left, refused


def part_of(queries: QueryIds, start: int, stop: int) -> QueryIds:
    part = slice(start, stop)
    return QueryIds(
        queries.number[part], queries.first[part], queries.second[part], queries.asked[part]
    )


def answer(snapshot: Scoring, queries: QueryIds, settings: AnswerSettings) -> pa.Table:
    """A table of the answers to some queries, query by query, best first."""
    for_relations = np.flatnonzero(queries.asked == RELATION)
    for_nodes = np.flatnonzero(queries.asked != RELATION)
    found = [
        best_answers(snapshot, queries, places, settings)
        for places in (for_nodes, for_relations)
        if len(places)
    ]
    if not found:
        return settings.schema.empty_table()
    columns = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    order = np.argsort(columns[0], kind="stable")  # both kinds of queries in their order
    row, place, candidate, score, is_known = (column[order] for column in columns)
    found_columns = as_columns(snapshot.dataset.names, queries, row, candidate)
    found_columns |= {"score": pa.array(score), "rank": pa.array(place)}
    if settings.calibrated is not None:
        probability = probability_of(snapshot, queries, row, candidate, score, settings.calibrated)
        found_columns["probability"] = pa.array(probability)
    if settings.include_known:
        found_columns["known"] = pa.array(is_known)
    return pa.table(found_columns, schema=settings.schema)


def probability_of(
    snapshot: Scoring,
    queries: QueryIds,
    row: LongArray,
    answers: IntArray,
    scores: NDArray[np.float32],
    calibrated: Calibrated,
) -> FloatArray:
    """The probability of every answer, in the direction in which it was scored."""
    first, second, is_relation = queries.first[row], queries.second[row], queries.asked[row]
    is_relation = is_relation == RELATION
    triples = np.stack([first, second, answers], axis=1)
    triples[is_relation] = triples[is_relation][:, [0, 2, 1]]
    result = np.empty(len(row))
    for chosen, by_relation in ((is_relation, False), (~is_relation, True)):
        given = scores[chosen].astype(float)
        result[chosen] = calibrated(snapshot, triples[chosen], given, by_relation)
    return result


Found = tuple[LongArray, IntArray, IntArray, NDArray[np.float32], NDArray[np.bool_]]


def mostly_best(
    snapshot: Scoring,
    queries: QueryIds,
    places: LongArray,
    settings: AnswerSettings,
    approximate: BestTails,
) -> Found:
    """`best_answers` from an index, and from all scores where that does not answer."""
    first, second = queries.first[places], queries.second[places]
    is_found, best = approximate.find(snapshot, first, second, settings)
    heads, relations = first[is_found][best.row], second[is_found][best.row]
    triples = np.stack([heads, relations, best.candidate.astype(np.int64)], axis=1)
    is_known = snapshot.candidates.known_tails.contains(triples)
    found: Found = places[is_found][best.row], best.place, best.candidate, best.score, is_known
    if is_found.all():
        return found
    exact = replace(settings, approximate=None)
    others = best_answers(snapshot, queries, places[~is_found], exact)
    return (
        np.concatenate([found[0], others[0]]),
        np.concatenate([found[1], others[1]]),
        np.concatenate([found[2], others[2]]),
        np.concatenate([found[3], others[3]]),
        np.concatenate([found[4], others[4]]),
    )


def best_answers(
    snapshot: Scoring, queries: QueryIds, places: LongArray, settings: AnswerSettings
) -> Found:
    """Position of the query, rank, answer, score and whether it is known, of all answers."""
    is_relation_query = bool(queries.asked[places[0]] == RELATION)
    if settings.approximate is not None and not is_relation_query:
        return mostly_best(snapshot, queries, places, settings, settings.approximate)
    candidates = snapshot.candidates
    known = candidates.known_relations if is_relation_query else candidates.known_tails
    score_all = snapshot.score_relations if is_relation_query else snapshot.score_tails
    first, second = queries.first[places], queries.second[places]
    start, num_known = known.find(first, second)
    parts: list[TopScores] = []
    flags = []
    budget = settings.memory_budget
    for batch in query_batches(num_known, known.num_candidates, budget, snapshot.device):
        scores = score_all(torch.from_numpy(first[batch]), torch.from_numpy(second[batch]))
        rows, position = expand_runs(
            torch.from_numpy(start[batch]),
            torch.from_numpy(num_known[batch]),
            int(num_known[batch].sum()),
        )
        answers = torch.from_numpy(known.answers_at(position.numpy())).long()
        if not settings.include_known:
            scores[rows, answers] = -torch.inf
        if not is_relation_query:
            leave_out(scores, candidates, first[batch], second[batch], settings)
        best = top_scores(scores, settings.top)
        flags.append(is_stated(best, rows, answers, known.num_candidates, settings))
        parts.append(best._replace(row=best.row + batch.start))
    row, place, candidate, score = (np.concatenate(each) for each in zip(*parts, strict=True))
    return places[row], place, candidate, score, np.concatenate(flags)


def is_stated(
    best: TopScores, rows: Tensor, answers: Tensor, num_candidates: int, settings: AnswerSettings
) -> NDArray[np.bool_]:
    """Whether each of the best is among the known answers (row, answer)."""
    if not settings.include_known:
        return np.zeros(len(best.row), np.bool_)
    stated = rows.numpy() * num_candidates + answers.numpy()
    return np.isin(best.row * num_candidates + best.candidate, stated)


def leave_out(
    scores: Tensor,
    candidates: Candidates,
    first: LongArray,
    second: LongArray,
    settings: AnswerSettings,
) -> None:
    """Set scores to -inf: of the given node unless the relation has loops, and of unseen nodes."""
    alone = np.flatnonzero(~candidates.has_loops[second])
    scores[torch.from_numpy(alone), torch.from_numpy(first[alone])] = -torch.inf
    if not settings.seen_candidates:
        return
    for row, relation in enumerate(second.tolist()):
        seen = torch.from_numpy(candidates.seen_tails(relation).astype(np.int64))
        kept = scores[row, seen]
        scores[row] = -torch.inf
        scores[row, seen] = kept


def as_columns(
    names: Names, queries: QueryIds, row: LongArray, answers: IntArray
) -> dict[str, pa.Array]:
    """The columns query, asked, head, relation and tail, by name."""
    asked, num_relations = queries.asked[row], len(names.relations)
    first, second = queries.first[row], queries.second[row]
    heads = np.where(asked == HEAD, answers, first)
    inverse = (second + num_relations) % (2 * max(1, num_relations))
    relations = np.where(asked == HEAD, inverse, np.where(asked == RELATION, answers, second))
    tails = np.where(asked == HEAD, first, np.where(asked == RELATION, second, answers))
    return {
        "query": pa.array(queries.number[row]),
        "asked": pa.array(ROLES, pa.string()).take(pa.array(asked)),
    } | named_triples(names, heads, relations, tails)


def named_triples(
    names: Names, heads: LongArray, relations: LongArray, tails: LongArray
) -> dict[str, pa.StringArray]:
    """The columns head, relation and tail by name; ids from num_relations on are inverses."""
    direct = names.relations.cast(pa.string())
    inverses = pc.binary_join_element_wise(INVERSE_PREFIX, direct, "")
    all_relations = pa.concat_arrays([direct, inverses])
    columns = (names.nodes, all_relations, names.nodes)
    return {
        role: column.take(pa.array(ids)).cast(pa.string())
        for role, column, ids in zip(ROLES, columns, (heads, relations, tails), strict=True)
    }
