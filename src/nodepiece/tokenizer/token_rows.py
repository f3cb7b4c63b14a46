"""Some rows of a token table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodepiece.graph.arrays import IntArray, ScalarT
from nodepiece.graph.nearest import Distances
from nodepiece.graph.short_text import plural

if TYPE_CHECKING:
    from nodepiece.tokenizer.tokens import TokenTable


class TokenRows(NamedTuple):
    """The tokens of some nodes."""

    nodes: IntArray  # (num_rows,) ascending ids
    anchors: IntArray  # (num_rows, k) tokens
    distances: Distances  # (num_rows, k) hops, NO_DISTANCE where there is no anchor
    relations: IntArray  # (num_rows, m) tokens

    def __repr__(self) -> str:
        k, m = self.anchors.shape[1], self.relations.shape[1]
        return (
            f"TokenRows({plural(len(self.nodes), 'node')}: {plural(k, 'anchor')} and "
            f"{plural(m, 'relation')} each)"
        )

    @staticmethod
    def none(table: "TokenTable") -> "TokenRows":
        """No rows, of the width of a token table."""
        columns = (table.anchors[:0], table.distances[:0], table.relations[:0])
        return TokenRows(np.empty(0, np.int32), *columns)

    def part(self, rows: NDArray[np.bool_] | NDArray[np.integer]) -> "TokenRows":
        """Some of the rows, by a mask or by their positions."""
        columns = (self.anchors[rows], self.distances[rows], self.relations[rows])
        return TokenRows(self.nodes[rows], *columns)

    def replace_in(
        self, anchors: IntArray, distances: Distances, relations: IntArray, num_nodes: int
    ) -> "TokenRows":
        """A table of all nodes with these rows replaced, and rows of new nodes appended."""
        return TokenRows(
            np.arange(num_nodes, dtype=np.int32),
            _replace_rows(anchors, self.nodes, self.anchors, num_nodes),
            _replace_rows(distances, self.nodes, self.distances, num_nodes),
            _replace_rows(relations, self.nodes, self.relations, num_nodes),
        )


def keep_latest(rows: Sequence[TokenRows]) -> TokenRows:
    """One row for each node: the last one given. `rows` must not be empty."""
    nodes = np.concatenate([part.nodes for part in rows])
    distinct, from_end = np.unique(nodes[::-1], return_index=True)
    last = len(nodes) - 1 - from_end
    return TokenRows(
        distinct,
        np.concatenate([part.anchors for part in rows])[last],
        np.concatenate([part.distances for part in rows])[last],
        np.concatenate([part.relations for part in rows])[last],
    )


def stacked(rows: Sequence[TokenRows]) -> TokenRows:
    """All rows, one part after the other: a node may have several. `rows` must not be empty."""
    return TokenRows(*(np.concatenate(columns) for columns in zip(*rows, strict=True)))


def _replace_rows(
    below: NDArray[ScalarT], nodes: IntArray, rows: NDArray[ScalarT], num_nodes: int
) -> NDArray[ScalarT]:
    column = np.empty((num_nodes, below.shape[1]), below.dtype)
    column[: len(below)] = below
    column[nodes] = rows
    return column
