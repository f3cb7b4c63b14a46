"""The immutable state from which a run of link prediction answers queries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.data.dataset import Dataset
from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.path_scorers import PathGraph, PathScorers
from nodepiece.decoders.triple_scores import VectorScores
from nodepiece.decoders.unseen_nodes import encode_rows
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.edge_rows import EdgeRows
from nodepiece.graph.adjacency import Adjacency, build_adjacency
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.graph.names import Names
from nodepiece.inference.candidates import Candidates, presence
from nodepiece.inference.changed_graph import ChangedGraph, assumed_graph, changed
from nodepiece.inference.computed_once import computed_once
from nodepiece.inference.earlier_state import changed_by, rows_after
from nodepiece.inference.facts import Query
from nodepiece.inference.graph_slot import GraphSlot
from nodepiece.inference.graph_update import StoredBatch
from nodepiece.inference.graph_updates import StoredState
from nodepiece.inference.incremental_vectors import LayerState, Removed
from nodepiece.inference.patched_vectors import PatchedVectors, vectors_after, vectors_of
from nodepiece.inference.similar import NodeVectors
from nodepiece.inference.updated_graph import UpdatedGraph
from nodepiece.tokenizer.changing_graph import Change, ChangingGraph, NamedFact, with_nodes
from nodepiece.tokenizer.changing_tokens import NO_FACTS, Consequences
from nodepiece.tokenizer.token_rows import TokenRows, keep_latest
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

    def after(self, batch: StoredBatch) -> "Snapshot":
        """The snapshot after the next batch, with a copy of all that is computed of this one.

        It is that of `LinkRun.snapshot_on_disk`, but its time does not grow with the number of
        batches or the size of the graph, and the first query does not have to compute anything. It
        is to be used once the graph in the slot is that after the batch.
        """
        if self.updates is None:
            raise ValueError("the first batch follows a stored base")
        state = self.updates.state
        following = replace(state, number=state.number + 1, batches=(*state.batches, batch))
        updates, change = UpdatedGraph(following), batch.change
        graph, absent = changed(self.dataset.train, change), change.absence(self.absent)
        updates.__dict__.update(graph=graph, absent=absent)
        version = self.version + 1
        later = Snapshot(self.model, self.trained, self.table, updates, self.slot, version)
        nodes, vectors = batch.vectors.nodes, batch.vectors.vectors
        rows = torch.tensor(vectors, device=self.device)
        later.__dict__["patched"] = self.patched.followed_by(torch.tensor(nodes).long(), rows)
        later.__dict__["candidates"] = self.candidates.after(later.dataset, absent, change.batch)
        later._follow_rows(self.__dict__.get("edge_rows"), (batch,))
        if "first_distances" in self.updates.__dict__:
            updates.__dict__["first_distances"] = self.updates.first_distances.replaced(
                batch.tokens.nodes, batch.tokens.distances[:, 0], graph.num_nodes
            )
        return later

    def rebased(
        self,
        state: StoredState,
        candidates: Candidates | None = None,
        edge_rows: EdgeRows | None = None,
    ) -> "Snapshot":
        """A snapshot of the same graph from another base, into which batches were compacted.

        candidates: of the base, with its indices built; None: those of this snapshot are used.
        edge_rows: of the base; None: those of this snapshot are used, unless most have changed.
        """
        updates = UpdatedGraph(state)
        changes = tuple(batch.change for batch in state.batches)
        graph = ChangedGraph(state.facts, changes, self.names)
        updates.__dict__.update(graph=graph, absent=self.absent)
        same = Snapshot(self.model, self.trained, self.table, updates, self.slot, self.version)
        following = self.candidates
        if candidates is not None:
            following = candidates
            for change in changes:
                following = following.after(same.dataset, self.absent, change.batch)
        same.__dict__["candidates"] = following
        if edge_rows is not None:
            same._follow_rows(edge_rows, state.batches)
        elif "edge_rows" in self.__dict__ and not self.edge_rows.has_many_changes:
            same.__dict__["edge_rows"] = self.edge_rows
        return same

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
        return presence(self.absent, self.dataset.num_nodes)

    @computed_once
    def absent(self) -> LongArray:
        """Removed nodes, ascending."""
        return np.empty(0, np.int64) if self.updates is None else self.updates.absent

    @computed_once
    def patched(self) -> PatchedVectors:
        """The vectors of all nodes: trained or stored ones, and the rows changed since."""
        if self.updates is not None:
            return self.updates.vectors(self.device)
        with torch.no_grad():
            return PatchedVectors.of(self.model.node_vectors().detach())

    @computed_once
    def edge_index(self) -> EdgeIndex:
        graph = self.dataset.train
        edges = torch.tensor(with_inverses(graph), device=self.device)
        index, rows = EdgeIndex(edges, graph.num_nodes, self.model.num_relations), self.__dict__
        if "edge_rows" in rows and self.edge_rows.is_base:
            index.__dict__["rows_by_source"] = self.edge_rows.base  # the same ones
        return index

    @computed_once
    def edge_rows(self) -> EdgeRows:
        """The edges that leave every node, which sparse walks follow on a CPU."""
        return EdgeRows.of_graph(self.dataset.train)

    def _follow_rows(self, rows: EdgeRows | None, batches: Sequence[StoredBatch]) -> None:
        """Use rows of edges from before some batches; None: they are sorted when needed."""
        if rows is None:
            return
        for batch in batches:
            rows = self._changed_rows(rows, batch.change, is_next=True)
        self.__dict__["edge_rows"] = rows

    def _changed_rows(self, rows: EdgeRows, change: Change, *, is_next: bool) -> EdgeRows:
        graph, batch = self.dataset.train, change.batch
        return rows.after(
            batch.added,
            batch.removed,
            num_nodes=graph.num_nodes,
            num_direct=graph.num_relations,
            is_next=is_next,
        )

    @property
    def scorers(self) -> PathScorers:
        return self.model.scorers

    def path_relation(self, relation: int) -> int:
        """The id that a relation, maybe an inverse, has in `path_graph`."""
        return relation

    @computed_once
    def adjacency(self) -> Adjacency:
        """The edges of every node, inverses included."""
        return build_adjacency(self.dataset.train)

    @computed_once
    def layers(self) -> LayerState:
        """What the graph layers of the model get and aggregate."""
        model, nodes = self.model, np.arange(self.dataset.num_nodes, dtype=np.int32)
        with torch.no_grad():
            if model.nodes.has_pieces:
                encoded = encode_rows(model, self.rows_without(nodes, [NO_FACTS])[0])
            else:
                encoded = model.nodes.all_nodes()
            return LayerState.of(model, self.adjacency, self.edge_index, encoded)

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
            if self.model.layers:
                train, tokens = change.on(self.dataset.train), self.graph.tokens
                patched = vectors_after(self.model, self.patched, rows, tokens=tokens, graph=train)
        if not self.model.layers:  # an update need not wait for these
            nodes = torch.tensor(rows.nodes).long()
            patched = self.patched.with_rows(nodes, vectors_of(self.model, rows))
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

    def without(self, removed: IntArray) -> "HypotheticalSnapshot":
        """A snapshot without some facts of its graph, by ids: (num_removed, 3), each once."""
        return self._without(removed, self, Change.removing(removed), ())

    def rows_without(self, nodes: IntArray, removals: Sequence[IntArray]) -> list[TokenRows]:
        """The tokens of some nodes, by ascending ids, without each of some sets of facts."""
        return self.rows_after(nodes, [Change.removing(removed) for removed in removals])

    def rows_after(self, nodes: IntArray, changes: Sequence[Change]) -> list[TokenRows]:
        """The tokens of some nodes, by ascending ids, after each of some changes by itself.

        An update waits for one of them at most.
        """
        found = []
        for change in changes:
            with self.slot.reading():
                later = self.slot.since(self.version)
                if later is not None:
                    found.append(rows_after(self.graph, nodes, change, later))
                    continue
            return self.with_separate_graph().rows_after(nodes, changes)
        return found

    def rows_changed_by(self, change: Change) -> TokenRows:
        """The tokens that are new or different after a change."""
        if not self.model.nodes.has_pieces:
            return TokenRows.none(self.table)
        with self.slot.reading():
            later = self.slot.since(self.version)
            if later is not None:
                return changed_by(self.graph, change, later)
        return self.with_separate_graph().rows_changed_by(change)

    def _without(
        self, removed: IntArray, base: "Snapshot", change: Change, facts: tuple[NamedFact, ...]
    ) -> "HypotheticalSnapshot":
        """This snapshot without some facts, as `change` of `base` with assumed `facts`."""
        rows = base.rows_changed_by(change)
        own = vectors_without(self, removed, self._that_differ(rows))
        return HypotheticalSnapshot(
            self.model,
            self.trained,
            self.table,
            base=base,
            facts=facts,
            change=change,
            tokens=rows,
            own=own,
            masked=Masked(self, removed),
        )

    def _that_differ(self, rows: TokenRows) -> TokenRows:
        """The tokens that differ from those of this snapshot, of rows that differ from `base`."""
        return rows

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
        return Candidates(self.dataset, self.absent)

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Scores of all nodes, removed ones -inf: (batch,) ids twice -> (batch, num_nodes)."""
        heads, relations = heads.to(self.device), relations.to(self.device)
        with torch.no_grad():
            head = self.patched.rows(heads.cpu())
            relation = self.model.relation_vectors().index_select(0, relations)
            decoder = self.model.decoder
            if decoder.is_distance and decoder.tail_query is not None:
                scores = self.patched.distances(decoder.tail_query(head, relation))
            else:
                scores = self.patched.scores(
                    lambda vectors: decoder.score_all_tails(head, relation, vectors)
                )
            scores = self.model.scorers.add_to(scores, heads, relations, self.path_graph)
        if len(self.absent):
            scores[:, torch.tensor(self.absent, device=self.device)] = -torch.inf
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
        return None if self.model.scorers else self.vectors_alone()

    def vectors_alone(self) -> VectorScores | None:
        """What scores are computed from, without path scorers; None as in `vector_scores`."""
        decoder = self.model.decoder
        if decoder.tail_query is None:
            return None
        return VectorScores(self.patched.whole, self.model.relation_vectors(), decoder)

    def scores(self, query: Query) -> FloatArray:
        """Scores of all nodes, or of all relations and inverses; the caller may change them."""
        score_all = self.score_relations if query.is_relation_query else self.score_tails
        first, second = torch.tensor([[query.first], [query.second]])
        return score_all(first, second)[0].double().cpu().numpy()

    def path_graph(self) -> PathGraph:
        """The current graph, which path scorers follow."""
        relations = self.model.relation_vectors()
        return PathGraph(lambda: self.edge_index, relations, visible_rows=lambda: self.edge_rows)

    def _with(self, slot: GraphSlot, version: int, model: LinkModel) -> "Snapshot":
        """Another record of the same state, with the facts that are already computed."""
        other = Snapshot(model, self.trained, self.table, self.updates, slot, version)
        for name in ("dataset", "absent", "edge_rows"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    def _open_graph(self) -> ChangingGraph:
        if self.updates is not None:
            return self.updates.changing()
        return ChangingGraph(self.trained.train, self.table)


def follow(snapshot: Snapshot, batch: StoredBatch, publish: Callable[[Snapshot], None]) -> None:
    """Publish the snapshot after a batch of another process; the graph in its slot follows too."""
    slot, change, found = snapshot.slot, batch.change, None
    with slot.reading():
        if slot.is_open and slot.version == snapshot.version:
            found = snapshot.graph.tokens.consequences(change.batch)
    switch(snapshot, snapshot.after(batch), batch, found, publish)


def switch(
    snapshot: Snapshot,
    later: Snapshot,
    batch: StoredBatch,
    found: Consequences | None,
    publish: Callable[[Snapshot], None],
) -> None:
    """Write a batch to the graph in the slot of a snapshot, and publish the next snapshot.

    found: the consequences of the batch; None: the graph is not open, or has another version.
    Only this waits for those who read the graph, and they for it: all else was computed before.
    """
    slot = snapshot.slot
    with slot.changing():
        try:
            if found is not None:
                snapshot.graph.write(batch.change, found)
                slot.followed(batch)
                publish(later)
            else:
                slot.drop()  # it is opened again when it is needed
                publish(replace_version(later, slot.version))
        except BaseException:
            slot.drop()
            raise


def replace_version(snapshot: Snapshot, version: int) -> Snapshot:
    """A copy of a snapshot, with all that is computed of it."""
    other = replace(snapshot, version=version)
    other.__dict__.update({k: v for k, v in snapshot.__dict__.items() if k != "version"})
    return other


@dataclass(frozen=True, eq=False)
class HypotheticalSnapshot(Snapshot):
    """A snapshot with assumed facts, or without some facts, on top of one that does not change."""

    base: Snapshot = field(kw_only=True)
    facts: tuple[NamedFact, ...] = field(kw_only=True)  # that are assumed
    change: Change = field(kw_only=True)  # of the graph of `base`
    tokens: TokenRows = field(kw_only=True)  # of the nodes whose pieces are new or different
    own: PatchedVectors = field(kw_only=True)
    masked: "Masked | None" = field(default=None, kw_only=True)  # the same graph as a mask

    @property
    def number(self) -> int | None:
        return self.base.number

    @computed_once
    def dataset(self) -> Dataset:
        graph = self.base.dataset.train
        names = with_nodes(self.base.names, self.change.new_nodes)
        return replace(self.base.dataset, train=assumed_graph(graph, self.change, names))

    @computed_once
    def absent(self) -> LongArray:
        return self.change.absence(self.base.absent)

    @computed_once
    def candidates(self) -> Candidates:
        return self.base.candidates.after(self.dataset, self.absent, self.change.batch)

    @computed_once
    def patched(self) -> PatchedVectors:
        return self.own

    def without(self, removed: IntArray) -> "HypotheticalSnapshot":
        names = self.names
        gone = {
            (names.node(head), names.relation(relation), names.node(tail))
            for head, relation, tail in removed.tolist()
        }
        facts = tuple(fact for fact in self.facts if fact not in gone)
        return self._without(removed, self.base, self.change.without(removed), facts)

    def rows_without(self, nodes: IntArray, removals: Sequence[IntArray]) -> list[TokenRows]:
        changes = [self.change.without(removed) for removed in removals]
        return self.base.rows_after(nodes, changes)

    @computed_once
    def edge_rows(self) -> EdgeRows:
        return self._changed_rows(self.base.edge_rows, self.change, is_next=False)

    def path_graph(self) -> PathGraph:
        graph = super().path_graph()
        if self.masked is None:
            return graph
        masked = self.masked
        return replace(
            graph, edges=lambda: masked.snapshot.edge_index, mask=lambda: masked.edge_mask
        )

    def _that_differ(self, rows: TokenRows) -> TokenRows:
        nodes = np.union1d(rows.nodes, self.tokens.nodes).astype(np.int32)
        old = nodes[nodes < self.base.dataset.num_nodes]
        (below,) = self.base.rows_without(old, [NO_FACTS])
        before, after = keep_latest([below, self.tokens]), keep_latest([below, rows])
        columns = ((each.anchors, each.distances, each.relations) for each in (before, after))
        one, other = (np.concatenate(each, axis=1) for each in columns)
        return after.part((one != other).any(axis=1))

    def moved(self, model: LinkModel) -> "HypotheticalSnapshot":
        base = self.base.moved(model)
        own = self.own.to(base.device)
        return replace(self, model=model, base=base, own=own, masked=None)


@dataclass(frozen=True, eq=False)
class Masked:
    """The graph of a snapshot with some facts hidden."""

    snapshot: Snapshot
    hidden: IntArray  # (num_hidden, 3) facts of this graph

    @computed_once
    def edge_mask(self) -> Tensor:
        """(num_edges,) of the edges of the other snapshot; 0: hidden."""
        triples = self.snapshot.dataset.train.triples
        mask = self.snapshot.path_graph().visible().clone()
        for head, relation, tail in self.hidden:
            mine = np.flatnonzero(triples[:, 0] == head)  # few
            is_it = (triples[mine, 1] == relation) & (triples[mine, 2] == tail)
            for place in mine[is_it].tolist():
                mask[[place, place + len(triples)]] = 0.0
        return mask


def vectors_without(snapshot: Snapshot, removed: IntArray, rows: TokenRows) -> PatchedVectors:
    """The vectors of a snapshot without some facts; the tokens of `rows` differ then."""
    model = snapshot.model
    with torch.no_grad():
        if model.layers:
            gone = Removed.of(snapshot.adjacency, removed)
            nodes, vectors = snapshot.layers.without(gone, rows)
        else:
            nodes = rows.nodes.astype(np.int64)
            vectors = model.vectors_from(encode_rows(model, rows), None)
    return snapshot.patched.with_rows(torch.from_numpy(nodes), vectors)
