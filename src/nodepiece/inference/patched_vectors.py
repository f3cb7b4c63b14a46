"""Node vectors after a change of the graph: a matrix with the changed rows overridden."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import numpy as np
import torch
from torch import Tensor

from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.pairwise_distances import negative_distances, squared_lengths
from nodepiece.decoders.unseen_nodes import encode_rows
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.inference.computed_once import computed_once
from nodepiece.tokenizer.changing_tokens import ChangingTokens
from nodepiece.tokenizer.token_rows import TokenRows

MIN_SPARE = 256  # rows of space behind a patch


class RowStore:
    """Rows with space behind them, which later states share; a row is never changed."""

    def __init__(self, rows: Tensor, *, spare: int) -> None:
        self._lock, self._number = Lock(), len(rows)
        self._rows = rows.new_empty(len(rows) + spare, rows.shape[1])
        self._rows[: len(rows)] = rows

    def append(self, number: int, rows: Tensor) -> Tensor | None:
        """The first `number` rows followed by new ones; None: they do not fit behind these."""
        with self._lock:
            if self._number != number or number + len(rows) > len(self._rows):
                return None
            self._number += len(rows)
        self._rows[number : number + len(rows)] = rows
        return self._rows[: number + len(rows)]


@dataclass(frozen=True, eq=False)
class BaseLengths:
    """The squared lengths of the rows of a base, computed once for all states that share it."""

    base: Tensor

    @computed_once
    def squared(self) -> Tensor:
        return squared_lengths(self.base)


@dataclass(frozen=True, eq=False)
class PatchedVectors:
    """A matrix whose row v is the patch of v where there is one, else row v of the base."""

    base: Tensor  # (num_base, dim), maybe mapped from disk, never written to
    nodes: Tensor  # (num_patched,) ascending ids on the CPU, those from num_base on without a gap
    patch: Tensor  # (num_rows, dim) on the device of the base; some rows may be outdated
    place: Tensor  # (num_patched,) on the CPU: the row of `patch` of each node
    lengths: BaseLengths
    store: RowStore | None = None  # that `patch` is the beginning of

    @staticmethod
    def of(base: Tensor) -> "PatchedVectors":
        nothing = torch.empty(0, dtype=torch.int64)
        return PatchedVectors(base, nothing, base[:0], nothing, BaseLengths(base))

    @property
    def num_nodes(self) -> int:
        return max(len(self.base), int(self.nodes[-1]) + 1 if len(self.nodes) else 0)

    @computed_once
    def whole(self) -> Tensor:
        """(num_nodes, dim)."""
        return (
            self.replace_in(self.base, lambda patch: patch, dim=0) if len(self.nodes) else self.base
        )

    def rows(self, nodes: Tensor) -> Tensor:
        """(num_queries,) ids on the CPU -> (num_queries, dim)."""
        device = self.base.device
        rows = self.base[nodes.clamp(max=len(self.base) - 1).to(device)]
        if not len(self.nodes):
            return rows
        found = torch.searchsorted(self.nodes, nodes.contiguous()).clamp(max=len(self.nodes) - 1)
        is_patched = self.nodes[found] == nodes
        patch = self.patch[self.place[found].to(device)]
        return torch.where(is_patched[:, None].to(device), patch, rows)

    def scores(self, score_all: Callable[[Tensor], Tensor]) -> Tensor:
        """The scores of all rows, (batch, num_nodes), without building the whole matrix.

        `score_all` maps (any number of nodes, dim) to (batch, number of nodes).
        """
        scores = score_all(self.base)
        return self._with_scores(scores, score_all) if len(self.nodes) else scores

    def distances(self, queries: Tensor) -> Tensor:
        """`negative_distances` of queries to all rows: (batch, dim) -> (batch, num_nodes)."""
        scores = negative_distances(queries, self.base, self.lengths.squared)
        if not len(self.nodes):
            return scores
        return self._with_scores(scores, lambda rows: negative_distances(queries, rows))

    def _with_scores(self, scores: Tensor, score_all: Callable[[Tensor], Tensor]) -> Tensor:
        """Scores of the base, which are changed, with those of the patch."""
        if self.num_nodes > scores.shape[1]:
            return self.replace_in(scores, score_all, dim=1)
        above = score_all(self.patch).index_select(1, self.place.to(scores.device))
        return scores.index_copy_(1, self.nodes.to(scores.device), above)

    def replace_in(
        self, below: Tensor, function: Callable[[Tensor], Tensor], *, dim: int
    ) -> Tensor:
        """A copy of `below` with `function` of the patch inserted and appended along `dim`."""
        above = function(self.patch).index_select(dim, self.place.to(below.device))
        shape = list(below.shape)
        shape[dim] = self.num_nodes - below.shape[dim]
        longer = torch.cat([below, below.new_empty(shape)], dim=dim)
        return longer.index_copy_(dim, self.nodes.to(below.device), above)

    def with_rows(self, nodes: Tensor, rows: Tensor) -> "PatchedVectors":
        """The matrix with some more rows replaced or appended; `nodes` ascending."""
        kept = ~torch.isin(self.nodes, nodes)
        all_nodes = torch.cat([self.nodes[kept], nodes])
        all_rows = torch.cat([self.patch[self.place[kept].to(self.patch.device)], rows])
        return PatchedVectors(self.base, *ordered(all_nodes, all_rows), self.lengths)

    def followed_by(self, nodes: Tensor, rows: Tensor) -> "PatchedVectors":
        """`with_rows` for the next state of a graph: rows are written behind those of this one.

        The rows that were changed before are not copied, unless most of them are outdated.
        """
        number = len(self.patch)
        patch, store = None, self.store
        if store is not None and number <= 2 * len(self.nodes) + MIN_SPARE:
            patch = store.append(number, rows)
        if patch is None:
            used = self.patch[self.place.to(self.patch.device)]
            store = RowStore(used, spare=max(len(used), MIN_SPARE) + len(rows))
            patch = store.append(len(used), rows)
            if patch is None:
                raise ValueError("a new store has space for its first rows")
            number, place = len(used), np.arange(len(used))
        else:
            place = self.place.numpy().copy()
        before, now = self.nodes.numpy(), nodes.numpy()
        at = np.searchsorted(before, now)
        is_there = before[np.minimum(at, max(0, len(before) - 1))] == now if len(before) else at < 0
        new = number + np.arange(len(now))
        place[at[is_there]] = new[is_there]
        return PatchedVectors(
            self.base,
            torch.from_numpy(np.insert(before, at[~is_there], now[~is_there])),
            patch,
            torch.from_numpy(np.insert(place, at[~is_there], new[~is_there])),
            self.lengths,
            store,
        )

    def to(self, device: torch.device) -> "PatchedVectors":
        if device == self.base.device:
            return self
        base = self.base.to(device)
        patch = self.patch.to(device)
        return PatchedVectors(base, self.nodes, patch, self.place, BaseLengths(base))


def ordered(nodes: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Nodes in ascending order, the rows as they are, and the row of each node."""
    nodes, place = nodes.sort()
    return nodes, rows, place


