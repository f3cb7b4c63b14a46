"""A trained run that answers by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nodepiece.data.dataset import Dataset
from nodepiece.decoders.link_model import LinkModel
from nodepiece.errors import InputError
from nodepiece.evaluation.metrics import RankingReport
from nodepiece.evaluation.ranking import Progress
from nodepiece.graph.arrays import FloatArray, IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.settings import Experiment
from nodepiece.tasks.judge import Judge
from nodepiece.tasks.link_prediction import load_model
from nodepiece.tasks.run_folder import SPLITS, read_config, read_facts
from nodepiece.tasks.train import choose_device, train_experiment


@dataclass(frozen=True)
class Prediction:
    """One possible answer. Higher scores are more plausible; only their order has a meaning."""

    name: str
    score: float
    is_known: bool  # stated in the training, validation or test facts

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "score": self.score, "known": self.is_known}


@dataclass(frozen=True)
class Question:
    """A fact with one part left out, by ids."""

    first: int  # the node asked about; the head, where the relation of a pair is asked for
    second: int  # a relation, maybe an inverse; the tail, where the relation is asked for
    asks_relation: bool


class Run:
    """A run folder opened for questions. Node vectors are computed once, at the first one."""

    def __init__(
        self, folder: Path, experiment: Experiment, dataset: Dataset, model: LinkModel
    ) -> None:
        self.folder, self.experiment, self.dataset, self.model = folder, experiment, dataset, model

    @cached_property
    def vectors(self) -> Tensor:
        """(num_nodes, dim), in the order of the node names."""
        with torch.no_grad():
            return self.model.node_vectors()

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
        scores = self._scores(question)
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

    def evaluate(self, split: str = "test", *, progress: Progress | None = None) -> RankingReport:
        """Filtered ranking of the facts of a split, as when the run was trained."""
        facts = self.dataset.part(split)
        if not len(facts):
            raise InputError(f"{self.folder} has no {split} facts; choose another split")
        return Judge(self.experiment, self.dataset).report(self.model, facts, progress)

    def to(self, device: torch.device | str) -> "Run":
        """The same run on another device."""
        self.__dict__.pop("vectors", None)
        self.model.to(device)
        return self

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

    def _scores(self, question: Question) -> FloatArray:
        """Of all nodes, or of all relations and their inverses."""
        score_all: Callable[[Tensor, Tensor, Tensor], Tensor] = (
            self.model.score_all_relations if question.asks_relation else self.model.score_all_tails
        )
        first, second = torch.tensor(
            [[question.first], [question.second]], device=self.vectors.device
        )
        with torch.no_grad():
            return score_all(first, second, self.vectors)[0].double().cpu().numpy()

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


def load(folder: str | Path, *, device: torch.device | str = "cpu") -> Run:
    """Open a finished run folder."""
    path = Path(folder)
    experiment, dataset = read_config(path), read_facts(path)
    return Run(path, experiment, dataset, load_model(path, experiment, dataset).to(device))


def train(
    experiment: str | Path | Experiment,
    output: str | Path,
    *,
    data: str | Path | None = None,
    device: str | None = None,
    resume: bool = False,
    overrides: Sequence[str] = (),
) -> Run:
    """Train and evaluate an experiment, and open the run folder it wrote.

    `experiment` is a record, a TOML file, or a name such as "fb15k-237-paper"; `overrides` change
    settings of the latter two, such as "training.epochs=5". An earlier run in `output` is replaced;
    with `resume` it goes on from its checkpoint instead. `history.jsonl` in `output` has a line
    for every epoch that is done, `metrics.json` the result.
    """
    if isinstance(experiment, Experiment) and overrides:
        raise InputError(
            "overrides change an experiment given by name or file; "
            "change a record with dataclasses.replace"
        )
    train_experiment(
        experiment,
        Path(output),
        data=None if data is None else Path(data),
        overrides=overrides,
        device=device,
        resume=resume,
    )
    return load(output, device=choose_device(device))
