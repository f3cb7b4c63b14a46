"""The scores that the path scorers of a model add to those of its vectors."""

import torch
from torch import Tensor

from nodepiece.decoders.link_model import LinkModel


def path_scores(
    model: LinkModel, heads: Tensor, relations: Tensor, edge_mask: Tensor | None = None
) -> Tensor:
    """(batch, num_nodes)."""
    zeros = torch.zeros(len(heads), model.num_nodes, dtype=model.relation_vectors().dtype)
    return model.scorers.add_to(zeros, heads, relations, lambda: model.path_graph(edge_mask))
