"""Completion of facts with one part left out, by name, with the scores of any model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nodepiece.data.dataset import SPLITS, Dataset
from nodepiece.errors import InputError
from nodepiece.graph.arrays import FloatArray, IntArray
from nodepiece.graph.names import Names
from nodepiece.inference.forked import refuse_after_fork
from nodepiece.inference.opened_run import Prediction, Run


@dataclass(frozen=True)
class Query:
    """A fact with one part left out, by ids."""

    first: int  # the given node; the head, where the relation of a pair is predicted
    second: int  # a relation, maybe an inverse; the tail, where the relation is predicted
    is_relation_query: bool


class Answering(Protocol):
    """An immutable state from which a run answers queries."""

    @property
    def dataset(self) -> Dataset:
        """Whose names are understood, and what is known."""

    def scores(self, query: Query) -> FloatArray:
        """Scores of all nodes, or of all relations and inverses; the caller may change them."""


class FactRun(Run):
    """Completes facts of a dataset by the scores of a model."""

    @property
    def snapshot(self) -> Answering:
        """The current state of the run. A method reads it once."""
        raise NotImplementedError

    @property
    def dataset(self) -> Dataset:
        """Whose names are understood, and what is known."""
        return self.snapshot.dataset

    def predict(
        self,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        top: int = 10,
        include_known: bool = False,
    ) -> list[Prediction]:
        """The likeliest answers to a fact with one part left out, best first, by name.

        Give two of head, relation and tail. Known facts are left out unless `include_known`. The
        node of a query is not one of its answers, unless training has facts with the relation
        from a node to itself.
        """
        refuse_after_fork()
        if top < 1:
            raise InputError(f"top must be at least 1, got {top}")
        snapshot = self.snapshot
        dataset = snapshot.dataset
        query = query_of(dataset.names, head, relation, tail)
        known = stated_answers(dataset, query, SPLITS)
        scores = snapshot.scores(query)
        if not include_known:
            scores[known] = -np.inf
        if not (query.is_relation_query or has_loops(dataset, query.second)):
            scores[query.first] = -np.inf
        name_of = dataset.names.relation if relation is None else dataset.names.node
        order = best_first(scores, top)
        return [
            Prediction(name_of(answer), float(scores[answer]), bool(np.isin(answer, known)))
            for answer in order.tolist()
            if np.isfinite(scores[answer])
        ]

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
