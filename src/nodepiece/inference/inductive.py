"""A run of inductive link prediction: completes facts of any graph with its relations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.data.any_graph import graph as read_graph
from nodepiece.data.any_graph import with_names
from nodepiece.data.dataset import Dataset
from nodepiece.data.inductive import with_relation_ids_of
from nodepiece.decoders.inductive_model import EncodedGraph, InductiveModel
from nodepiece.decoders.path_scorers import PathGraph, PathScorers
from nodepiece.decoders.triple_scores import VectorScores
from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress
from nodepiece.evaluation.report import Report, Scores
from nodepiece.graph.adjacency import Adjacency, build_adjacency
from nodepiece.graph.arrays import FloatArray, IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.inference.candidates import Candidates
from nodepiece.inference.computed_once import computed_once
from nodepiece.inference.facts import FactRun, Query
from nodepiece.inference.forked import refuse_after_fork
from nodepiece.inference.named_vectors import NamedVectors, named_relations
from nodepiece.inference.opened_run import Opened, node_list
from nodepiece.inference.patched_vectors import PatchedVectors
from nodepiece.inference.similar import NodeVectors
from nodepiece.tasks.inductive_evaluator import InductiveEvaluator
from nodepiece.tasks.inductive_link_prediction import InductiveLinkPrediction
from nodepiece.tokenizer.changing_graph import without

NO_FACTS = np.empty((0, 3), np.int32)


@dataclass(frozen=True, eq=False)
class EncodedSnapshot:
    """A model on a graph, whose vectors are computed at the first query."""

    model: InductiveModel
    evaluator: InductiveEvaluator
    dataset: Dataset

    @computed_once
    def encoded(self) -> EncodedGraph:
        with torch.no_grad():
            return self.model.encode(self.evaluator.view(self.model))

    @property
    def device(self) -> torch.device:
        return self.model.tables.relations.device

    @computed_once
    def candidates(self) -> Candidates:
        """Which answers queries may have."""
        return Candidates(self.dataset, np.empty(0, np.int64))

    @computed_once
    def relation_rows(self) -> Tensor:
        """(2 * num_relations,): the row of the model's vectors for each relation of the graph."""
        graph, number = self.encoded, self.dataset.train.num_relations
        rows = [graph.view.relation_row(relation, number) for relation in range(2 * number)]
        return torch.tensor(rows, device=graph.nodes.device)

    @property
    def scorers(self) -> PathScorers:
        return self.model.scorers

    @computed_once
    def adjacency(self) -> Adjacency:
        """The edges of every node, inverses included."""
        return build_adjacency(self.dataset.train)

    @computed_once
    def node_table(self) -> NodeVectors:
        """The vectors of all nodes, to compare them with each other."""
        names, present = self.dataset.names.nodes, self.candidates.is_present
        return NodeVectors(PatchedVectors.of(self.encoded.nodes), names, present)

    def path_graph(self) -> PathGraph:
        """The graph that path scorers follow."""
        return self.encoded.path_graph()

    def path_relation(self, relation: int) -> int:
        """The id that a relation, maybe an inverse, has in `path_graph`."""
        return int(self.relation_rows[relation])

    def without(self, removed: IntArray) -> "EncodedSnapshot":
        """The model on the graph without some facts, by ids: tokens and vectors are made again."""
        graph = self.dataset.train
        less = replace(graph, triples=without(graph.triples, removed))
        dataset = replace(self.dataset, train=less)
        experiment, num_known = self.evaluator.experiment, self.evaluator.num_known
        evaluator = InductiveEvaluator(experiment, dataset, num_known)
        return EncodedSnapshot(self.model, evaluator, dataset)

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Scores of all nodes: (batch,) ids twice -> (batch, num_nodes)."""
        graph, device = self.encoded, self.encoded.nodes.device
        rows = self.relation_rows[relations.to(device)]
        with torch.no_grad():
            return self.model.score_all_tails(heads.to(device), rows, graph)

    def score_relations(self, heads: Tensor, tails: Tensor) -> Tensor:
        """Scores of all relations and inverses: (batch,) ids twice -> (batch, num_relations)."""
        graph, device = self.encoded, self.encoded.nodes.device
        with torch.no_grad():
            scores = self.model.score_all_relations(heads.to(device), tails.to(device), graph)
        return scores[:, self.relation_rows]

    def vector_scores(self) -> VectorScores | None:
        """What scores are computed from; None: they are no products or distances of vectors."""
        return None if self.model.scorers else self.vectors_alone()

    def vectors_alone(self) -> VectorScores | None:
        """What scores are computed from, without path scorers; None as in `vector_scores`."""
        graph = self.encoded
        if graph.decoder.tail_query is None:
            return None
        return VectorScores(graph.nodes, graph.relations[self.relation_rows], graph.decoder)

    def scores(self, query: Query) -> FloatArray:
        score_all = self.score_relations if query.is_relation_query else self.score_tails
        first, second = torch.tensor([[query.first], [query.second]])
        return score_all(first, second)[0].double().cpu().numpy()


class InductiveRun(FactRun):
    """Completes facts of the experiment's inference graph, or of another one (`on_graph`)."""

    model: InductiveModel
    task: InductiveLinkPrediction

    def __init__(
        self,
        opened: Opened,
        task: InductiveLinkPrediction,
        model: InductiveModel,
        *,
        other_graph: tuple[KnowledgeGraph, str] | None = None,  # and `unseen_relations`
    ) -> None:
        super().__init__(opened, task, model)
        self.evaluator, self.other_graph = task.evaluator, other_graph
        self._snapshot = EncodedSnapshot(model, task.evaluator, task.inference)

    @property
    def snapshot(self) -> EncodedSnapshot:
        return self._snapshot

    def on_graph(self, graph: Any, *, unseen_relations: str = "refuse") -> Self:
        graph = with_names(read_graph(graph))
        if unseen_relations not in ("refuse", "mean"):
            raise InputError(f"unseen_relations = {unseen_relations!r}; it is refuse or mean")
        graphs = self.task.dataset
        keeps = unseen_relations == "mean"
        aligned = with_relation_ids_of(
            graph, graphs.training.names.relations, keep_unseen_relations=keeps
        )
        inference = Dataset("graph", aligned, NO_FACTS, NO_FACTS, {})
        task = replace(self.task, dataset=replace(graphs, inference=inference))
        return type(self)(self.opened, task, self.model, other_graph=(graph, unseen_relations))

    def for_other_facts(self) -> str:
        return "it answers on any graph: give one with all facts (--graph FILE, or run.on_graph)"

    @property
    def encoded(self) -> EncodedGraph:
        """The vectors of the graph's nodes, computed at the first query."""
        return self.snapshot.encoded

    @property
    def num_nodes(self) -> int:
        return self.dataset.num_nodes

    def _state(self) -> str:
        return "" if self.other_graph is None else " of another graph"

    def node_table(self) -> NodeVectors:
        return self.snapshot.node_table

    def node_names(self) -> list[str]:
        return self.dataset.names.nodes.to_pylist()

    def embed(self, nodes: Sequence[str] | None = None) -> NDArray[np.float32]:
        """Node vectors of the current graph, the input of the decoder, without walks."""
        refuse_after_fork()
        vectors = self.encoded.nodes.cpu().numpy()
        return vectors if nodes is None else vectors[self.dataset.names.node_ids(node_list(nodes))]

    def relation_vectors(self) -> NamedVectors:
        """The vectors of the graph's relations after the graph layers, and of their inverses."""
        refuse_after_fork()
        snapshot = self.snapshot
        num_relations = snapshot.dataset.train.num_relations
        view = snapshot.encoded.view
        rows = [view.relation_row(r, num_relations) for r in range(2 * num_relations)]
        return named_relations(snapshot.dataset.names, snapshot.encoded.relations[rows])

    def evaluate_baseline(self, split: str = "test") -> Report:
        """The metrics of personalized PageRank from the given head or tail."""
        refuse_after_fork()
        if not len(self.dataset.part(split)):
            raise InputError(f"{self.folder} has no {split} facts; choose another split")
        return self.evaluator.evaluate_pagerank(split)

    def compare_baselines(
        self, split: str = "test", *, progress: Progress | None = None
    ) -> dict[str, Scores]:
        refuse_after_fork()
        if not len(self.dataset.part(split)):
            raise InputError(f"{self.folder} has no {split} facts; choose another split")
        return self.evaluator.compare_baselines(self.model, split, progress)

    def to(self, device: torch.device | str) -> Self:
        super().to(device)
        self._snapshot = replace(self._snapshot, model=self.model)  # vectors are computed there
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        from nodepiece.inference.run import reopen_on  # which opens runs of all kinds

        if self.other_graph is None:
            return super().__reduce__()
        return reopen_on, (self.address, *self.other_graph)
