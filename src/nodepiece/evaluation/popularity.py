"""Popularity, a baseline that ignores the head: frequent tails of a relation score higher."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses


@dataclass(frozen=True, eq=False)
class Popularity:
    """Counts of every node as the tail of every relation, inverses included."""

    counts: csr_array  # (2 * num_relations, num_nodes)

    def score_tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Scores for `rank_links`, which ignore heads: (batch,), (batch,) -> (batch, num_nodes)."""
        rows = self.counts[relations.cpu().numpy()].toarray()
        return torch.from_numpy(rows).to(relations.device)


def count_tails(graph: KnowledgeGraph) -> Popularity:
    """Count over the facts of a graph; the tails of an inverse relation are its heads."""
    _, relation, tail = with_inverses(graph).T
    shape = (2 * graph.num_relations, graph.num_nodes)
    ones = np.ones(len(tail), dtype=np.float32)
    return Popularity(csr_array((ones, (relation, tail)), shape=shape))  # adds up equal places
