"""The tokens of a graph that changes, by ids: always those of tokenizing it as it is now."""

from dataclasses import dataclass

import numpy as np

from nodepiece.errors import InputError
from nodepiece.graph.adjacency import Adjacency
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.changing_adjacency import SPARE_SHARE, ChangingAdjacency, with_room
from nodepiece.graph.changing_nearest import NearestTable, Rows
from nodepiece.tokenizer.changing_context import context_of, nodes_with_other_relations
from nodepiece.tokenizer.random_anchors import RandomTable
from nodepiece.tokenizer.token_rows import TokenRows
from nodepiece.tokenizer.tokens import NO_DISTANCE, TokenTable, held_anchors, tokenize_by
from nodepiece.tokenizer.vocabulary import Vocabulary

NO_FACTS: IntArray = np.empty((0, 3), np.int32)


@dataclass(frozen=True, eq=False)
class Batch:
    """What happens to a graph at once."""

    added: IntArray  # (num_added, 3) facts that are not there, each once
    removed: IntArray  # (num_removed, 3) facts that are there, each once
    num_new_nodes: int = 0  # with the next ids; `added` may name them


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
        anchors, context, rows = self._enact(batch)
        self.nearest.write(anchors)
        self.relations[context[0]] = context[1]
        return rows

    def changed_by(self, batch: Batch) -> TokenRows:
        """What `apply` would return, and everything stays as it is."""
        rows = self._enact(batch)[2]
        self.adjacency.remove(batch.added)
        self.adjacency.insert(batch.removed)
        self.adjacency.drop_nodes(batch.num_new_nodes)
        self.nearest.drop_nodes(batch.num_new_nodes)
        return rows

    def rows_of(self, nodes: IntArray) -> TokenRows:
        """The tokens of some nodes as they are now."""
        rows = Rows(nodes, self.nearest.nearest[nodes], self.nearest.distance[nodes])
        return self._as_tokens(rows, self.relations[nodes])

    def table(self, vocabulary: Vocabulary) -> TokenTable:
        """The tokens of all nodes, by a new tokenization, for a vocabulary that has all names."""
        return tokenize_by(self.salts, self.adjacency.compact(), vocabulary)

    def _enact(self, batch: Batch) -> tuple[Rows, tuple[IntArray, IntArray], TokenRows]:
        """Change the edges, and say what that does to anchors, to contexts, and to tokens."""
        first_new = self.num_nodes
        self._add_nodes(batch.num_new_nodes)
        self.adjacency.remove(batch.removed)
        self.adjacency.insert(batch.added)
        anchors = self.nearest.changed_by(self.adjacency, batch.added, batch.removed)
        touched = nodes_with_other_relations(self.adjacency, batch.added, batch.removed)
        context = context_of(touched, self.adjacency, self.vocabulary, self.salts)
        differs = (context != self.relations[touched]).any(axis=1)
        return (
            anchors,
            (touched, context),
            self._rows(anchors, touched, context, differs, first_new),
        )

    def _rows(
        self,
        anchors: Rows,
        touched: IntArray,
        context: IntArray,
        differs: np.ndarray[tuple[int], np.dtype[np.bool_]],
        first_new: int,
    ) -> TokenRows:
        """The rows that differ in anchors or context, and those of new nodes in any case."""
        new = np.arange(first_new, self.num_nodes, dtype=np.int32)
        visible = anchors.nodes if self._shows_distances else self._with_other_anchors(anchors)
        nodes = np.unique(np.concatenate([visible, touched[differs], new]))
        nearest, distance = self.nearest.nearest[nodes], self.nearest.distance[nodes]
        place = np.searchsorted(nodes, visible)
        source = np.searchsorted(anchors.nodes, visible)
        nearest[place], distance[place] = anchors.nearest[source], anchors.distance[source]
        relations = self.relations[nodes]
        relations[np.searchsorted(nodes, touched[differs])] = context[differs]
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
