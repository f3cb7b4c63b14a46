"""Counts of nodes in a graph that changes: an array with some of its values overridden."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodepiece.graph.arrays import LongArray


@dataclass(frozen=True, eq=False)
class PatchedCounts:
    """A number for every node: that of the patch where there is one, else that of the base."""

    base: LongArray  # (num_base,) never written to
    nodes: LongArray  # (num_patched,) ascending
    values: LongArray  # (num_patched,)
    num_nodes: int  # those behind the base and without a patch have 0

    @staticmethod
    def of(base: LongArray) -> "PatchedCounts":
        nothing = np.empty(0, np.int64)
        return PatchedCounts(base, nothing, nothing, len(base))

    def at(self, nodes: NDArray[np.integer]) -> LongArray:
        """The numbers of some nodes."""
        is_base = nodes < len(self.base)
        found = np.zeros(len(nodes), np.int64)
        found[is_base] = self.base[nodes[is_base]]
        if len(self.nodes):
            place = np.minimum(np.searchsorted(self.nodes, nodes), len(self.nodes) - 1)
            found = np.where(self.nodes[place] == nodes, self.values[place], found)
        return found

    def whole(self) -> LongArray:
        """(num_nodes,)."""
        counts = np.zeros(self.num_nodes, np.int64)
        counts[: len(self.base)] = self.base
        counts[self.nodes] = self.values
        return counts

    def plus(self, nodes: LongArray, steps: LongArray, num_nodes: int) -> "PatchedCounts":
        """The counts with steps added to those of some nodes, which may be given repeatedly."""
        changed, place = np.unique(nodes, return_inverse=True)
        added = np.zeros(len(changed), np.int64)
        np.add.at(added, place.reshape(-1), steps)
        return self.replaced(changed, self.at(changed) + added, num_nodes)

    def replaced(
        self, changed: NDArray[np.integer], values: NDArray[np.integer], num_nodes: int
    ) -> "PatchedCounts":
        """The counts with other values for some nodes, each given once."""
        kept = ~np.isin(self.nodes, changed)
        all_nodes = np.concatenate([self.nodes[kept], changed])
        all_values = np.concatenate([self.values[kept], values])
        order = np.argsort(all_nodes)
        return PatchedCounts(self.base, all_nodes[order], all_values[order], num_nodes)
