"""Node vectors after a change of the graph: a matrix with the changed rows overridden."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.unseen_nodes import encode_rows
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.inference.computed_once import computed_once
from nodepiece.tokenizer.changing_tokens import ChangingTokens
from nodepiece.tokenizer.token_rows import TokenRows


@dataclass(frozen=True, eq=False)
class PatchedVectors:
    """A matrix whose row v is the patch of v where there is one, else row v of the base."""

    base: Tensor  # (num_base, dim), maybe mapped from disk, never written to
    nodes: Tensor  # (num_patched,) ascending ids on the CPU, those from num_base on without a gap
    patch: Tensor  # (num_patched, dim)

    @staticmethod
    def of(base: Tensor) -> "PatchedVectors":
        return PatchedVectors(base, torch.empty(0, dtype=torch.int64), base[:0])

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
        place = torch.searchsorted(self.nodes, nodes.contiguous()).clamp(max=len(self.nodes) - 1)
        is_patched = self.nodes[place] == nodes
        return torch.where(is_patched[:, None].to(device), self.patch[place.to(device)], rows)

    def scores(self, score_all: Callable[[Tensor], Tensor]) -> Tensor:
        """The scores of all rows, (batch, num_nodes), without building the whole matrix.

        `score_all` maps (any number of nodes, dim) to (batch, number of nodes).
        """
        scores = score_all(self.base)
        return self.replace_in(scores, score_all, dim=1) if len(self.nodes) else scores

    def replace_in(
        self, below: Tensor, function: Callable[[Tensor], Tensor], *, dim: int
    ) -> Tensor:
        """A copy of `below` with `function` of the patch inserted and appended along `dim`."""
        above = function(self.patch)
        shape = list(below.shape)
        shape[dim] = self.num_nodes - below.shape[dim]
        longer = torch.cat([below, below.new_empty(shape)], dim=dim)
        return longer.index_copy_(dim, self.nodes.to(below.device), above)

    def with_rows(self, nodes: Tensor, rows: Tensor) -> "PatchedVectors":
        """The matrix with some more rows replaced or appended; `nodes` ascending."""
        kept = ~torch.isin(self.nodes, nodes)
        all_nodes = torch.cat([self.nodes[kept], nodes])
        all_rows = torch.cat([self.patch[kept.to(self.patch.device)], rows])
        order = all_nodes.argsort()
        return PatchedVectors(self.base, all_nodes[order], all_rows[order.to(rows.device)])

    def to(self, device: torch.device) -> "PatchedVectors":
        return PatchedVectors(self.base.to(device), self.nodes, self.patch.to(device))


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
    with torch.no_grad():
        if graph is None or not model.layers:
            nodes = torch.tensor(rows.nodes, dtype=torch.int64)
            return before.with_rows(nodes, model.vectors_from(encode_rows(model, rows), None))
        num_before = min(tokens.num_nodes, graph.num_nodes)
        below = tokens.rows_of(np.arange(num_before, dtype=np.int32))
        everything = encode_rows(model, rows.replace_in(*below[1:], graph.num_nodes))
        edges = torch.tensor(with_inverses(graph), device=everything.device)
        return PatchedVectors.of(model.vectors_from(everything, edges))
