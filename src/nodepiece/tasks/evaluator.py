"""Ranking of a dataset's facts with a model, by the settings of an experiment.

Several processes divide the facts among them and collect the ranks; each has all node vectors.
"""

from functools import cached_property
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from nodepiece.data.dataset import Dataset
from nodepiece.decoders.link_model import LinkModel
from nodepiece.errors import InputError
from nodepiece.evaluation.baselines import (
    Ranks,
    baselines_of,
    compare_ranks,
    relation_baselines_of,
)
from nodepiece.evaluation.known_answers import Kind, KnownAnswers, known_relations, known_tails
from nodepiece.evaluation.metrics import RankingReport, report_links, report_relations
from nodepiece.evaluation.popularity import Popularity, count_tails
from nodepiece.evaluation.ranking import (
    LinkRanks,
    Progress,
    ScoreAll,
    rank_links,
    rank_relations,
)
from nodepiece.evaluation.report import Scores
from nodepiece.evaluation.sampled_ranking import rank_links_among
from nodepiece.graph.arrays import FloatArray, IntArray
from nodepiece.settings import Experiment
from nodepiece.training.distribution import Processes, current_processes
from nodepiece.training.loop import Metrics

VECTORS_PER_CANDIDATE = 6  # in memory at a time: the gathered one, and intermediate results
# Of datasets in use: evaluators with other settings on the same facts share what takes long to sort
_KNOWN: WeakKeyDictionary[Dataset, dict[Kind, KnownAnswers]] = WeakKeyDictionary()


def known_answers(dataset: Dataset, kind: Kind) -> KnownAnswers:
    """The known answers of all splits, found once for a dataset."""
    found = _KNOWN.setdefault(dataset, {})
    if kind not in found:
        facts, graph = dataset.all_triples(), dataset.train
        sizes = graph.num_nodes, graph.num_relations
        if kind == "tails":
            found[kind] = known_tails(facts, *sizes)
        else:
            direct_only = kind == "direct relations"
            found[kind] = known_relations(facts, *sizes, direct_only=direct_only)
    return found[kind]


