"""Facts with one part left out, completed by name, whichever model scores them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodepiece.data.dataset import Dataset
from nodepiece.errors import InputError
from nodepiece.graph.arrays import FloatArray, IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.inference.opened_run import Prediction, Run
from nodepiece.tasks.run_folder import SPLITS


@dataclass(frozen=True)
class Question:
    """A fact with one part left out, by ids."""

    first: int  # the node asked about; the head, where the relation of a pair is asked for
    second: int  # a relation, maybe an inverse; the tail, where the relation is asked for
    asks_relation: bool


class FactRun(Run):
    """Completes facts of a dataset by the scores of a model."""

    dataset: Dataset  # whose names are understood, and what is known

    def scores(self, question: Question) -> FloatArray:
        """Of all nodes, or of all relations and their inverses; the caller may change them."""
        raise NotImplementedError

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

        Give two of head, relation and tail. Facts that are known already are left out unless
        `include_known`. A node is no answer to a question about itself, unless training has facts
        with the relation that lead from a node to itself.
        """
        if top < 1:
            raise InputError(f"top must be at least 1, got {top}")
        question = self._question(head, relation, tail)
        known = self._stated(question, SPLITS)
        scores = self.scores(question)
        if not include_known:
            scores[known] = -np.inf
        if not (question.asks_relation or self._has_loops(question.second)):
            scores[question.first] = -np.inf
        name_of = self.dataset.names.relation if relation is None else self.dataset.names.node
        order = np.argsort(-scores, kind="stable")[:top]
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
        """The answers that facts of the run state, by name: what `predict` leaves out."""
        answers = self._stated(self._question(head, relation, tail), splits)
        name_of = self.dataset.names.relation if relation is None else self.dataset.names.node
        return [name_of(answer) for answer in answers.tolist()]

    def _question(self, head: str | None, relation: str | None, tail: str | None) -> Question:
        names = self.dataset.names
        match head, relation, tail:
            case str(), str(), None:
                return Question(names.node_id(head), names.relation_id(relation), False)
            case None, str(), str():  # asked as the tail of the inverse relation
                num_relations = len(names.relations)
                inverse = (names.relation_id(relation) + num_relations) % (2 * num_relations)
                return Question(names.node_id(tail), inverse, False)
            case str(), None, str():
                return Question(names.node_id(head), names.node_id(tail), True)
        raise InputError("give exactly two of head, relation and tail; the third is predicted")

    def _stated(self, question: Question, splits: Sequence[str]) -> IntArray:
        """The answers among the facts of some splits and their inverses, each once."""
        edges = np.concatenate([self._edges(split) for split in splits])
        head, relation, tail = edges.T
        second, answer = (tail, relation) if question.asks_relation else (relation, tail)
        return np.unique(answer[(head == question.first) & (second == question.second)])

    def _edges(self, split: str) -> IntArray:
        graph = self.dataset.train
        facts = KnowledgeGraph(self.dataset.part(split), graph.num_nodes, graph.num_relations)
        return with_inverses(facts)

    def _has_loops(self, relation: int) -> bool:
        head, relations, tail = self.dataset.train.triples.T
        is_asked = relations == relation % len(self.dataset.names.relations)
        return bool((head[is_asked] == tail[is_asked]).any())
