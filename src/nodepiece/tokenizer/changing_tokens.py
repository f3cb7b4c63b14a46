"""The tokens of a graph that changes, by ids: always those of tokenizing the current graph."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodepiece.errors import InputError
from nodepiece.graph.adjacency import Adjacency
from nodepiece.graph.arrays import IntArray, ScalarT
from nodepiece.graph.changed_edges import ChangedEdges, changed_edges
from nodepiece.graph.changing_adjacency import SPARE_SHARE, ChangingAdjacency, with_capacity
from nodepiece.graph.changing_nearest import NearestTable, Rows
from nodepiece.graph.nearest import UNREACHED
from nodepiece.tokenizer.changing_context import context_of, nodes_with_other_relations
from nodepiece.tokenizer.random_anchors import RandomTable, rows_that_differ
from nodepiece.tokenizer.token_rows import TokenRows
from nodepiece.tokenizer.tokens import (
    NO_DISTANCE,
    TokenTable,
    assign_anchors,
    stored_anchors,
    tokenize_by,
)
from nodepiece.tokenizer.vocabulary import Vocabulary

LARGE, LARGE_SHARE = 50_000, 0.02  # a batch is large with more facts and a larger share of all
NO_FACTS: IntArray = np.empty((0, 3), np.int32)


@dataclass(frozen=True, eq=False)
class Batch:
    """Changes of a graph that are applied together."""

    added: IntArray  # (num_added, 3) new facts, each once
    removed: IntArray  # (num_removed, 3) existing facts, each once
    num_new_nodes: int = 0  # with the next ids; `added` may name them


class Context(NamedTuple):
    """Relational contexts that changed."""

    nodes: IntArray  # (num_rows,) ascending
    tokens: IntArray  # (num_rows, m)


class Consequences(NamedTuple):
    """What a batch changes."""

    anchors: Rows
    context: Context
    rows: TokenRows  # the tokens that are new or different


class ChangingTokens:
    """Edges and tokens of all nodes, updated batch by batch.

    `changed_by` returns what a batch would change, `apply` applies it. The time of both grows with
    the edges of the nodes that change; where anchors are random, with the whole graph.
    """

    def __init__(self, adjacency: Adjacency, table: TokenTable) -> None:
        if table.salts is None:
            raise InputError(
                "these tokens were made by an earlier version that did not store its random salts; "
                "tokenize the graph again to change it"
            )
        table.check()  # kernels use the values as indices
        self.vocabulary, self.salts = table.vocabulary, table.salts
        self.adjacency = ChangingAdjacency(adjacency)
        self.nearest: NearestTable | RandomTable = self._open_nearest(adjacency, table)
        spare = self.num_nodes // SPARE_SHARE + 1024
        self.relations = with_capacity(table.relations, spare, self.vocabulary.padding)

    @property
    def num_nodes(self) -> int:
        return self.adjacency.num_nodes

    def apply(self, batch: Batch) -> TokenRows:
        """Apply a batch; returns all rows that are new or different."""
        found = self.consequences(batch)
        self.write(batch, found)
        return found.rows

    def write(self, batch: Batch, found: Consequences) -> None:
        """Write what `consequences` has found for a batch."""
        self.adjacency.apply(batch.added, batch.removed, batch.num_new_nodes)
        self.nearest.add_nodes(batch.num_new_nodes)
        self._make_room()
        self.nearest.write(found.anchors)
        self.relations[found.context.nodes] = found.context.tokens

    def changed_by(self, batch: Batch) -> TokenRows:
        """The result of `apply` without writing, so several threads may call it at once."""
        return self.consequences(batch).rows

    def rows_of(self, nodes: IntArray) -> TokenRows:
        """The current tokens of some nodes."""
        rows = Rows(nodes, self.nearest.nearest[nodes], self.nearest.distance[nodes])
        return self._as_tokens(rows, self.relations[nodes])

    def table(self, vocabulary: Vocabulary) -> TokenTable:
        """The tokens of all nodes, by a new tokenization, for a vocabulary that has all names."""
        return tokenize_by(self.salts, self.adjacency.compact(), vocabulary)

    def consequences(self, batch: Batch) -> Consequences:
        """The anchors, contexts and tokens that a batch changes; nothing is written."""
        with changed_edges(
            self.adjacency, batch.added, batch.removed, batch.num_new_nodes
        ) as edges:
            anchors = self._changed_anchors(edges)
            touched = nodes_with_other_relations(edges)
            tokens = context_of(touched, edges, self.vocabulary, self.salts)
        differs = (tokens != self._relations_of(touched)).any(axis=1)
        context = Context(touched[differs], tokens[differs])
        rows = self._rows(anchors, context, batch.num_new_nodes)
        return Consequences(anchors, context, rows)

    def _changed_anchors(self, edges: ChangedEdges) -> Rows:
        """The rows of anchors that change: found from the edges, or by a new search if many are."""
        num_facts = len(edges.added) + len(edges.removed)
        if num_facts > LARGE and num_facts > LARGE_SHARE * self.adjacency.num_edges / 2:
            now = assign_anchors(edges.compact(), self.vocabulary, self.salts.anchors)
            return rows_that_differ(now, (self.nearest.nearest, self.nearest.distance))
        return self.nearest.changed_by(edges)

    def _rows(self, anchors: Rows, context: Context, num_new: int) -> TokenRows:
        """The rows that differ in anchors or context, and the rows of all new nodes."""
        new = np.arange(self.num_nodes, self.num_nodes + num_new, dtype=np.int32)
        visible = anchors.nodes if self._shows_distances else self._with_other_anchors(anchors)
        nodes = np.unique(np.concatenate([visible, context.nodes, new]))
        nearest = self._copy_rows_of(self.nearest.nearest, nodes, UNREACHED)
        distance = self._copy_rows_of(self.nearest.distance, nodes, UNREACHED)
        place, source = np.searchsorted(nodes, visible), np.searchsorted(anchors.nodes, visible)
        nearest[place], distance[place] = anchors.nearest[source], anchors.distance[source]
        relations = self._relations_of(nodes)
        relations[np.searchsorted(nodes, context.nodes)] = context.tokens
        return self._as_tokens(Rows(nodes, nearest, distance), relations)

    def _relations_of(self, nodes: IntArray) -> IntArray:
        return self._copy_rows_of(self.relations, nodes, self.vocabulary.padding)

    def _copy_rows_of(
        self, table: NDArray[ScalarT], nodes: IntArray, nothing: int
    ) -> NDArray[ScalarT]:
        """Copies of the rows of some nodes; rows of new nodes are filled with `nothing`."""
        rows = table.take(nodes, axis=0, mode="clip")
        rows[nodes >= self.num_nodes] = nothing
        return rows

    @property
    def _shows_distances(self) -> bool:
        return self.vocabulary.settings.distances

    def _with_other_anchors(self, rows: Rows) -> IntArray:
        """The nodes whose anchors differ, for tables without distances."""
        before = self._copy_rows_of(self.nearest.nearest, rows.nodes, UNREACHED)
        differs = (rows.nearest != before).any(axis=1)
        return rows.nodes[differs]

    def _as_tokens(self, rows: Rows, relations: IntArray) -> TokenRows:
        distances = (
            rows.distance if self._shows_distances else np.full_like(rows.distance, NO_DISTANCE)
        )
        anchors = self.vocabulary.anchor_tokens(rows.nearest)
        return TokenRows(rows.nodes, anchors, distances, relations)

    def _make_room(self) -> None:
        missing = self.num_nodes - len(self.relations)
        if missing > 0:
            spare = missing + len(self.relations) // SPARE_SHARE
            self.relations = with_capacity(self.relations, spare, self.vocabulary.padding)

    def _open_nearest(self, adjacency: Adjacency, table: TokenTable) -> NearestTable | RandomTable:
        vocabulary, settings = self.vocabulary, self.vocabulary.settings
        if settings.select == "random":
            return RandomTable(self.adjacency, vocabulary, self.salts.anchors)
        salt = self.salts.anchors if settings.ties == "per-node" else None
        return NearestTable(*stored_anchors(table, adjacency), vocabulary.num_anchors, salt=salt)
