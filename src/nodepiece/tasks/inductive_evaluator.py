"""Ranking of facts of the inference graph, among randomly drawn nodes and among all nodes."""

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from nodepiece.data.dataset import SPLITS, Dataset
from nodepiece.decoders.inductive_model import InductiveModel
from nodepiece.encoders.graph_view import GraphView, tokenize_by_relations
from nodepiece.evaluation.baselines import HALF_LINKS, baselines_of, divide_by_shortcut
from nodepiece.evaluation.known_answers import KnownAnswers, known_tails
from nodepiece.evaluation.metrics import report_links
from nodepiece.evaluation.personalized_pagerank import walk_over
from nodepiece.evaluation.popularity import count_tails
from nodepiece.evaluation.ranking import LinkRanks, Progress, ScoreAll
from nodepiece.evaluation.report import Report, Scores
from nodepiece.evaluation.sampled_negatives import (
    rank_among_sampled,
    report_sampled,
    sample_negatives,
    sample_with_known,
)
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.settings import Experiment
from nodepiece.tokenizer.tokens import TokenTable

ALL_NODES = "all nodes"  # the part of a report that is a full ranking


class InductiveEvaluator:
    """Ranks facts of one graph, which may be any graph with the relations of the model."""

    def __init__(self, experiment: Experiment, dataset: Dataset, num_known: int) -> None:
        self.experiment, self.settings = experiment, experiment.evaluation
        self.dataset, self.num_known = dataset, num_known
        self._view: GraphView | None = None
        self._negatives: dict[str, IntArray] = {}

    @cached_property
    def known(self) -> KnownAnswers:
        graph = self.dataset.train
        return known_tails(self.dataset.all_triples(), graph.num_nodes, graph.num_relations)

    @property
    def memory_budget(self) -> int:
        """Bytes for scores of nodes; the rest is for walks, with as much for an edge as a score."""
        graph = self.dataset.train
        share = graph.num_nodes / (graph.num_nodes + 2 * graph.num_triples)
        return int(share * self.settings.memory_budget)

    @cached_property
    def table(self) -> TokenTable:
        rng = np.random.default_rng(self.experiment.seed)
        settings = self.experiment.tokenizer
        return tokenize_by_relations(self.dataset.train, settings, self.num_known, rng=rng)

    def view(self, model: InductiveModel) -> GraphView:
        """The graph on the device of the model; made again when the model changes its device."""
        if self._view is None or self._view.edges.device != model.tables.relations.device:
            self._view = model.view(self.dataset.train, self.table)
        return self._view

    def scorer(self, model: InductiveModel) -> ScoreAll:
        """A function that scores all nodes; relations have the ids of the graph."""
        graph = model.encode(self.view(model))
        num_relations = self.dataset.train.num_relations
        rows = [graph.view.relation_row(r, num_relations) for r in range(2 * num_relations)]
        row_of = torch.tensor(rows, device=graph.nodes.device)

        def score(heads: Tensor, relations: Tensor) -> Tensor:
            return model.score_all_tails(heads, row_of[relations], graph)

        return score

    def validate(self, model: InductiveModel) -> Scores:
        """The metrics among drawn nodes."""
        model.eval()
        with torch.no_grad():
            device = model.tables.relations.device
            number = self.settings.validation_facts
            return report_sampled(self.rank(self.scorer(model), "valid", number, device)[0]).scores

    def report(self, model: InductiveModel, split: str, progress: Progress | None = None) -> Report:
        model.eval()
        with torch.no_grad():
            return self.evaluate(self.scorer(model), split, model.tables.relations.device, progress)

    def evaluate_pagerank(self, split: str) -> Report:
        """The report of the baseline, personalized PageRank."""
        return self.evaluate(walk_over(self.dataset.train).score_tails, split, torch.device("cpu"))

    def evaluate_popularity(self, split: str) -> Report:
        """Another baseline: counts over the graph that is evaluated on."""
        score_tails = count_tails(self.dataset.train).score_tails
        return self.evaluate(score_tails, split, torch.device("cpu"))

    def compare_baselines(
        self, model: InductiveModel, split: str, progress: Progress | None = None
    ) -> dict[str, Scores]:
        """The metrics of baselines by name among drawn nodes and all nodes, and of the model.

        Those of the model are among all nodes, with and without shortcuts.
        """
        number, found = self.settings.test_facts, {}
        baselines = {}
        for name, score_tails in baselines_of(self.dataset.train).items():
            draws, ranks = self.rank(score_tails, split, number, torch.device("cpu"), progress)
            baselines[name] = ranks
            found[name] = report_sampled(draws).scores
            found[f"{name}, {ALL_NODES}"] = report_links(ranks).both.to_json()
        model.eval()
        with torch.no_grad():
            device = model.tables.relations.device
            _, own = self.rank(self.scorer(model), split, number, device, progress)
        return found | divide_by_shortcut(own.both, baselines[HALF_LINKS].both)

    def evaluate(
        self,
        score_tails: ScoreAll,
        split: str,
        device: torch.device,
        progress: Progress | None = None,
    ) -> Report:
        """A report with mean and standard deviation over draws, and the ranking among all nodes."""
        draws, among_all = self.rank(score_tails, split, self.settings.test_facts, device, progress)
        drawn = report_sampled(draws)
        full = report_links(among_all).named(self.dataset.names.relation)
        return Report(drawn.scores, {**drawn.parts, ALL_NODES: full.scores}, full.details)

    def rank(
        self,
        score_tails: ScoreAll,
        split: str,
        max_facts: int,
        device: torch.device,
        progress: Progress | None = None,
    ) -> tuple[list[LinkRanks], LinkRanks]:
        """The ranks of the first `max_facts` facts (0: all) in each draw, and among all nodes."""
        facts, negatives = self.dataset.part(split), self.negatives(split)
        if max_facts:
            of_sides = np.split(negatives, 2)
            facts, negatives = (
                facts[:max_facts],
                np.concatenate([side[:max_facts] for side in of_sides]),
            )
        return rank_among_sampled(
            score_tails,
            facts,
            negatives,
            self.known,
            memory_budget=self.memory_budget,
            device=device,
            progress=progress,
        )

    def negatives(self, split: str) -> IntArray:
        """The negatives of a split: the same for every model and epoch, by the seed."""
        if split not in self._negatives:
            graph = self.dataset.train
            facts = KnowledgeGraph(self.dataset.part(split), graph.num_nodes, graph.num_relations)
            rng = np.random.default_rng([self.experiment.seed, SPLITS.index(split)])
            shape = (self.settings.num_draws, self.settings.num_negatives)
            queries, known = with_inverses(facts), self.known
            if self.settings.draws_known:
                in_graph = known_tails(graph.triples, graph.num_nodes, graph.num_relations)
                drawn = sample_with_known(queries, known, in_graph, shape, rng=rng)
            else:
                drawn = sample_negatives(queries, known, shape, rng=rng)
            self._negatives[split] = drawn
        return self._negatives[split]
