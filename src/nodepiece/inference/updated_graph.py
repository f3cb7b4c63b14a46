"""The current graph of a run: the training graph with all updates since."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from nodepiece.encoders.pieces import shared_memory
from nodepiece.graph.adjacency import Adjacency, build_adjacency
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.inference.candidates import presence
from nodepiece.inference.changed_graph import facts_after
from nodepiece.inference.computed_once import computed_once
from nodepiece.inference.graph_updates import StoredState
from nodepiece.inference.patched_counts import PatchedCounts
from nodepiece.inference.patched_vectors import PatchedVectors
from nodepiece.tokenizer.changing_graph import ChangingGraph, with_nodes
from nodepiece.tokenizer.context import relation_sets
from nodepiece.tokenizer.token_rows import keep_latest
from nodepiece.tokenizer.tokens import TokenTable


@dataclass(frozen=True, eq=False)
class UpdatedGraph:
    """A stored state, combined from base and batches on demand."""

    state: StoredState

    @computed_once
    def graph(self) -> KnowledgeGraph:
        names = self._names()
        return KnowledgeGraph(self._facts(), len(names.nodes), len(names.relations), names)

    @computed_once
    def absent(self) -> LongArray:
        """Removed nodes, ascending."""
        absent = np.flatnonzero(~self.state.is_present)
        for batch in self.state.batches:
            absent = batch.change.absence(absent)
        return absent

    @computed_once
    def is_present(self) -> NDArray[np.bool_]:
        """(num_nodes,): True for nodes that were not removed."""
        return presence(self.absent, self.graph.num_nodes)

    @computed_once
    def first_distances(self) -> PatchedCounts:
        """The hops from each node to its nearest anchor, as in tokens, which have anchors."""
        table = self.state.table
        found = PatchedCounts.of(table.distances[:, 0].astype(np.int64))
        for batch in self.state.batches:
            tokens = batch.tokens
            number = max(found.num_nodes, int(tokens.nodes.max(initial=-1)) + 1)
            found = found.replaced(tokens.nodes, tokens.distances[:, 0], number)
        return found

    def vectors(self, device: torch.device) -> PatchedVectors:
        state = self.state
        patched = PatchedVectors.of(shared_memory(state.vectors).to(device))
        for batch in state.batches:
            nodes, vectors = batch.vectors.nodes, batch.vectors.vectors
            rows = torch.tensor(vectors, device=device)
            patched = patched.followed_by(torch.tensor(nodes).long(), rows)
        return patched

    def changing(self) -> ChangingGraph:
        """The graph with its tokens, to apply further changes to."""
        adjacency = build_adjacency(self.graph)
        table = self.table(adjacency)
        return ChangingGraph(self.graph, table, adjacency=adjacency, is_present=self.is_present)

    def table(self, adjacency: Adjacency) -> TokenTable:
        """The tokens of all nodes; adjacency: of the graph."""
        graph = self.graph
        base = self.state.table
        vocabulary = replace(
            base.vocabulary,
            num_nodes=graph.num_nodes,
            fingerprint=graph.fingerprint,
            names=graph.names,
        )
        anchors, distances, relations = base.anchors, base.distances, base.relations
        if self.state.batches:
            rows = keep_latest([batch.tokens for batch in self.state.batches])
            _, anchors, distances, relations = rows.replace_in(
                anchors, distances, relations, graph.num_nodes
            )
        sets = relation_sets(adjacency)
        return TokenTable(vocabulary, anchors, distances, relations, sets, base.salts)

    def _names(self) -> Names:
        names = self.state.table.vocabulary.names or Names.of([], [])
        more = [name for batch in self.state.batches for name in batch.change.new_nodes]
        return with_nodes(names, more)

    def _facts(self) -> IntArray:
        """The facts of the base with the batches applied."""
        return facts_after(self.state.facts, tuple(batch.change for batch in self.state.batches))
