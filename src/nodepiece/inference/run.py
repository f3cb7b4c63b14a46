"""A trained run that answers by name."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nodepiece.data.dataset import Dataset
from nodepiece.decoders.link_model import LinkModel
from nodepiece.errors import InputError
from nodepiece.evaluation.known_answers import KnownAnswers, known_relations, known_tails
from nodepiece.evaluation.metrics import RankingReport
from nodepiece.evaluation.ranking import Progress
from nodepiece.settings import Experiment
from nodepiece.tasks.link_prediction import Judge, load_model
from nodepiece.tasks.run_folder import read_config, read_facts


@dataclass(frozen=True)
class Prediction:
    """One possible answer. Higher scores are more plausible; only their order has a meaning."""

    name: str
    score: float
    is_known: bool  # stated in the training, validation or test facts

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "score": self.score, "known": self.is_known}


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
        `include_known`.
        """
        given = [part is not None for part in (head, relation, tail)]
        if sum(given) != 2:
            raise InputError("give exactly two of head, relation and tail; the third is predicted")
        if top < 1:
            raise InputError(f"top must be at least 1, got {top}")
        names = self.dataset.names
        if relation is None:
            first, second = names.node_id(str(head)), names.node_id(str(tail))
            scores = self._score(self.model.score_all_relations, first, second)
            known = self._known_relations
        else:
            relation_id = names.relation_id(relation)
            if head is None:  # asked as the tail of the inverse relation
                relation_id = (relation_id + len(names.relations)) % (2 * len(names.relations))
            first, second = names.node_id(str(head if head is not None else tail)), relation_id
            scores = self._score(self.model.score_all_tails, first, second)
            known = self._known_tails
        answers = known_answers(known, first, second)
        name_of = names.relation if relation is None else names.node
        if not include_known:
            scores[answers] = -np.inf
        order = np.argsort(-scores, kind="stable")[:top]
        return [
            Prediction(name_of(answer), float(scores[answer]), bool(np.isin(answer, answers)))
            for answer in order.tolist()
            if np.isfinite(scores[answer])
        ]

    def evaluate(self, split: str = "test", *, progress: Progress | None = None) -> RankingReport:
        """Filtered ranking of the facts of a split, as when the run was trained."""
        facts = self.dataset.part(split)
        if not len(facts):
            raise InputError(f"the run's dataset has no facts in its {split} split")
        return Judge(self.experiment, self.dataset).report(self.model, facts, progress)

    def to(self, device: torch.device) -> "Run":
        """The same run on another device."""
        self.__dict__.pop("vectors", None)
        self.model.to(device)
        return self

    def _score(self, score_all: "object", first: int, second: int) -> np.ndarray:
        device = self.vectors.device
        ids = torch.tensor([[first], [second]], device=device)
        with torch.no_grad():
            scores: Tensor = score_all(ids[0], ids[1], self.vectors)  # type: ignore[operator]
        return scores[0].double().cpu().numpy()

    @cached_property
    def _known_tails(self) -> KnownAnswers:
        graph = self.dataset.train
        return known_tails(self.dataset.all_triples(), graph.num_nodes, graph.num_relations)

    @cached_property
    def _known_relations(self) -> KnownAnswers:
        graph = self.dataset.train
        return known_relations(self.dataset.all_triples(), graph.num_nodes, graph.num_relations)


def load(folder: str | Path, *, device: torch.device | str = "cpu") -> Run:
    """Open a finished run folder."""
    path = Path(folder)
    experiment, dataset = read_config(path), read_facts(path)
    return Run(path, experiment, dataset, load_model(path, experiment, dataset).to(device))


def known_answers(known: KnownAnswers, first: int, second: int) -> np.ndarray:
    start, count = known.find(np.array([first], np.int32), np.array([second], np.int32))
    return known.answers[int(start[0]) : int(start[0] + count[0])]