def vectors_after(
    model: LinkModel,
    before: PatchedVectors,
    rows: TokenRows,
    *,
    tokens: ChangingTokens,
    graph: KnowledgeGraph | None,
) -> PatchedVectors:
    """The vectors of all nodes after a change, in which the tokens of `rows` are new or different.

    Only these rows are computed, unless there are graph layers: with them a change affects more
    nodes, so all vectors are computed again, from `tokens` and from `graph`, which is needed then.
    """
    if graph is None or not model.layers:
        return before.with_rows(torch.tensor(rows.nodes).long(), vectors_of(model, rows))
    return PatchedVectors.of(all_vectors_after(model, rows, tokens=tokens, graph=graph))


def vectors_of(model: LinkModel, rows: TokenRows) -> Tensor:
    """The vectors of rows of tokens, of a model without graph layers."""
    with torch.no_grad():
        return model.vectors_from(encode_rows(model, rows), None)


def all_vectors_after(
    model: LinkModel, rows: TokenRows, *, tokens: ChangingTokens, graph: KnowledgeGraph
) -> Tensor:
    """The vectors of all nodes of `graph`, whose tokens are `tokens` with `rows` changed."""
    with torch.no_grad():
        num_before = min(tokens.num_nodes, graph.num_nodes)
        below = tokens.rows_of(np.arange(num_before, dtype=np.int32))
        everything = encode_rows(model, rows.replace_in(*below[1:], graph.num_nodes))
        edges = torch.tensor(with_inverses(graph), device=everything.device)
        return model.vectors_from(everything, edges)
