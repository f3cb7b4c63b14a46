"""Inductive link prediction (section 4.2): train on one graph, evaluate on another.

The graphs have only relations in common, so nodes are tokenized by relations alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from nodepiece.data.dataset import Dataset
from nodepiece.data.inductive import InductiveDataset
from nodepiece.data.open import DataSource, open_inductive
from nodepiece.decoders.inductive_model import InductiveModel
from nodepiece.encoders.graph_view import tokenize_by_relations
from nodepiece.encoders.pieces import count_pieces, resample_relations
from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress
from nodepiece.evaluation.report import Report, Scores
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.settings import Experiment
from nodepiece.tasks.inductive_evaluator import InductiveEvaluator
from nodepiece.tasks.link_prediction import (
    check_validation,
    describe_dataset,
    is_same_dataset,
    refuse_visible_targets,
    with_validation,
)
from nodepiece.tasks.path_coefficients import check_choice, choose_coefficients
from nodepiece.tasks.run_folder import read_facts, write_facts
from nodepiece.tasks.task import RANKING, SCORERS, TaskRecord, fields_of
from nodepiece.tokenizer.tokens import TokenTable
from nodepiece.training.inductive import inductive_trainer
from nodepiece.training.loop import Metrics
from nodepiece.training.losses import SAMPLED_SOFTMAX
from nodepiece.training.settings import RANK_METRICS
from nodepiece.training.trainer import Trainer

INFERENCE = "inference"  # the folder of the other graph inside a run
BASELINE_WORK = 2 * 10**9  # queries times edges: the baseline takes some minutes at most


@dataclass(frozen=True, eq=False)
class InductiveLinkPrediction:
    """The task: an experiment and two graphs."""

    experiment: Experiment
    dataset: InductiveDataset

    @classmethod
    def open(cls, experiment: Experiment, data: DataSource) -> Self:
        keeps = experiment.evaluation.unseen_relations == "mean"
        dataset = open_inductive(
            experiment.dataset, data=data, keep_unseen_relations=keeps, options=experiment.reading
        )
        return cls(experiment, with_validation_queries(experiment, dataset))

    @classmethod
    def read(cls, experiment: Experiment, folder: Path) -> Self:
        training, inference = read_facts(folder), read_facts(folder / INFERENCE)
        return cls(experiment, InductiveDataset(folder.name, training, inference, 0, 0))

    @property
    def graph(self) -> KnowledgeGraph:
        return self.dataset.training.train

    @cached_property
    def evaluator(self) -> InductiveEvaluator:
        return InductiveEvaluator(self.experiment, self.dataset.inference, self.graph.num_relations)

    def describe(self) -> str:
        training, left_out = self.dataset.training, self.dataset.num_dropped
        settings = self.experiment.evaluation
        sentences = [describe_dataset(training)]
        if self.inference is not training:
            sentences.append(describe_dataset(self.inference))
        if left_out:
            sentences.append(f"{left_out:,} facts with relations that training lacks are left out")
        sentences.append(
            f"ranks are among {settings.num_negatives} nodes drawn at random, "
            f"{settings.num_draws} times"
            + (", without those that are known answers" if settings.draws_known else "")
        )
        return "; ".join(sentences)

    def check(self) -> None:
        check_validation(self.experiment, self.inference)
        check_settings(self.experiment)
        hides = self.experiment.training.hide_targets
        refuse_visible_targets(self.experiment, "training.hide_targets = true", hides)
        check_choice(self.experiment, self.dataset.name, len(self.inference.valid))
        self._check_batches()
        unseen = self.dataset.num_unknown_relations
        if unseen and self.experiment.evaluation.unseen_relations == "refuse":
            raise InputError(
                f"{unseen} relations of the inference graph of {self.dataset.name} are not in its "
                'training graph; set evaluation.unseen_relations = "drop" to leave their facts '
                'out, or "mean" to give them the mean of all relation vectors'
            )

    def _check_batches(self) -> None:
        """Refuse a batch that hides all facts of the graph."""
        training, num_facts = self.experiment.training, self.graph.num_triples
        if training.hide_targets and training.batch_size >= 2 * num_facts:
            raise InputError(
                f"a batch of {training.batch_size} hides all {num_facts} facts of "
                f"{self.dataset.training.name}; set training.batch_size = "
                f"{max(1, num_facts // 4)} or less"
            )

    def write(self, folder: Path) -> None:
        write_facts(self.dataset.training, folder)
        (folder / INFERENCE).mkdir()
        write_facts(self.inference, folder / INFERENCE)

    def has_data_of(self, other: Self) -> bool:
        mine, theirs = self.dataset, other.dataset
        return is_same_dataset(mine.training, theirs.training) and is_same_dataset(
            mine.inference, theirs.inference
        )

    def build_model(self, table: TokenTable) -> InductiveModel:
        experiment = self.experiment
        generator = torch.Generator().manual_seed(experiment.seed)
        return InductiveModel(
            count_pieces(table),
            experiment.encoder,
            experiment.graph,
            experiment.decoder,
            experiment.scorers,
            generator=generator,
        )

    def make_trainer(self, model: InductiveModel, *, generator: torch.Generator) -> Trainer[Any]:
        model.training_view = model.view(self.graph, tokens_of(self.graph, self.experiment))
        edges = torch.tensor(with_inverses(self.graph)).to(generator.device)
        chosen = self.experiment
        return inductive_trainer(
            model,
            edges,
            chosen.training,
            one_vs_all=chosen.one_vs_all,
            sampled=chosen.sampled,
            generator=generator,
        )

    def before_epoch(
        self, model: InductiveModel, table: TokenTable, epoch: int, *, generator: torch.Generator
    ) -> None:
        view = model.training_view
        if self.experiment.training.resample_relations and view is not None:
            rng = np.random.default_rng([self.experiment.seed, epoch])
            model.renew_tokens(view, resample_relations(view.tokens, table, rng=rng))

    def validate(self, model: InductiveModel) -> Metrics:
        return self.evaluator.validate(model)

    def after_training(
        self, model: InductiveModel, *, log: Callable[[str], None]
    ) -> dict[str, Any]:
        metric = self.experiment.training.metric
        return choose_coefficients(model.scorers, metric, lambda: self.validate(model), log=log)

    def evaluate(
        self, model: InductiveModel, split: str, *, progress: Progress | None = None
    ) -> Report | None:
        if not len(self.inference.part(split)):
            return None
        return self.evaluator.report(model, split, progress)

    def num_evaluated(self, split: str) -> int:
        return len(self.inference.part(split))

    def popularity(self, split: str) -> Report | None:
        if not len(self.inference.part(split)):
            return None
        return self.evaluator.evaluate_popularity(split)

    def compare_baselines(
        self, model: InductiveModel, split: str, *, progress: Progress | None = None
    ) -> dict[str, Scores]:
        return self.evaluator.compare_baselines(model, split, progress)

    def remarks(self) -> dict[str, Any]:
        """Numbers of facts, and the metrics of personalized PageRank on the same facts and draws.

        On a large graph PageRank would take longest; there it is left to `evaluate_baseline`.
        """
        work = 2 * len(self.inference.test) * 2 * self.inference.train.num_triples
        baseline = self.evaluator.evaluate_pagerank("test") if 0 < work <= BASELINE_WORK else None
        return {
            "unseen": self.inference.num_unseen,
            "held_out": self.inference.num_held_out,
            "inference_nodes": self.inference.train.num_nodes,
            "personalized_pagerank": {**baseline.scores, **baseline.parts} if baseline else None,
        }

    @property
    def inference(self) -> Dataset:
        """The inference graph and its queries."""
        return self.dataset.inference


def with_validation_queries(experiment: Experiment, dataset: InductiveDataset) -> InductiveDataset:
    """The dataset; if it has no queries to validate on, some known facts are held out for them."""
    inference = with_validation(experiment, dataset.inference)
    is_one_graph = dataset.inference is dataset.training
    training = inference if is_one_graph else dataset.training
    return replace(dataset, training=training, inference=inference)


def tokens_of(graph: KnowledgeGraph, experiment: Experiment) -> TokenTable:
    """The tokens of a graph with the relations of training, for the seed of the experiment."""
    rng = np.random.default_rng(experiment.seed)
    return tokenize_by_relations(graph, experiment.tokenizer, graph.num_relations, rng=rng)


def check_settings(experiment: Experiment) -> None:
    """Refuse settings that cannot work on a graph without anchors, or not together."""
    graph = experiment.graph
    for is_wrong, sentence in (
        (
            experiment.tokenizer.anchors_per_node > 0,
            "anchors belong to one graph; set tokenizer.anchors_per_node = 0",
        ),
        (
            experiment.training.loss == SAMPLED_SOFTMAX,
            'all nodes are encoded in every step anyway; set training.loss = "cross-entropy"',
        ),
        (
            not experiment.encoder.has_pieces,
            'a vector for every node cannot be used on another graph; set encoder.kind = "mlp"',
        ),
        (
            graph.layers > 0 and graph.kind != "compgcn",
            'message passing is by CompGCN here; set graph.kind = "compgcn"',
        ),
    ):
        if is_wrong:
            raise InputError(f"inductive link prediction: {sentence}")


INDUCTIVE_LINK_PREDICTION = TaskRecord(
    name="inductive-link-prediction",
    description="missing heads and tails in a graph of nodes that training did not see",
    task=InductiveLinkPrediction,
    run="any-graph",
    example_query="--head X --relation R",
    reads=(
        *("tokenizer.num_anchors", "tokenizer.anchors_per_node"),  # 0: there are none
        *("tokenizer.relations_per_node", "tokenizer.relation_order"),
        *("encoder", "graph", SCORERS),
        *fields_of("sampled", without=["path_queries"]),
        *fields_of("decoder", without=["start_range"]),
        *fields_of("training", without=["shuffle_anchors"]),
        *fields_of("one_vs_all", without=["regularization", "path_queries"]),
        *RANKING,
        *("evaluation.num_negatives", "evaluation.num_draws", "evaluation.draws_known"),
        *("evaluation.unseen_relations", "evaluation.held_out_share"),
    ),
    metrics=RANK_METRICS,
)
