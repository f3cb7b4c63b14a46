"""The vectors of nodes outside the table of a model: from rows of tokens, or from neighbours."""

import torch
from torch import Tensor

from nodepiece.decoders.link_model import LinkModel
from nodepiece.encoders.edge_products import EdgeIndex, sum_products
from nodepiece.encoders.lookup_embedding import NO_PIECES
from nodepiece.errors import InputError
from nodepiece.tokenizer.token_rows import TokenRows

ROWS_AT_ONCE = 1 << 13


def refuse_without_pieces(model: LinkModel) -> None:
    """Refuse a model that has a trained vector for every node: it has none for new ones."""
    if not model.nodes.has_pieces:
        raise InputError(NO_PIECES)


def encode_rows(model: LinkModel, rows: TokenRows) -> Tensor:
    """What the encoder makes of some rows of tokens: (num_rows, dim), before any graph layer."""
    encoder, relations = model.nodes, model.relation_vectors()
    parts = [relations.new_empty(0, encoder.embedding_dim)]
    for start in range(0, len(rows.nodes), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        columns = (rows.anchors[part], rows.distances[part], rows.relations[part])
        tensors = [torch.tensor(column, device=relations.device) for column in columns]
        parts.append(encoder.encode_rows(*tensors))
    return torch.cat(parts)


def neighbour_sums(vectors: Tensor, relations: Tensor, edge_index: EdgeIndex) -> Tensor:
    """For every node the sum over its edges of neighbour * relation: (num_nodes, dim).

    Under DistMult this is the direction in which a vector scores its own facts the highest.
    """
    return sum_products(vectors, relations, None, edge_index)


def averages_without_one(
    vectors: Tensor, relations: Tensor, edges: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """For every edge of unseen nodes the mean over the other edges of its node: (num_edges, dim).

    edges: unseen node, relation and seen neighbour, (num_edges,) each. What is averaged is
    neighbour * relation (ERAvg; Albooyeh et al., 2020). A node with one edge is left with zeros.
    """
    owner, relation, neighbour = edges
    product = vectors[neighbour] * relations[relation]
    sums = product.new_zeros(int(owner.max()) + 1, product.shape[1]).index_add_(0, owner, product)
    num_edges = torch.bincount(owner)[owner]
    return (sums[owner] - product) / (num_edges - 1).clamp_min(1)[:, None]
