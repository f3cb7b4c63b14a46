"""Completion of facts with one part left out, by name, with the scores of any model."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from nodepiece.data.dataset import SPLITS, Dataset
from nodepiece.data.query_rows import NumberedParts, numbered
from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray
from nodepiece.graph.names import Names, UnknownName
from nodepiece.inference.bulk import (
    AnswerSettings,
    Calibrated,
    OnRefused,
    Scoring,
    answer_in_batches,
)
from nodepiece.inference.discover import DiscoverSettings, discover_facts
from nodepiece.inference.explanation import Explanation
from nodepiece.inference.forked import refuse_after_fork
from nodepiece.inference.opened_run import Prediction, Run, node_list
from nodepiece.inference.queries import Refused, removed_node
from nodepiece.inference.score_facts import score_in_batches, score_schema
from nodepiece.inference.search_progress import ShouldStop


@dataclass(frozen=True)
class Query:
    """A fact with one part left out, by ids."""

    first: int  # the given node; the head, where the relation of a pair is predicted
    second: int  # a relation, maybe an inverse; the tail, where the relation is predicted
    is_relation_query: bool


class FactSnapshot(Scoring, Protocol):
    """An immutable state from which a run answers queries."""

    def scores(self, query: Query) -> FloatArray:
        """Scores of all nodes, or of all relations and inverses; the caller may change them."""


class FactRun(Run):
    """Completes facts of a dataset by the scores of a model."""

    @property
    def snapshot(self) -> FactSnapshot:
        """The current state of the run. A method reads it once."""
        raise NotImplementedError

    @property
    def dataset(self) -> Dataset:
        """The names of nodes and relations, and the known facts."""
        return self.snapshot.dataset

    def predict(
        self,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        top: int = 10,
        include_known: bool = False,
        seen_candidates: bool = False,
    ) -> list[Prediction]:
        """The likeliest answers to a fact with one part left out, best first, by name.

        Give two of head, relation and tail. Known facts are left out unless `include_known`. The
        node of a query is not one of its answers, unless training has facts with the relation
        from a node to itself. `seen_candidates`: only nodes that the graph has at that end of the
        relation.
        """
        refuse_after_fork()
        if top < 1:
            raise InputError(f"top must be at least 1, got {top}")
        snapshot = self.snapshot
        dataset = snapshot.dataset
        query = query_of(dataset.names, head, relation, tail)
        refuse_removed(snapshot, query)
        known = stated_answers(dataset, query, SPLITS)
        scores = snapshot.scores(query)
        if not include_known:
            scores[known] = -np.inf
        if not (query.is_relation_query or has_loops(dataset, query.second)):
            scores[query.first] = -np.inf
        if seen_candidates and not query.is_relation_query:
            is_seen = np.zeros(len(scores), np.bool_)
            is_seen[snapshot.candidates.seen_tails(query.second)] = True
            scores[~is_seen] = -np.inf
        name_of = dataset.names.relation if relation is None else dataset.names.node
        order = best_first(scores, top)
        order = order[np.isfinite(scores[order])]
        probabilities = self._probabilities(snapshot, query, order, scores[order])
        return [
            Prediction(name_of(answer), float(scores[answer]), bool(is_known), probability)
            for answer, is_known, probability in zip(
                order.tolist(), np.isin(order, known), probabilities, strict=True
            )
        ]

    def _probabilities(
        self, snapshot: Scoring, query: Query, answers: IntArray, scores: FloatArray
    ) -> Sequence[float | None]:
        """The probability of each answer to a query; None if the run is not calibrated."""
        calibrated = self.calibrated
        if calibrated is None:
            return [None] * len(answers)
        triples = np.empty((len(answers), 3), np.int64)
        triples[:, 0] = query.first
        given, asked = (2, 1) if query.is_relation_query else (1, 2)
        triples[:, given], triples[:, asked] = query.second, answers
        by_relation = not query.is_relation_query
        found: list[float] = calibrated(snapshot, triples, scores, by_relation).tolist()
        return found

    def predict_many(
        self,
        queries: object,
        *,
        top: int = 10,
        include_known: bool = False,
        seen_candidates: bool = False,
        skip_unknown: bool = False,
        progress: Progress | None = None,
    ) -> pa.Table:
        refuse_after_fork()
        settings = self.answer_settings(top, include_known, seen_candidates)
        tables = self.answer_many(
            numbered(queries),
            settings,
            on_refused=lambda refused: raise_unless(skip_unknown, refused, "query"),
            progress=progress,
        )
        return pa.concat_tables([settings.schema.empty_table(), *tables])

    def answer_settings(
        self, top: int, include_known: bool = False, seen_candidates: bool = False
    ) -> AnswerSettings:
        budget = self.experiment.evaluation.memory_budget
        return AnswerSettings(top, include_known, seen_candidates, budget, self.calibrated)

    def answer_many(
        self,
        rows: Iterable[NumberedParts],
        settings: AnswerSettings,
        *,
        on_refused: OnRefused,
        progress: Progress | None = None,
    ) -> Iterator[pa.Table]:
        """Tables of answers to any number of queries, one after the other."""
        return answer_in_batches(
            self.snapshot, rows, settings, on_refused=on_refused, progress=progress
        )

    def score(
        self, facts: object, *, skip_unknown: bool = False, progress: Progress | None = None
    ) -> pa.Table:
        refuse_after_fork()
        tables = self.score_many(
            numbered(facts),
            on_refused=lambda refused: raise_unless(skip_unknown, refused, "fact"),
            progress=progress,
        )
        return pa.concat_tables([score_schema(self.calibrated).empty_table(), *tables])

    def score_many(
        self,
        rows: Iterable[NumberedParts],
        *,
        on_refused: OnRefused,
        progress: Progress | None = None,
    ) -> Iterator[pa.Table]:
        """Tables of scores and ranks of any number of facts, one after the other."""
        return score_in_batches(
            self.snapshot,
            rows,
            memory_budget=self.experiment.evaluation.memory_budget,
            on_refused=on_refused,
            calibrated=self.calibrated,
            progress=progress,
        )

    def discover(
        self,
        *,
        top: int = 1000,
        relations: Sequence[str] | None = None,
        heads: Sequence[str] | None = None,
        tails: Sequence[str] | None = None,
        per_node: int | None = None,
        min_score: float = -np.inf,
        min_probability: float = 0.0,
        any_candidate: bool = False,
        exact: bool | None = None,
        progress: Progress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> pa.Table:
        refuse_after_fork()
        settings = DiscoverSettings(
            top,
            None if relations is None else node_list(relations),
            None if heads is None else node_list(heads),
            None if tails is None else node_list(tails),
            per_node,
            min_score,
            min_probability,
            any_candidate,
            self.experiment.evaluation.memory_budget,
            self.calibrated,
            exact,
        )
        return discover_facts(self.snapshot, settings, progress=progress, should_stop=should_stop)

    def explain(
        self,
        *,
        head: str,
        relation: str,
        tail: str,
        paths: int = 5,
        pieces: int = 8,
        facts: int = 4,
        similar: int = 5,
    ) -> Explanation:
        from nodepiece.inference.explain import ExplainSettings, explain_fact  # imports this file

        refuse_after_fork()
        for part, value in (("head", head), ("relation", relation), ("tail", tail)):
            if not isinstance(value, str):
                raise InputError(f"{part} must be one name, got {value!r}; explain a whole fact")
        settings = ExplainSettings(paths, pieces, facts, similar)
        return explain_fact(self.snapshot, head, relation, tail, settings, self.calibrated)

    @property
    def calibrated(self) -> Calibrated | None:
        """Probabilities of scores; None: the run has no calibration."""
        from nodepiece.inference.calibration import probabilities  # imports this file

        def calibrated(
            snapshot: Scoring, triples: LongArray, scores: FloatArray, by_relation: bool
        ) -> FloatArray:
            ids = triples.astype(np.int32)
            found = probabilities(self, ids, scores, snapshot=snapshot, by_relation=by_relation)
            return np.full(len(scores), np.nan) if found is None else found

        nothing = np.empty((0, 3), np.int32), np.empty(0)
        return None if probabilities(self, *nothing) is None else calibrated

    def known(
        self,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        splits: Sequence[str] = SPLITS,
    ) -> list[str]:
        """The known answers to a query, by name, which `predict` leaves out."""
        dataset = self.snapshot.dataset
        query = query_of(dataset.names, head, relation, tail)
        answers = stated_answers(dataset, query, splits)
        name_of = dataset.names.relation if relation is None else dataset.names.node
        return [name_of(answer) for answer in answers.tolist()]


def fact_run(run: Run) -> FactRun:
    """The run itself; one that completes no facts is refused."""
    if not isinstance(run, FactRun):
        raise InputError(run.no_facts())
    return run


def raise_unless(skip_unknown: bool, refused: Refused, noun: str) -> None:
    """Raise an InputError for a refused query or fact; `skip_unknown` accepts unknown names."""
    if not (skip_unknown and refused.is_unknown):
        raise InputError(f"{noun} {refused.number}: {refused.reason}")


def query_of(names: Names, head: str | None, relation: str | None, tail: str | None) -> Query:
    """Convert a query by name to one by ids."""
    for part, value in (("head", head), ("relation", relation), ("tail", tail)):
        if not isinstance(value, str | None):
            raise InputError(f"{part} must be one name, got {value!r}; query one fact at a time")
    match head, relation, tail:
        case str(), str(), None:
            return Query(names.node_id(head), names.relation_id(relation), False)
        case None, str(), str():  # predicted as the tail of the inverse relation
            num_relations = len(names.relations)
            inverse = (names.relation_id(relation) + num_relations) % (2 * num_relations)
            return Query(names.node_id(tail), inverse, False)
        case str(), None, str():
            return Query(names.node_id(head), names.node_id(tail), True)
    raise InputError("give exactly two of head, relation and tail; the third is predicted")


def refuse_removed(snapshot: Scoring, query: Query) -> None:
    """Refuse a query with a node that was removed from the graph."""
    nodes = (query.first, query.second) if query.is_relation_query else (query.first,)
    for node in nodes:
        if node in snapshot.candidates.absent:
            raise UnknownName(removed_node(snapshot.dataset.names.node(node)))


def stated_answers(dataset: Dataset, query: Query, splits: Sequence[str]) -> IntArray:
    """The answers among the facts of some splits and their inverses, each once."""
    num_relations = len(dataset.names.relations)
    answers = [np.empty(0, np.int32)]
    for split in splits:
        head, relation, tail = dataset.part(split).T
        for start, end, inverse in ((head, tail, 0), (tail, head, num_relations)):
            mine = np.flatnonzero(start == query.first)  # few, so no copy of all facts
            label, other = relation[mine] + np.int32(inverse), end[mine]
            second, answer = (other, label) if query.is_relation_query else (label, other)
            answers.append(answer[second == query.second])
    return np.unique(np.concatenate(answers))


def has_loops(dataset: Dataset, relation: int) -> bool:
    """Whether training has facts with the relation that lead from a node to itself."""
    head, relations, tail = dataset.train.triples.T
    with_relation = np.flatnonzero(relations == relation % len(dataset.names.relations))
    return bool((head[with_relation] == tail[with_relation]).any())


def best_first(scores: FloatArray, top: int) -> IntArray:
    """The indices of the largest scores; equal scores are ordered by index."""
    if top < len(scores):
        least = np.partition(scores, len(scores) - top)[len(scores) - top]
        places = np.flatnonzero(scores >= least)
    else:
        places = np.arange(len(scores))
    order = np.argsort(-scores[places], kind="stable")[:top]
    return places[order].astype(np.int32)
