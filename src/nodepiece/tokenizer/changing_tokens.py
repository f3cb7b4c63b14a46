"""The tokens of a graph that changes, by ids: always those of tokenizing it as it is now."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nodepiece.errors import InputError
from nodepiece.graph.adjacency import Adjacency
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.changing_adjacency import SPARE_SHARE, ChangingAdjacency, with_room
from nodepiece.graph.changing_nearest import NearestTable, Rows
from nodepiece.tokenizer.changing_context import context_of, nodes_with_other_relations
from nodepiece.tokenizer.random_anchors import RandomTable, rows_that_differ
from nodepiece.tokenizer.token_rows import TokenRows
from nodepiece.tokenizer.tokens import (
    NO_DISTANCE,
    TokenTable,
    assign_anchors,
    held_anchors,
    tokenize_by,
)
from nodepiece.tokenizer.vocabulary import Vocabulary

LARGE, LARGE_SHARE = 50_000, 0.02  # a batch of more facts, and of a larger share of them
NO_FACTS: IntArray = np.empty((0, 3), np.int32)


@dataclass(frozen=True, eq=False)
class Batch:
    """What happens to a graph at once."""

    added: IntArray  # (num_added, 3) facts that are not there, each once
    removed: IntArray  # (num_removed, 3) facts that are there, each once
    num_new_nodes: int = 0  # with the next ids; `added` may name them


class Context(NamedTuple):
    """Relational contexts that are different."""

    nodes: IntArray  # (num_rows,) ascending
    tokens: IntArray  # (num_rows, m)


class ChangingTokens:
    """Edges and tokens of all nodes, brought forward batch by batch.

    `changed_by` answers what a batch would do, `apply` does it. Both take time with the edges of
    the nodes that change; where anchors are chosen at random, with the whole graph.
    """

    def __init__(self, adjacency: Adjacency, table: TokenTable) -> None:
        if table.salts is None:
            raise InputError(
                "these tokens were made by an earlier version that did not keep what was random "
                "in them; tokenize the graph again to change it"
            )
        self.vocabulary, self.salts = table.vocabulary, table.salts
        self.adjacency = ChangingAdjacency(adjacency)
        self.nearest: NearestTable | RandomTable = self._open_nearest(adjacency, table)
        spare = self.num_nodes // SPARE_SHARE + 1024
        self.relations = with_room(table.relations, spare, self.vocabulary.padding)

    @property
    def num_nodes(self) -> int:
        return self.adjacency.num_nodes

    def apply(self, batch: Batch) -> TokenRows:
        """Let a batch happen; returns all rows that are new or different."""
        self._change_edges(batch)
        try:
            anchors, context, rows = self._consequences(batch)
        except BaseException:
            self._change_edges_back(batch)
            raise
        self.nearest.write(anchors)
        self.relations[context.nodes] = context.tokens
        return rows

    def changed_by(self, batch: Batch) -> TokenRows:
        """What `apply` would return, and everything stays as it is."""
        self._change_edges(batch)
        try:
            return self._consequences(batch)[2]
        finally:
            self._change_edges_back(batch)

    def rows_of(self, nodes: IntArray) -> TokenRows:
        """The tokens of some nodes as they are now."""
        rows = Rows(nodes, self.nearest.nearest[nodes], self.nearest.distance[nodes])
        return self._as_tokens(rows, self.relations[nodes])

    def table(self, vocabulary: Vocabulary) -> TokenTable:
        """The tokens of all nodes, by a new tokenization, for a vocabulary that has all names."""
        return tokenize_by(self.salts, self.adjacency.compact(), vocabulary)

    def _change_edges(self, batch: Batch) -> None:
        self._add_nodes(batch.num_new_nodes)
        self.adjacency.remove(batch.removed)
        self.adjacency.insert(batch.added)

    def _change_edges_back(self, batch: Batch) -> None:
        self.adjacency.remove(batch.added)
        self.adjacency.insert(batch.removed)
        self.adjacency.drop_nodes(batch.num_new_nodes)
        self.nearest.drop_nodes(batch.num_new_nodes)

    def _consequences(self, batch: Batch) -> tuple[Rows, Context, TokenRows]:
        """What edges that have changed do to anchors, to contexts, and to tokens."""
        anchors = self._changed_anchors(batch)
        touched = nodes_with_other_relations(self.adjacency, batch.added, batch.removed)
        tokens = context_of(touched, self.adjacency, self.vocabulary, self.salts)
        differs = (tokens != self.relations[touched]).any(axis=1)
        context = Context(touched[differs], tokens[differs])
        return anchors, context, self._rows(anchors, context, batch.num_new_nodes)

    def _changed_anchors(self, batch: Batch) -> Rows:
        """By following the change, or, where much changes, by a search of the whole graph."""
        num_facts = len(batch.added) + len(batch.removed)
        if num_facts > LARGE and num_facts > LARGE_SHARE * self.adjacency.num_edges / 2:
            now = assign_anchors(self.adjacency.compact(), self.vocabulary, self.salts.anchors)
            return rows_that_differ(now, (self.nearest.nearest, self.nearest.distance))
        return self.nearest.changed_by(self.adjacency, batch.added, batch.removed)

    def _rows(self, anchors: Rows, context: Context, num_new: int) -> TokenRows:
        """The rows that differ in anchors or context, and those of new nodes in any case."""
        new = np.arange(self.num_nodes - num_new, self.num_nodes, dtype=np.int32)
        visible = anchors.nodes if self._shows_distances else self._with_other_anchors(anchors)
        nodes = np.unique(np.concatenate([visible, context.nodes, new]))
        nearest, distance = self.nearest.nearest[nodes], self.nearest.distance[nodes]
        place, source = np.searchsorted(nodes, visible), np.searchsorted(anchors.nodes, visible)
        nearest[place], distance[place] = anchors.nearest[source], anchors.distance[source]
        relations = self.relations[nodes]
        relations[np.searchsorted(nodes, context.nodes)] = context.tokens
        return self._as_tokens(Rows(nodes, nearest, distance), relations)

    @property
    def _shows_distances(self) -> bool:
        return self.vocabulary.settings.distances

    def _with_other_anchors(self, rows: Rows) -> IntArray:
        """Where distances are forgotten, a row that differs in nothing else is the same."""
        differs = (rows.nearest != self.nearest.nearest[rows.nodes]).any(axis=1)
        return rows.nodes[differs]

    def _as_tokens(self, rows: Rows, relations: IntArray) -> TokenRows:
        distances = (
            rows.distance if self._shows_distances else np.full_like(rows.distance, NO_DISTANCE)
        )
        anchors = self.vocabulary.anchor_tokens(rows.nearest)
        return TokenRows(rows.nodes, anchors, distances, relations)

    def _add_nodes(self, number: int) -> None:
        self.adjacency.add_nodes(number)
        self.nearest.add_nodes(number)
        missing = self.num_nodes - len(self.relations)
        if missing > 0:
            spare = missing + len(self.relations) // SPARE_SHARE
            self.relations = with_room(self.relations, spare, self.vocabulary.padding)

    def _open_nearest(self, adjacency: Adjacency, table: TokenTable) -> NearestTable | RandomTable:
        vocabulary, settings = self.vocabulary, self.vocabulary.settings
        if settings.select == "random":
            return RandomTable(self.adjacency, vocabulary, self.salts.anchors)
        salt = self.salts.anchors if settings.ties == "per-node" else None
        return NearestTable(*held_anchors(table, adjacency), vocabulary.num_anchors, salt=salt)
