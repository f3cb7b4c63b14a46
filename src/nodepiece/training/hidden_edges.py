"""Which edges a batch hides from messages and paths, so that a model does not see the answers."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class HidingGroups:
    """All edges in groups that are hidden together: a fact and its inverse, or all of two nodes."""

    group: Tensor  # (num_edges,) int64, of every edge
    num_groups: int

    def mask_without(self, edges: Tensor) -> Tensor:
        """1 for every edge, 0 for those hidden with the given ones: (num_edges,).

        edges: ids, in the order of the edges that the groups were made of; num_edges stands for
        none. Shapes do not depend on values, so that this can be captured in a CUDA graph.
        """
        none = self.group.new_full((1,), self.num_groups)
        groups = torch.cat([self.group, none]).index_select(0, edges)
        visible = torch.ones(self.num_groups + 1, device=edges.device).index_fill_(0, groups, 0.0)
        return visible.index_select(0, self.group)


def hidden_together(edges: Tensor, num_nodes: int, *, pairs: bool) -> HidingGroups:
    """The groups of edges (num_edges, 3): facts, and then their inverses in the same order.

    pairs: all edges between two nodes are one group, in either direction.
    """
    num_facts = len(edges) // 2
    if not pairs:
        ids = torch.arange(num_facts, device=edges.device)
        return HidingGroups(torch.cat([ids, ids]), num_facts)
    head, tail = edges[:, 0].long(), edges[:, 2].long()
    low, high = torch.minimum(head, tail), torch.maximum(head, tail)
    found, group = torch.unique(low * num_nodes + high, return_inverse=True)
    return HidingGroups(group, len(found))
