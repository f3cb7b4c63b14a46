"""Vectors of nodes that a model does not have: from rows of tokens, or from neighbours."""

import torch
from torch import Tensor

from nodepiece.decoders.link_model import LinkModel
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.edge_products import sum_products
from nodepiece.encoders.lookup_embedding import NO_PIECES
from nodepiece.errors import InputError
from nodepiece.tokenizer.token_rows import TokenRows

ROWS_AT_ONCE = 1 << 13


def refuse_without_pieces(model: LinkModel) -> None:
    """Refuse a model that has a trained vector for every node: it has none for new ones."""
    if not model.nodes.has_pieces:
        raise InputError(NO_PIECES)


def encode_rows(model: LinkModel, rows: TokenRows) -> Tensor:
    """The encoder's vectors for some rows of tokens, before any graph layer: (num_rows, dim)."""
    encoder, relations = model.nodes, model.relation_vectors()
    parts = [relations.new_empty(0, encoder.embedding_dim)]
    for start in range(0, len(rows.nodes), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        columns = (rows.anchors[part], rows.distances[part], rows.relations[part])
        tensors = [torch.tensor(column, device=relations.device) for column in columns]
        parts.append(encoder.encode_rows(*tensors))
    return torch.cat(parts)


def neighbour_sums(vectors: Tensor, relations: Tensor, edge_index: EdgeIndex) -> Tensor:
    """The sum of neighbour * relation over the edges of every node: (num_nodes, dim).

    With DistMult this is the direction of the vector with the highest scores for the node's facts.
    """
    return sum_products(vectors, relations, None, edge_index)


def averages_without_one(
    vectors: Tensor, relations: Tensor, edges: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """The mean over the other edges of its node, for every edge of unseen nodes: (num_edges, dim).

    edges: unseen node, relation and seen neighbour, (num_edges,) each. The mean is over
    neighbour * relation (ERAvg; Albooyeh et al., 2020). A node with one edge gets zeros.
    """
    owner, relation, neighbour = edges
    product = vectors[neighbour] * relations[relation]
    sums = product.new_zeros(int(owner.max()) + 1, product.shape[1]).index_add_(0, owner, product)
    num_edges = torch.bincount(owner)[owner]
    return (sums[owner] - product) / (num_edges - 1).clamp_min(1)[:, None]
