"""A run of link or relation prediction, which completes facts of the graph it was trained on.

The graph may go on: by facts that are only supposed (`with_facts`), and by lasting updates.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.data.dataset import Dataset
from nodepiece.data.releases import sha256_of
from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.row_vectors import encoder_of
from nodepiece.encoders.edge_products import EdgeEnds, ends_of
from nodepiece.graph.arrays import FloatArray
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.inference.changed_vectors import vectors_after
from nodepiece.inference.facts import FactRun, Question
from nodepiece.inference.live_graph import LiveGraph
from nodepiece.inference.live_store import has_live, open_live
from nodepiece.inference.patched_vectors import PatchedVectors
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.out_of_sample import OutOfSample
from nodepiece.tasks.run_folder import MODEL
from nodepiece.tokenizer.changing_graph import ChangingGraph, NamedFacts
from nodepiece.tokenizer.storage import load_tokens


class LinkRun(FactRun):
    """Node vectors are computed once, at the first question, unless they lie beside the run."""

    model: LinkModel
    task: LinkPrediction | OutOfSample

    def __init__(self, folder: Path, task: LinkPrediction | OutOfSample, model: LinkModel) -> None:
        super().__init__(folder, task, model)
        self._open_graph: Callable[[], ChangingGraph] = self._graph_on_disk
        self.is_supposed = False  # whether some of its facts are
        self.look_again()

    def look_again(self) -> None:
        """Take over what updates, by whomever, have made of the graph."""
        for name in ("dataset", "patched", "graph", "is_present", "_ends"):
            self.__dict__.pop(name, None)
        updated = has_live(self.folder)
        self.live = LiveGraph(open_live(self.folder, self.model_hash)) if updated else None

    def is_up_to_date(self, number: int | None) -> bool:
        """Whether it answers by the state after batch `number` (None: as it was trained)."""
        return number == (None if self.live is None else self.live.state.number)

    @cached_property
    def dataset(self) -> Dataset:  # type: ignore[override]
        """What is known: the facts trained on, updated since, and those of the other splits."""
        trained = self.task.dataset
        return trained if self.live is None else replace(trained, train=self.live.graph)

    @cached_property
    def is_present(self) -> NDArray[np.bool_]:
        """(num_nodes,): a node that was removed is no answer."""
        return (
            np.ones(self.dataset.num_nodes, np.bool_) if self.live is None else self.live.is_present
        )

    @cached_property
    def patched(self) -> PatchedVectors:
        """The vectors of all nodes: what was trained or stored, and what is different since."""
        if self.live is not None:
            return self.live.vectors(self.model.relation_vectors().device)
        with torch.no_grad():
            return PatchedVectors.of(self.model.node_vectors())

    @cached_property
    def graph(self) -> ChangingGraph:
        """The graph with its tokens, for `with_facts` and `update_run` to plan changes on.

        Not to be changed otherwise: the run would go on to answer by its facts and vectors.
        """
        return self._open_graph()

    @property
    def vectors(self) -> Tensor:
        """(num_nodes, dim), in the order of the node names."""
        return self.patched.whole

    @property
    def model_hash(self) -> str:
        return sha256_of(self.folder / MODEL)

    def node_names(self) -> list[str]:
        names = self.dataset.names.nodes.to_pylist()
        return [name for name, present in zip(names, self.is_present, strict=True) if present]

    def embed(self, nodes: Sequence[str] | None = None) -> NDArray[np.float32]:
        """The vectors of some nodes by name, or of all that were not removed, by `node_names`."""
        if nodes is None:
            return self.vectors.cpu().numpy()[self.is_present]
        ids = torch.from_numpy(self.dataset.names.node_ids(nodes))
        return self.patched.rows(ids).cpu().numpy()

    def with_facts(self, facts: NamedFacts) -> Self:
        """The same run, asked as if these facts, by name, were in its graph.

        A node that is new gets its pieces from the facts, and its vector by the weights as they
        are; so does an old node whose pieces are not the same with them.
        """
        encoder_of(self.model)
        plan = self.graph.plan(add=facts)
        rows = self.graph.changed_by(plan)
        train = plan.on(self.dataset.train)
        other = copy(self)
        for name in ("graph", "_ends"):
            other.__dict__.pop(name, None)
        other.is_supposed = True
        other._open_graph = lambda: self._open_graph().after(plan)
        other.dataset = replace(self.dataset, train=train)
        other.is_present = plan.presence(self.is_present)
        other.patched = vectors_after(
            self.model, self.patched, rows, tokens=self.graph.tokens, graph=train
        )
        return other

    def to(self, device: torch.device | str) -> Self:
        super().to(device)
        self.__dict__.pop("_ends", None)
        if "patched" in self.__dict__:
            self.patched = self.patched.to(torch.device(device))
        return self

    def scores(self, question: Question) -> FloatArray:
        device = self.patched.base.device
        head = self.patched.rows(torch.tensor([question.first]))
        relations = self.model.relation_vectors()
        decoder = self.model.decoder
        with torch.no_grad():
            if question.asks_relation:
                tail = self.patched.rows(torch.tensor([question.second]))
                return decoder.score_all_relations(head, tail, relations)[0].double().cpu().numpy()
            relation = relations[torch.tensor([question.second], device=device)]
            scores = self.patched.scores(
                lambda vectors: decoder.score_all_tails(head, relation, vectors)
            )
            if self.model.walks is not None:
                scores = scores + self._walk(question).to(scores.device)
        result: FloatArray = scores[0].double().cpu().numpy()
        result[~self.is_present] = -np.inf
        return result

    def _walk(self, question: Question) -> Tensor:
        """What walks in the graph as it is now add to scores: (1, num_nodes)."""
        device = self.model.relation_vectors().device
        first, second = torch.tensor([[question.first], [question.second]], device=device)
        return self.model.walk(first, second, ends=self._ends)

    @cached_property
    def _ends(self) -> EdgeEnds:
        graph, device = self.dataset.train, self.model.relation_vectors().device
        edges = torch.tensor(with_inverses(graph), device=device)
        return ends_of(edges, graph.num_nodes, self.model.num_relations)

    def _graph_on_disk(self) -> ChangingGraph:
        if self.live is not None:
            return self.live.changing()
        table = load_tokens(self.folder / "vocabulary", graph=self.task.graph)
        return ChangingGraph(self.task.graph, table)
