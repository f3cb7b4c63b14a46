"""Out-of-sample link prediction (section 4.4): facts of nodes that are added after training.

With pieces, an unseen node is tokenized like any other. The baseline, oDistMult-ERAvg, has a vector
for every seen node, and the average over its neighbours for an unseen one; in this task
`encoder.kind = "lookup"` selects it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from nodepiece.data.dataset import Dataset
from nodepiece.data.open import DataSource, open_out_of_sample
from nodepiece.data.out_of_sample import EVALUATION_SPLITS, UnseenEdges, edges_of_unseen
from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.path_scorers import is_on
from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress
from nodepiece.evaluation.report import Report, Scores
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.settings import Experiment
from nodepiece.tasks.link_prediction import refuse_visible_targets
from nodepiece.tasks.out_of_sample_evaluator import OutOfSampleEvaluator
from nodepiece.tasks.path_coefficients import check_choice, choose_coefficients
from nodepiece.tasks.run_folder import damaged, read_facts, write_facts
from nodepiece.tasks.task import RANKING, SCORERS, TaskRecord, fields_of
from nodepiece.tasks.tokens import build_node_embedding, refresh_tokens
from nodepiece.tokenizer.tokens import Salts, TokenTable, tokenize_by
from nodepiece.training.batches import Batches
from nodepiece.training.links import fact_batches, link_trainer, query_batches
from nodepiece.training.loop import Metrics
from nodepiece.training.losses import SAMPLED_SOFTMAX
from nodepiece.training.out_of_sample import ChosenBatches, masking_trainer
from nodepiece.training.settings import RANK_METRICS
from nodepiece.training.trainer import Trainer

NO_FACTS: IntArray = np.empty((0, 3), np.int32)
UNSEEN = "unseen"  # folder in a run: the edges of unseen nodes, split by split
COLUMNS = ("offsets", "relations", "neighbours")


class OutOfSampleModel(LinkModel):
    """A link model with the tokens of its nodes, from which those of unseen nodes are made."""

    table: TokenTable
    edge_mask: Tensor | None  # (num_edges,) 0 for edges hidden from the paths of an epoch


@dataclass(frozen=True, eq=False)
class OutOfSample:
    """The task: an experiment, the graph of seen nodes, and the edges of unseen nodes."""

    experiment: Experiment
    name: str
    graph: KnowledgeGraph
    unseen: dict[str, UnseenEdges]
    layout: str = ""  # how the training file was read, in words

    @classmethod
    def open(cls, experiment: Experiment, data: DataSource) -> Self:
        dataset = open_out_of_sample(experiment.dataset, data=data, options=experiment.reading)
        unseen = {split: edges_of_unseen(dataset, split) for split in EVALUATION_SPLITS}
        return cls(experiment, dataset.name, dataset.train, unseen, dataset.layout)

    @classmethod
    def read(cls, experiment: Experiment, folder: Path) -> Self:
        facts = read_facts(folder)
        unseen = {
            split: read_unseen_edges(folder, split, facts.train) for split in EVALUATION_SPLITS
        }
        return cls(experiment, facts.name, facts.train, unseen)

    @property
    def dataset(self) -> Dataset:
        """The facts of seen nodes."""
        return Dataset(self.name, self.graph, NO_FACTS, NO_FACTS, {})

    @cached_property
    def evaluator(self) -> OutOfSampleEvaluator:
        return OutOfSampleEvaluator(self.experiment, self.graph, self.unseen)

    def describe(self) -> str:
        parts = [f"{self.name}: {self.graph.num_nodes:,} nodes"]
        parts.append(f"{self.graph.num_triples:,} facts for train")
        for split, edges in self.unseen.items():
            parts.append(f"{edges.num_edges:,} of {edges.num_unseen:,} unseen nodes for {split}")
        if num_dropped := sum(edges.num_dropped for edges in self.unseen.values()):
            parts.append(f"{num_dropped:,} facts of unseen nodes without a seen node are left out")
        return ", ".join(parts) + (f"; read as {self.layout}" if self.layout else "")

    def check(self) -> None:
        check_settings(self.experiment)
        masked = self.experiment.out_of_sample.mask_share
        refuse_visible_targets(self.experiment, "out_of_sample.mask_share above 0", masked)
        if self.experiment.training.validate_every and not self.unseen["valid"].num_edges:
            raise InputError(
                f"dataset {self.name} has no unseen nodes for validation; set "
                "training.validate_every = 0 to train without"
            )
        check_choice(self.experiment, self.name, self.unseen["valid"].num_edges)

    def write(self, folder: Path) -> None:
        write_facts(self.dataset, folder)
        (folder / UNSEEN).mkdir()
        for split, edges in self.unseen.items():
            for column in COLUMNS:
                np.save(folder / UNSEEN / f"{split}_{column}.npy", getattr(edges, column))

    def has_data_of(self, other: Self) -> bool:
        return np.array_equal(self.graph.triples, other.graph.triples) and all(
            np.array_equal(getattr(self.unseen[split], column), getattr(edges, column))
            for split, edges in other.unseen.items()
            for column in COLUMNS
        )

    def build_model(self, table: TokenTable) -> OutOfSampleModel:
        generator = torch.Generator().manual_seed(self.experiment.seed)
        model = OutOfSampleModel(
            build_node_embedding(self.experiment, table, generator=generator),
            torch.tensor(with_inverses(self.graph)),
            2 * self.graph.num_relations,
            self.experiment.decoder,
            self.experiment.graph,
            self.experiment.scorers,
            generator=generator,
        )
        model.table = table
        ones = torch.ones(2 * self.graph.num_triples) if model.scorers else None
        model.register_buffer("edge_mask", ones, persistent=False)
        return model

    def make_trainer(self, model: OutOfSampleModel, *, generator: torch.Generator) -> Trainer[Any]:
        chosen, mask_share = self.experiment, self.experiment.out_of_sample.mask_share
        edges = torch.tensor(with_inverses(self.graph)).to(generator.device)
        if not model.nodes.has_pieces:
            return masking_trainer(
                model,
                edges,
                chosen.training,
                chosen.sampled,
                mask_share=mask_share,
                generator=generator,
            )
        trainer: Trainer[Any] = link_trainer(
            model,
            edges,
            chosen.training,
            one_vs_all=chosen.one_vs_all,
            sampled=chosen.sampled,
            generator=generator,
            edge_mask=model.edge_mask,
        )
        if mask_share:
            trainer.batches = self.hidden_batches
        return trainer

    @cached_property
    def hidden_batches(self) -> ChosenBatches[Any]:
        """Batches of the facts that are hidden from the tokens of an epoch, and predicted."""
        training, sampled = self.experiment.training, self.experiment.sampled
        one_vs_all = self.experiment.one_vs_all
        num_relations, batch_size = 2 * self.graph.num_relations, training.batch_size

        def make(edges: Tensor) -> Batches[Any]:
            if training.is_one_vs_all:
                return query_batches(edges, num_relations, batch_size, one_vs_all)
            return fact_batches(edges, num_relations, batch_size, sampled)

        return ChosenBatches(make, torch.tensor(with_inverses(self.graph)))

    def before_epoch(
        self, model: OutOfSampleModel, table: TokenTable, epoch: int, *, generator: torch.Generator
    ) -> None:
        if self.experiment.out_of_sample.mask_share and model.nodes.has_pieces:
            self.hide_facts(model, table, epoch)
        else:
            refresh_tokens(model.nodes, self.experiment, table, epoch, generator=generator)

    def hide_facts(self, model: OutOfSampleModel, table: TokenTable, epoch: int) -> None:
        """Tokenize the graph without a share of its facts, which are the batches of the epoch.

        So the tokens of a node never contain the predicted fact, as for unseen nodes, and walks do
        not follow it. The edge mask of walks is written in place, where a captured step reads it.
        """
        device = model.relation_vectors().device
        graph, rng = self.graph, np.random.default_rng([self.experiment.seed, epoch])
        order = rng.permutation(graph.num_triples)
        num_hidden = max(1, round(self.experiment.out_of_sample.mask_share * graph.num_triples))
        hidden, visible = (
            KnowledgeGraph(graph.triples[part], graph.num_nodes, graph.num_relations)
            for part in (order[:num_hidden], order[num_hidden:])
        )
        fresh = tokenize_by(Salts.draw(rng), build_adjacency(visible), table.vocabulary)
        columns = (fresh.anchors, fresh.distances, fresh.relations)
        rows = (torch.tensor(column, device=device) for column in columns)
        model.nodes.use_training_rows(*rows)
        self.hidden_batches.choose(torch.tensor(with_inverses(hidden)).to(device))
        if model.edge_mask is not None:
            is_visible = np.ones((2, graph.num_triples), np.float32)  # facts, inverses
            is_visible[:, order[:num_hidden]] = 0
            model.edge_mask.copy_(torch.from_numpy(is_visible.ravel()))

    def validate(self, model: OutOfSampleModel) -> Metrics:
        return self.evaluator.validate(model, model.table)

    def after_training(
        self, model: OutOfSampleModel, *, log: Callable[[str], None]
    ) -> dict[str, Any]:
        metric = self.experiment.training.metric
        return choose_coefficients(model.scorers, metric, lambda: self.validate(model), log=log)

    def evaluate(
        self, model: OutOfSampleModel, split: str, *, progress: Progress | None = None
    ) -> Report | None:
        self.check_split(split)
        if not self.unseen[split].num_edges:
            return None
        report = self.evaluator.report(model, model.table, split, progress)
        return report.named(self.dataset.names.relation)

    def check_split(self, split: str) -> None:
        if split not in self.unseen:
            raise InputError(f"there are no unseen nodes in {split!r}; choose valid or test")

    def num_evaluated(self, split: str) -> int:
        return self.unseen[split].num_edges

    def popularity(self, split: str) -> Report | None:
        if split not in self.unseen or not self.unseen[split].num_edges:
            return None
        return self.evaluator.popularity(split).named(self.dataset.names.relation)

    def compare_baselines(
        self, model: OutOfSampleModel, split: str, *, progress: Progress | None = None
    ) -> dict[str, Scores]:
        self.check_split(split)
        return self.evaluator.compare_baselines(model, model.table, split, progress)

    def remarks(self) -> dict[str, Any]:
        return {"unseen_nodes": {split: edges.num_unseen for split, edges in self.unseen.items()}}


def read_unseen_edges(folder: Path, split: str, graph: KnowledgeGraph) -> UnseenEdges:
    path = folder / UNSEEN
    try:
        columns = []
        for column in COLUMNS:
            path = folder / UNSEEN / f"{split}_{column}.npy"
            columns.append(np.load(path, allow_pickle=False))
        edges = UnseenEdges(*columns)
        stacked = np.stack([edges.neighbours, edges.relations % graph.num_relations], axis=1)
        facts = stacked[:, [0, 1, 0]]
        KnowledgeGraph(facts, graph.num_nodes, graph.num_relations)  # which checks the ids
    except Exception as error:  # a damaged header may raise anything that a parser can
        raise damaged(path, error) from error
    return edges


def check_settings(experiment: Experiment) -> None:
    """Refuse settings that cannot work for nodes that are not in the graph, or not together."""
    training, is_lookup = experiment.training, not experiment.encoder.has_pieces
    mask_share = experiment.out_of_sample.mask_share
    for is_wrong, sentence in (
        (
            experiment.tokenizer.select != "nearest" and not is_lookup,
            'its tokens come from its neighbours; set tokenizer.select = "nearest"',
        ),
        (
            is_lookup and (training.is_one_vs_all or training.loss == SAMPLED_SOFTMAX),
            "the baseline is trained with sampled negatives; set training.loss = softplus",
        ),
        (
            is_lookup and experiment.decoder.kind != "distmult",
            "the average of neighbours is defined for DistMult; set decoder.kind = distmult",
        ),
        *(
            (
                is_lookup,
                f"{settings.name} goes with pieces; set {settings.name}.{settings.switch} = 0 for "
                "the baseline",
            )
            for settings in filter(is_on, experiment.scorers)
        ),
        (
            mask_share > 0 and (training.shuffle_anchors or training.resample_relations),
            "with out_of_sample.mask_share every epoch has its own tokens; leave shuffle_anchors "
            "and resample_relations out",
        ),
    ):
        if is_wrong:
            raise InputError(f"out-of-sample link prediction: {sentence}")


OUT_OF_SAMPLE = TaskRecord(
    name="out-of-sample",
    description="missing facts of nodes that are added to the graph after training",
    task=OutOfSample,
    run="links",
    example_query="--head X --relation R",
    reads=(
        *("tokenizer", "encoder", SCORERS),
        *fields_of("decoder", without=["adjacent_pairs"]),  # CompGCN is not used
        *fields_of("one_vs_all", without=["hide_pairs", "target_degree"]),
        "out_of_sample",
        *fields_of("sampled", without=["path_queries"]),
        *fields_of("training", without=["hide_targets"]),  # mask_share hides facts
        *RANKING,
    ),
    metrics=RANK_METRICS,
    new_facts="--facts new.tsv",
)
