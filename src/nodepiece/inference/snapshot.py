"""The immutable state from which a run of link prediction answers queries."""

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.data.dataset import Dataset
from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.path_scorers import PathGraph
from nodepiece.decoders.triple_scores import VectorScores
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.graph.arrays import FloatArray
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.graph.names import Names
from nodepiece.inference.candidates import Candidates
from nodepiece.inference.computed_once import computed_once
from nodepiece.inference.facts import Query
from nodepiece.inference.graph_slot import GraphSlot
from nodepiece.inference.patched_vectors import PatchedVectors, vectors_after
from nodepiece.inference.similar import NodeVectors
from nodepiece.inference.updated_graph import UpdatedGraph
from nodepiece.tokenizer.changing_graph import Change, ChangingGraph, NamedFact, with_nodes
from nodepiece.tokenizer.token_rows import TokenRows
from nodepiece.tokenizer.tokens import TokenTable


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Model, tokens, vectors and facts of one state of a graph. Any number of threads read it.

    It never changes: values that are not fields are computed at their first use, from arrays that
    were opened with the run. An update makes another snapshot.
    """

    model: LinkModel
    trained: Dataset
    table: TokenTable  # of the graph that was trained on
    updates: UpdatedGraph | None = None  # None: the graph is as it was trained
    slot: GraphSlot = field(default_factory=GraphSlot)
    version: int = 0  # of the graph in the slot that belongs to this snapshot

    @property
    def number(self) -> int | None:
        """The number of the last update; None: the graph is as it was trained."""
        return None if self.updates is None else self.updates.state.number

    @property
    def device(self) -> torch.device:
        return self.model.relation_vectors().device

    @computed_once
    def dataset(self) -> Dataset:
        """The known facts: of training with later updates, and of the other splits."""
        return (
            self.trained
            if self.updates is None
            else replace(self.trained, train=self.updates.graph)
        )

    @property
    def names(self) -> Names:
        return self.dataset.names

    @computed_once
    def is_present(self) -> NDArray[np.bool_]:
        """(num_nodes,): False for removed nodes, which are never answers."""
        return (
            np.ones(self.dataset.num_nodes, np.bool_)
            if self.updates is None
            else self.updates.is_present
        )

    @computed_once
    def patched(self) -> PatchedVectors:
        """The vectors of all nodes: trained or stored ones, and the rows changed since."""
        if self.updates is not None:
            return self.updates.vectors(self.device)
        with torch.no_grad():
            return PatchedVectors.of(self.model.node_vectors())

    @computed_once
    def edge_index(self) -> EdgeIndex:
        graph = self.dataset.train
        edges = torch.tensor(with_inverses(graph), device=self.device)
        return EdgeIndex(edges, graph.num_nodes, self.model.num_relations)

    @property
    def graph(self) -> ChangingGraph:
        """The graph with its tokens, to plan changes on, while the slot is held."""
        return self.slot.graph(self._open_graph)

    def with_facts(self, facts: tuple[NamedFact, ...]) -> "HypotheticalSnapshot | None":
        """A snapshot with assumed facts; None if an update has changed the graph in the slot."""
        with self.slot.reading():
            if self.slot.version != self.version:
                return None
            change = self.graph.plan(add=facts)
            rows = self.graph.changed_by(change)
            train = change.on(self.dataset.train) if self.model.layers else None
            patched = vectors_after(
                self.model, self.patched, rows, tokens=self.graph.tokens, graph=train
            )
        return HypotheticalSnapshot(
            self.model,
            self.trained,
            self.table,
            base=self,
            facts=facts,
            change=change,
            tokens=rows,
            own=patched,
        )

    def with_separate_graph(self) -> "Snapshot":
        """A snapshot with a separate graph, opened at its first use."""
        return self._with(GraphSlot(), 0, self.model)

    def moved(self, model: LinkModel) -> "Snapshot":
        """A snapshot with a copy of the model, which is on another device."""
        moved = self._with(self.slot, self.version, model)
        if "patched" in self.__dict__:
            moved.__dict__["patched"] = self.patched.to(moved.device)
        return moved

    @computed_once
    def candidates(self) -> Candidates:
        """Which answers queries may have."""
        return Candidates(self.dataset, self.is_present)

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Scores of all nodes, removed ones -inf: (batch,) ids twice -> (batch, num_nodes)."""
        heads, relations = heads.to(self.device), relations.to(self.device)
        with torch.no_grad():
            head = self.patched.rows(heads.cpu())
            relation = self.model.relation_vectors().index_select(0, relations)
            decoder = self.model.decoder
            scores = self.patched.scores(
                lambda vectors: decoder.score_all_tails(head, relation, vectors)
            )
            scores = self.model.scorers.add_to(scores, heads, relations, self._path_graph)
        if len(self.candidates.absent):
            scores[:, torch.tensor(self.candidates.absent, device=self.device)] = -torch.inf
        return scores

    def score_relations(self, heads: Tensor, tails: Tensor) -> Tensor:
        """Scores of all relations and inverses: (batch,) ids twice -> (batch, num_relations)."""
        with torch.no_grad():
            head, tail = self.patched.rows(heads.cpu()), self.patched.rows(tails.cpu())
            return self.model.decoder.score_all_relations(head, tail, self.model.relation_vectors())

    @computed_once
    def node_table(self) -> NodeVectors:
        """The vectors of all nodes, to compare them with each other."""
        return NodeVectors(self.patched, self.names.nodes, self.is_present)

    def vector_scores(self) -> VectorScores | None:
        """What scores are computed from; None: they are no products or distances of vectors."""
        decoder = self.model.decoder
        if self.model.scorers or decoder.tail_query is None:
            return None
        return VectorScores(self.patched.whole, self.model.relation_vectors(), decoder)

    def scores(self, query: Query) -> FloatArray:
        """Scores of all nodes, or of all relations and inverses; the caller may change them."""
        score_all = self.score_relations if query.is_relation_query else self.score_tails
        first, second = torch.tensor([[query.first], [query.second]])
        return score_all(first, second)[0].double().cpu().numpy()

    def _path_graph(self) -> PathGraph:
        """The current graph, which path scorers follow."""
        return self.model.path_graph(edge_index=self.edge_index)

    def _with(self, slot: GraphSlot, version: int, model: LinkModel) -> "Snapshot":
        """Another record of the same state, with the facts that are already computed."""
        other = Snapshot(model, self.trained, self.table, self.updates, slot, version)
        for name in ("dataset", "is_present"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    def _open_graph(self) -> ChangingGraph:
        if self.updates is not None:
            return self.updates.changing()
        return ChangingGraph(self.trained.train, self.table)


@dataclass(frozen=True, eq=False)
class HypotheticalSnapshot(Snapshot):
    """A snapshot with some assumed facts on top of another one, which does not change."""

    base: Snapshot = field(kw_only=True)
    facts: tuple[NamedFact, ...] = field(kw_only=True)
    change: Change = field(kw_only=True)  # of the graph, by these facts
    tokens: TokenRows = field(kw_only=True)  # of the nodes whose pieces are new or different
    own: PatchedVectors = field(kw_only=True)

    @property
    def number(self) -> int | None:
        return self.base.number

    @computed_once
    def dataset(self) -> Dataset:
        return replace(self.base.dataset, train=self.change.on(self.base.dataset.train))

    @property
    def names(self) -> Names:
        return with_nodes(self.base.names, self.change.new_nodes)

    @computed_once
    def is_present(self) -> NDArray[np.bool_]:
        return self.change.presence(self.base.is_present)

    @computed_once
    def patched(self) -> PatchedVectors:
        return self.own

    def moved(self, model: LinkModel) -> "HypotheticalSnapshot":
        base = self.base.moved(model)
        return replace(self, model=model, base=base, own=self.own.to(base.device))