class LinkEvaluator:
    """Ranks facts with a model, for validation and for the final result."""

    def __init__(self, experiment: Experiment, dataset: Dataset) -> None:
        self.task, self.settings = experiment.task, experiment.evaluation
        self.dataset, self.ranks_relations = dataset, self.task == "relation-prediction"
        is_given = self.settings.candidates == "given"
        if is_given and (dataset.negatives is None or self.ranks_relations):
            raise InputError(
                f"evaluation.candidates is given, but {dataset.name} comes without negatives for "
                f"{self.task}; leave it out to rank among all"
            )

    @property
    def known(self) -> KnownAnswers:
        """The known answers, which ranking among all nodes leaves out."""
        kind: Kind = "tails"
        if self.ranks_relations:
            kind = "direct relations" if self.settings.direct_relations else "relations"
        return known_answers(self.dataset, kind)

    @cached_property
    def tail_counts(self) -> Popularity:
        """How often every node is the tail of every relation in the training graph."""
        return count_tails(self.dataset.train)

    def validate(
        self, model: LinkModel, num_facts: int | None = None, vectors: Tensor | None = None
    ) -> Metrics:
        """The metrics on so many validation facts, or on those of the settings.

        vectors: those of all nodes, if they are known already.
        """
        number = self.settings.validation_facts if num_facts is None else num_facts
        return self._report(model, "valid", number, None, vectors).both.to_json()

    def node_vectors(self, model: LinkModel) -> Tensor:
        """The vectors of all nodes, as they are ranked."""
        model.eval()
        with torch.no_grad():
            return model.node_vectors()

    def report(
        self, model: LinkModel, split: str, progress: Progress | None = None
    ) -> RankingReport:
        return self._report(model, split, self.settings.test_facts, progress)

    def popularity(self, split: str) -> RankingReport:
        """The baseline on the same facts, among the same candidates; every process ranks all.

        Popularity of relations is the number of their facts, the same for every pair.
        """
        facts = self.dataset.part(split)[: self.settings.test_facts or None]
        counts = self.tail_counts
        if self.ranks_relations:
            ranks_of_relations = self._rank_relations(counts.score_relations, facts, "cpu", None)
            return report_relations(ranks_of_relations, facts[:, 1])
        if self.settings.candidates == "given" and self.dataset.negatives is not None:
            negatives = self.dataset.negatives(split)
            ranks = rank_links_among(
                counts.score_candidates,
                facts,
                negatives.heads[: len(facts)],
                negatives.tails[: len(facts)],
                self.dataset.train.num_relations,
                memory_budget=self.settings.memory_budget,
                bytes_per_candidate=8 * VECTORS_PER_CANDIDATE,
                device="cpu",
            )
        else:
            ranks = counts.rank_links(facts, self.known)
        return report_links(ranks)

    def compare_baselines(
        self, model: LinkModel, split: str, progress: Progress | None = None
    ) -> dict[str, Scores]:
        """The metrics of baselines by name, and of the model with and without shortcuts."""
        baselines = self.rank_baselines(split, progress)
        facts = self.dataset.part(split)[: self.settings.test_facts or None]
        vectors = self.node_vectors(model)
        with torch.no_grad():
            if self.ranks_relations:
                score = relation_scorer(model, vectors)
                own = self._rank_relations(score, facts, vectors.device, progress)
            else:
                own = self._rank_links(model, vectors, split, facts, Processes(), progress).both
        return compare_ranks(own, baselines)

    def rank_baselines(self, split: str, progress: Progress | None = None) -> Ranks:
        """The ranks of baselines among all nodes, or all relations, by name."""
        if self.settings.candidates == "given":
            raise InputError(
                "baselines are ranked among all nodes, and this run among given ones; leave "
                "--baselines out, or set evaluation.candidates = all"
            )
        facts = self.dataset.part(split)[: self.settings.test_facts or None]
        if self.ranks_relations:
            return {
                name: self._rank_relations(score, facts, "cpu", progress)
                for name, score in relation_baselines_of(self.dataset.train).items()
            }
        return {
            name: rank_links(
                score,
                facts,
                self.known,
                memory_budget=self.settings.memory_budget,
                device="cpu",
                progress=progress,
            ).both
            for name, score in baselines_of(self.dataset.train).items()
        }

    def _report(
        self,
        model: LinkModel,
        split: str,
        max_facts: int,
        progress: Progress | None,
        vectors: Tensor | None = None,
    ) -> RankingReport:
        """The report on the first `max_facts` facts of a split; 0: on all."""
        facts = self.dataset.part(split)[: max_facts or None]
        processes = current_processes()
        if len(facts) < processes.count:
            processes = Processes()  # too few to divide: every process ranks them all
        model.eval()
        vectors = self.node_vectors(model) if vectors is None else vectors
        with torch.no_grad():
            if not self.ranks_relations:
                ranks = self._rank_links(model, vectors, split, facts, processes, progress)
                return report_links(ranks)
            relation_ranks = self._rank_relations(
                relation_scorer(model, vectors), processes.part(facts), vectors.device, progress
            )
            return report_relations(processes.collect(relation_ranks, len(facts)), facts[:, 1])

    def _rank_links(
        self,
        model: LinkModel,
        vectors: Tensor,
        split: str,
        facts: IntArray,
        processes: Processes,
        progress: Progress | None,
    ) -> LinkRanks:
        mine = processes.part(facts)
        if self.settings.candidates == "given" and self.dataset.negatives is not None:
            negatives = self.dataset.negatives(split)
            ranks = rank_links_among(
                lambda heads, relations, candidates: model.score_candidates(
                    heads, relations, candidates, vectors
                ),
                mine,
                processes.part(negatives.heads[: len(facts)]),
                processes.part(negatives.tails[: len(facts)]),
                self.dataset.train.num_relations,
                memory_budget=self.settings.memory_budget,
                bytes_per_candidate=VECTORS_PER_CANDIDATE * 4 * vectors.shape[1],
                device=vectors.device,
                progress=progress,
            )
        else:
            ranks = rank_links(
                lambda heads, relations: model.score_all_tails(heads, relations, vectors),
                mine,
                self.known,
                memory_budget=self.settings.memory_budget,
                device=vectors.device,
                progress=progress,
            )
        head, tail = (processes.collect(side, len(facts)) for side in (ranks.head, ranks.tail))
        return LinkRanks(head, tail, facts[:, 1])

    def _rank_relations(
        self,
        score: ScoreAll,
        facts: IntArray,
        device: torch.device | str,
        progress: Progress | None,
    ) -> FloatArray:
        return rank_relations(
            score,
            facts,
            self.known,
            memory_budget=self.settings.memory_budget,
            device=device,
            progress=progress,
        )


def relation_scorer(model: LinkModel, vectors: Tensor) -> ScoreAll:
    """A function that scores all relations between two nodes; vectors: those of all nodes."""
    return lambda heads, tails: model.score_all_relations(heads, tails, vectors)
