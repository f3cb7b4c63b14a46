"""Transductive link prediction and relation prediction (section 4.1 and its appendix).

Both train a model of which facts hold. Link prediction then ranks the tail and the head of each
test fact among all nodes, relation prediction its relation among all relations.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from nodepiece.data.dataset import SPLITS, Dataset
from nodepiece.data.open import DataSource, open_dataset, open_negatives
from nodepiece.data.random_split import hold_out_lacking
from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.path_scorers import is_on
from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress
from nodepiece.evaluation.report import Report, Scores
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.graph.short_text import plural
from nodepiece.settings import Experiment
from nodepiece.tasks.evaluator import LinkEvaluator
from nodepiece.tasks.path_coefficients import (
    check_choice,
    choose_coefficients,
    facts_to_choose,
    remembered_bytes,
)
from nodepiece.tasks.run_folder import read_facts, write_facts
from nodepiece.tasks.task import RANKING, SCORERS, TaskRecord, fields_of
from nodepiece.tasks.tokens import build_node_embedding, refresh_tokens
from nodepiece.tokenizer.tokens import TokenTable
from nodepiece.training.links import link_trainer
from nodepiece.training.loop import Metrics
from nodepiece.training.losses import SAMPLED_SOFTMAX
from nodepiece.training.settings import RANK_METRICS
from nodepiece.training.trainer import Trainer


@dataclass(frozen=True, eq=False)
class LinkPrediction:
    """The task of either name: `experiment.task` is "link-prediction" or "relation-prediction"."""

    experiment: Experiment
    dataset: Dataset

    @classmethod
    def open(cls, experiment: Experiment, data: DataSource) -> Self:
        dataset = open_dataset(experiment.dataset, data=data, options=experiment.reading)
        return cls(experiment, with_validation(experiment, dataset))

    @classmethod
    def read(cls, experiment: Experiment, folder: Path) -> Self:
        dataset = read_facts(folder)
        if experiment.evaluation.candidates == "given":  # large, so not in the run folder
            negatives = partial(open_negatives, experiment.dataset, num_nodes=dataset.num_nodes)
            dataset = replace(dataset, negatives=negatives)
        return cls(experiment, dataset)

    @property
    def graph(self) -> KnowledgeGraph:
        return self.dataset.train

    @cached_property
    def evaluator(self) -> LinkEvaluator:
        return LinkEvaluator(self.experiment, self.dataset)

    def describe(self) -> str:
        return describe_dataset(self.dataset)

    def check(self) -> None:
        check_nodes(self.dataset)
        check_validation(self.experiment, self.dataset)
        check_layers(self.experiment)
        check_hiding(self.experiment)
        check_choice(self.experiment, self.dataset.name, len(self.dataset.valid))
        _ = self.evaluator  # refuses given candidates if the dataset has none

    def write(self, folder: Path) -> None:
        write_facts(self.dataset, folder)

    def has_data_of(self, other: Self) -> bool:
        return is_same_dataset(self.dataset, other.dataset)

    def build_model(self, table: TokenTable) -> LinkModel:
        generator = torch.Generator().manual_seed(self.experiment.seed)
        return LinkModel(
            build_node_embedding(self.experiment, table, generator=generator),
            torch.from_numpy(with_inverses(self.graph)),
            2 * self.graph.num_relations,
            self.experiment.decoder,
            self.experiment.graph,
            self.experiment.scorers,
            generator=generator,
        )

    def make_trainer(self, model: LinkModel, *, generator: torch.Generator) -> Trainer[Any]:
        edges, chosen = model.edges, self.experiment
        if edges is None:
            edges = torch.from_numpy(with_inverses(self.graph)).to(generator.device)
        return link_trainer(
            model,
            edges,
            chosen.training,
            one_vs_all=chosen.one_vs_all,
            sampled=chosen.sampled,
            generator=generator,
        )

    def before_epoch(
        self, model: LinkModel, table: TokenTable, epoch: int, *, generator: torch.Generator
    ) -> None:
        refresh_tokens(model.nodes, self.experiment, table, epoch, generator=generator)

    def validate(self, model: LinkModel) -> Metrics:
        return self.evaluator.validate(model)

    def after_training(self, model: LinkModel, *, log: Callable[[str], None]) -> dict[str, Any]:
        experiment, num_valid = self.experiment, len(self.dataset.valid)
        num_facts = min(num_valid, experiment.evaluation.validation_facts or num_valid)
        on_gpu = model.relation_vectors().is_cuda
        number = facts_to_choose(experiment, num_facts, on_gpu=on_gpu)
        vectors = cache(partial(self.evaluator.node_vectors, model))  # the same for all
        return choose_coefficients(
            model.scorers,
            experiment.training.metric,
            lambda: self.evaluator.validate(model, number, vectors()),
            log=log,
            remembered_bytes=remembered_bytes(
                experiment, num_facts, self.graph.num_nodes, on_gpu=on_gpu
            ),
        )

    def evaluate(
        self, model: LinkModel, split: str, *, progress: Progress | None = None
    ) -> Report | None:
        if not len(self.dataset.part(split)):
            return None
        return self.evaluator.report(model, split, progress).named(self.dataset.names.relation)

    def num_evaluated(self, split: str) -> int:
        return len(self.dataset.part(split))

    def popularity(self, split: str) -> Report | None:
        if not len(self.dataset.part(split)):
            return None
        return self.evaluator.popularity(split).named(self.dataset.names.relation)

    def compare_baselines(
        self, model: LinkModel, split: str, *, progress: Progress | None = None
    ) -> dict[str, Scores]:
        return self.evaluator.compare_baselines(model, split, progress)

    def remarks(self) -> dict[str, Any]:
        return {
            "unseen": self.dataset.num_unseen,
            "held_out": self.dataset.num_held_out,
            "candidates": self.experiment.evaluation.candidates,
        }


def describe_dataset(dataset: Dataset) -> str:
    """Sizes, what was left out, and how the file was read, in one line."""
    sizes = [f"{dataset.train.num_triples:,} facts for train"]
    sizes += [f"{len(dataset.part(part)):,} for {part}" for part in ("valid", "test")]
    left_out = [
        f"{number:,} {why}"
        for number, why in (
            (sum(dataset.num_unseen.values()), "with names that training lacks are left out"),
            (dataset.num_repeated, "stated twice are kept once"),
            (dataset.num_literals, "whose object is a literal are left out"),
        )
        if number
    ]
    if held_out := [f"{n:,} for {split}" for split, n in dataset.num_held_out.items()]:
        left_out.append(f"held out at random, as there were none: {' and '.join(held_out)}")
    layout = [f"read as {dataset.layout}"] if dataset.layout else []
    facts = "; ".join([", ".join(sizes), *left_out, *layout])
    return f"{dataset.name}: {dataset.train.num_nodes:,} nodes, {facts}"


def with_validation(experiment: Experiment, dataset: Dataset) -> Dataset:
    """The dataset; if it has no facts to validate on, some of train are held out, by the seed.

    Where there are no test facts either, as many are held out for them.
    """
    share = experiment.evaluation.held_out_share
    if not (experiment.training.validate_every and share) or len(dataset.valid):
        return dataset
    return hold_out_lacking(dataset, share, rng=np.random.default_rng(experiment.seed))


def check_nodes(dataset: Dataset) -> None:
    """Refuse a graph in which every query has the same answer."""
    if dataset.num_nodes < 2:
        raise InputError(
            f"dataset {dataset.name} has {plural(dataset.num_nodes, 'node')}, so there is nothing "
            "to predict; add facts about others"
        )


def check_validation(experiment: Experiment, dataset: Dataset) -> None:
    if experiment.training.validate_every and not len(dataset.valid):
        others = ", and none can be held out without losing nodes" if dataset.num_held_out else ""
        raise InputError(
            f"dataset {dataset.name} has no validation facts{others}; add some "
            "(`nodepiece split` holds facts out), or set training.validate_every = 0 to train "
            "without (and training.patience = 0)"
        )


def check_hiding(experiment: Experiment) -> None:
    """Refuse `hide_targets` without graph layers and paths, and paths without `hide_targets`."""
    training = experiment.training
    has_paths = any(is_on(settings) for settings in experiment.scorers)
    if training.hide_targets and not (has_paths or experiment.graph.layers):
        raise InputError(
            "training.hide_targets hides facts from graph layers and paths, and there are none; "
            "leave it out"
        )
    is_softmax = training.loss == SAMPLED_SOFTMAX and has_paths
    if training.hide_targets and not training.is_one_vs_all:
        if not is_softmax:
            raise InputError(
                "training.hide_targets goes with the losses against all nodes; leave it out"
            )
        if experiment.graph.layers:
            raise InputError(
                f"training.loss = {training.loss} hides facts from paths, not from graph layers; "
                "set graph.layers = 0, or a loss against all nodes"
            )
    refuse_visible_targets(
        experiment,
        "training.hide_targets = true",
        training.hide_targets,
        path_queries=experiment.sampled.path_queries if is_softmax else 0,
    )
    for settings in filter(is_on, experiment.scorers):
        off = f"{settings.name}.{settings.switch} = 0"
        if experiment.evaluation.candidates == "given":
            raise InputError(
                f'{settings.name} scores all nodes; set evaluation.candidates = "all", or {off}'
            )


def refuse_visible_targets(
    experiment: Experiment, needed: str, is_hidden: object, *, path_queries: int = 0
) -> None:
    """Refuse path scorers that are not trained, and where paths could use the facts asked for.

    needed: the setting that hides these facts in training. path_queries: on how many facts of a
    batch they are trained beside sampled negatives.
    """
    is_one_vs_all = experiment.training.is_one_vs_all
    is_divided = bool(experiment.one_vs_all.path_queries if is_one_vs_all else path_queries)
    group = "one_vs_all" if is_one_vs_all else "sampled"
    for settings in filter(is_on, experiment.scorers):
        off = f"{settings.name}.{settings.switch} = 0"
        if not (is_one_vs_all or path_queries):
            hint = ""
            if experiment.training.loss == SAMPLED_SOFTMAX and experiment.task == "link-prediction":
                hint = ", or sampled.path_queries = 32"
            raise InputError(
                f"{settings.name} goes with the losses against all nodes; set {off}{hint}"
            )
        if is_divided and not settings.separate_losses:
            raise InputError(
                f"{group}.path_queries trains paths on fewer queries than vectors, so each needs "
                f"its own loss; set {settings.name}.separate_losses = true, or leave it out"
            )
        if not is_hidden:
            raise InputError(
                f"{settings.name} would follow the predicted fact itself; set {needed}, or {off}"
            )


def check_layers(experiment: Experiment) -> None:
    if experiment.graph.layers and experiment.graph.kind != "mean":
        raise InputError(
            f"graph.kind = {experiment.graph.kind!r} is for inductive-link-prediction and "
            'node-classification; set graph.kind = "mean" for ' + experiment.task
        )


def is_same_dataset(one: Dataset, other: Dataset) -> bool:
    return all(np.array_equal(one.part(split), other.part(split)) for split in SPLITS)


LINK_PREDICTION = TaskRecord(
    name="link-prediction",
    description="the missing head or tail of a fact, in the graph of training",
    task=LinkPrediction,
    run="links",
    example_query="--head X --relation R",
    reads=(
        *("tokenizer", "encoder", "graph", SCORERS),
        *("training", "one_vs_all", "sampled"),
        *fields_of("decoder", without=["adjacent_pairs"]),  # CompGCN is not used
        *RANKING,
        *("evaluation.candidates", "evaluation.held_out_share"),
    ),
    metrics=RANK_METRICS,
)
RELATION_PREDICTION = replace(
    LINK_PREDICTION,
    name="relation-prediction",
    description="the missing relation between two nodes of the graph of training",
    example_query="--head X --tail Y",
    reads=(
        *("tokenizer", "encoder", "graph"),
        *("training", "one_vs_all"),
        *fields_of("decoder", without=["adjacent_pairs"]),
        *fields_of("sampled", without=["path_queries"]),
        *RANKING,
        *("evaluation.direct_relations", "evaluation.held_out_share"),
    ),
)
