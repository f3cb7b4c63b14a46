"""A run of link or relation prediction: completes facts of the graph it was trained on.

The graph may change: by assumed facts (`with_facts`), and by stored updates.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.unseen_nodes import refuse_without_pieces
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.names import Names
from nodepiece.inference.explained import named_fact
from nodepiece.inference.facts import FactRun
from nodepiece.inference.forked import refuse_after_fork
from nodepiece.inference.graph_slot import GraphSlot
from nodepiece.inference.graph_updates import batches_after, has_updates, open_updates
from nodepiece.inference.named_vectors import NamedVectors, named_relations
from nodepiece.inference.neighbour_index import IndexPlace
from nodepiece.inference.opened_run import Opened, node_list
from nodepiece.inference.patched_vectors import PatchedVectors
from nodepiece.inference.similar import NodeVectors
from nodepiece.inference.snapshot import HypotheticalSnapshot, Snapshot, follow
from nodepiece.inference.updated_graph import UpdatedGraph
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.out_of_sample import OutOfSample
from nodepiece.tokenizer.changing_graph import (
    ChangingGraph,
    NamedFact,
    NamedFacts,
    by_name,
    without,
)


class LinkRun(FactRun):
    """Completes facts; node vectors are computed at the first query unless stored with the run."""

    model: LinkModel
    task: LinkPrediction | OutOfSample

    def __init__(
        self, opened: Opened, task: LinkPrediction | OutOfSample, model: LinkModel
    ) -> None:
        super().__init__(opened, task, model)
        self._snapshot = self.snapshot_on_disk()

    @property
    def snapshot(self) -> Snapshot:
        """The current state of the run; an update replaces it in one assignment."""
        return self._snapshot

    @snapshot.setter
    def snapshot(self, snapshot: Snapshot) -> None:
        self.publish(snapshot)

    def publish(self, snapshot: Snapshot) -> None:
        """Answer from another state from now on."""
        self._snapshot = snapshot

    def refresh(self) -> None:
        """Reload the state on disk, with updates of other processes."""
        later = None
        if self.updates is not None and not self.is_hypothetical:
            later = batches_after(self.folder, self.updates.state)
        if later:
            self.opened.files.check()  # after reading: what was read is of this run
            for batch in later:
                follow(self._snapshot, batch, self.publish)
            return
        snapshot = self.snapshot_on_disk()
        self.opened.files.check()
        self._snapshot = snapshot

    def snapshot_on_disk(self, slot: GraphSlot | None = None) -> Snapshot:
        """The latest state on disk. slot: already has the graph of that state."""
        updates = None
        if has_updates(self.folder):
            updates = UpdatedGraph(open_updates(self.folder, self.opened.files.model_hash))
        slot = slot or GraphSlot()
        table = self.opened.table
        return Snapshot(self.model, self.task.dataset, table, updates, slot, slot.version)

    def is_up_to_date(self, number: int | None) -> bool:
        """Whether the current state is that after batch `number` (None: as it was trained)."""
        return number == self.snapshot.number

    @property
    def updates(self) -> UpdatedGraph | None:
        """The graph after updates; None: it is as it was trained."""
        return self.snapshot.updates

    @property
    def is_hypothetical(self) -> bool:
        """Whether facts are assumed (`with_facts`) or left out (`without_facts`)."""
        return isinstance(self.snapshot, HypotheticalSnapshot)

    @property
    def is_present(self) -> NDArray[np.bool_]:
        """(num_nodes,): False for removed nodes, which are never answers."""
        return self.snapshot.is_present

    @property
    def patched(self) -> PatchedVectors:
        """The vectors of all nodes: trained or stored ones, and the rows changed since."""
        return self.snapshot.patched

    @property
    def graph(self) -> ChangingGraph:
        """The graph with its tokens, which an update changes: not for several threads.

        Change it only by updates, which change the facts and vectors of the run too.
        """
        return self.snapshot.graph

    @property
    def node_vectors(self) -> Tensor:
        """(num_nodes, dim), in the order of the node names."""
        return self.snapshot.patched.whole

    @property
    def num_nodes(self) -> int:
        return int(self.is_present.sum())

    def _state(self) -> str:
        if self.is_hypothetical:
            assumed = cast(HypotheticalSnapshot, self.snapshot)
            return ", with assumed facts" if assumed.facts else ", with some facts left out"
        return "" if self.updates is None else ", with updates"

    def node_names(self) -> list[str]:
        snapshot = self.snapshot
        names = snapshot.names.nodes.to_pylist()
        return [name for name, present in zip(names, snapshot.is_present, strict=True) if present]

    def embed(self, nodes: Sequence[str] | None = None) -> NDArray[np.float32]:
        """The vectors of some nodes by name, or of all that were not removed, by `node_names`."""
        refuse_after_fork()
        snapshot = self.snapshot
        if nodes is None:
            return snapshot.patched.whole.cpu().numpy()[snapshot.is_present]
        ids = torch.from_numpy(snapshot.names.node_ids(node_list(nodes)))
        return snapshot.patched.rows(ids).cpu().numpy()

    def node_table(self) -> NodeVectors:
        snapshot = self.snapshot
        base = snapshot.base if isinstance(snapshot, HypotheticalSnapshot) else snapshot
        table = snapshot.node_table
        if table.patched.base is not base.patched.base:
            return table  # all vectors are different with assumed facts
        stored = base.updates
        number = "trained" if stored is None else f"{stored.state.base_number:06}"
        key = f"{self.opened.files.model_hash[:16]}-{number}"
        return replace(table, place=IndexPlace(self.folder, key))

    def vectors(self, nodes: Sequence[str] | None = None) -> NamedVectors:
        """The vectors of some nodes, or of all that were not removed, with their names."""
        if nodes is not None:
            return super().vectors(nodes)
        refuse_after_fork()
        snapshot = self.snapshot  # one state for names and vectors
        is_present = snapshot.is_present
        names = snapshot.names.nodes.filter(pa.array(is_present)).to_pylist()
        return NamedVectors(names, snapshot.patched.whole.cpu().numpy()[is_present])

    def relation_vectors(self) -> NamedVectors:
        refuse_after_fork()
        return named_relations(self.dataset.names, self.model.relation_vectors())

    def with_facts(self, facts: NamedFacts) -> Self:
        """A run that answers as if these facts, by name, were in its graph.

        New nodes, and nodes whose pieces change with these facts, get pieces and vectors without
        training. The run itself does not change, and later updates of it do not affect the
        returned run.
        """
        refuse_after_fork()
        refuse_without_pieces(self.model)
        named, assumed = tuple(by_name(facts)), None
        while assumed is None:
            snapshot = self.snapshot
            if isinstance(snapshot, HypotheticalSnapshot):
                base = snapshot.base
                assumed = base.with_facts(snapshot.facts + named)
                assumed = assumed or base.with_separate_graph().with_facts(snapshot.facts + named)
            else:
                # None: an update changes the graph of this snapshot, and a new snapshot follows;
                # if none does, as this run is a copy, the snapshot loads a graph of its own.
                assumed = snapshot.with_facts(named)
                if assumed is None and self.snapshot is snapshot:
                    assumed = snapshot.with_separate_graph().with_facts(named)
        if isinstance(snapshot, HypotheticalSnapshot):
            removed = without(snapshot.change.batch.removed, fact_ids(assumed.names, named))
            assumed = assumed.without(removed) if len(removed) else assumed
        other = copy(self)
        other._snapshot = assumed
        return other

    def without_facts(self, facts: NamedFacts) -> Self:
        """A run that answers as if these facts, by name, were not in its graph.

        Pieces and vectors are computed again without training. The run itself does not change, and
        later updates of it do not affect the returned run.
        """
        refuse_after_fork()
        snapshot = self.snapshot
        ids = np.unique(fact_ids(snapshot.names, by_name(facts)), axis=0)
        if len(missing := without(ids, snapshot.dataset.train.triples)):
            raise InputError(
                f"the graph has no fact {' — '.join(named_fact(snapshot.names, missing[0]))}; only "
                "its own facts can be left out"
            )
        other = copy(self)
        other._snapshot = snapshot.without(ids)
        return other

    def to(self, device: torch.device | str) -> Self:
        super().to(device)
        self._snapshot = self._snapshot.moved(self.model)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        from nodepiece.inference.run import reopen  # which opens runs of all kinds

        snapshot = self.snapshot
        if not isinstance(snapshot, HypotheticalSnapshot):
            return reopen, (self.address,)
        names, removed = snapshot.base.names, snapshot.change.batch.removed
        left_out = tuple(named_fact(names, fact) for fact in removed)
        return reopen, (self.address, snapshot.facts, left_out)


def fact_ids(names: Names, facts: Iterable[NamedFact]) -> IntArray:
    """(num_facts, 3) ids of facts by name; the relation is a direct one."""
    rows = [
        (names.node_id(head), names.relation_id(relation), names.node_id(tail))
        for head, relation, tail in facts
    ]
    return np.array(rows, np.int32).reshape(-1, 3)
