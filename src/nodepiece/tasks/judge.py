"""Filtered ranking of a dataset's facts with a model, by the settings of an experiment."""

import torch

from nodepiece.data.dataset import Dataset
from nodepiece.decoders.link_model import LinkModel
from nodepiece.evaluation.known_answers import known_relations, known_tails
from nodepiece.evaluation.metrics import RankingReport, report_links, report_relations
from nodepiece.evaluation.ranking import Progress, rank_links, rank_relations
from nodepiece.graph.arrays import IntArray
from nodepiece.settings import Experiment
from nodepiece.training.loop import Metrics


class Judge:
    """Ranks facts with a model, for validation and for the final result."""

    def __init__(self, experiment: Experiment, dataset: Dataset) -> None:
        self.task, self.settings = experiment.task, experiment.evaluation
        self.dataset = dataset
        known, graph = dataset.all_triples(), dataset.train
        self.known = (
            known_tails(known, graph.num_nodes, graph.num_relations)
            if self.task == "link-prediction"
            else known_relations(
                known,
                graph.num_nodes,
                graph.num_relations,
                direct_only=self.settings.direct_relations,
            )
        )

    def validate(self, model: LinkModel) -> Metrics:
        facts = self.dataset.valid
        if self.settings.validation_facts:
            facts = facts[: self.settings.validation_facts]
        return self.report(model, facts).both.to_json()

    def report(
        self, model: LinkModel, facts: IntArray, progress: Progress | None = None
    ) -> RankingReport:
        model.eval()
        with torch.no_grad():
            return self._rank(model, facts, progress)

    def _rank(self, model: LinkModel, facts: IntArray, progress: Progress | None) -> RankingReport:
        vectors = model.node_vectors()
        budget, device = self.settings.memory_budget, vectors.device
        if self.task == "link-prediction":
            ranks = rank_links(
                lambda heads, relations: model.score_all_tails(heads, relations, vectors),
                facts,
                self.known,
                memory_budget=budget,
                device=device,
                progress=progress,
            )
            return report_links(ranks)
        relation_ranks = rank_relations(
            lambda heads, tails: model.score_all_relations(heads, tails, vectors),
            facts,
            self.known,
            memory_budget=budget,
            device=device,
            progress=progress,
        )
        return report_relations(relation_ranks, facts[:, 1])
