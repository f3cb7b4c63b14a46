"""Node vectors after a change of the graph, from the weights as they are."""

import numpy as np
import torch
from torch import Tensor

from nodepiece.decoders.link_model import LinkModel
from nodepiece.encoders.node_embedding import NodePieceEmbedding
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.inference.patched_vectors import PatchedVectors
from nodepiece.tokenizer.changing_tokens import ChangingTokens
from nodepiece.tokenizer.token_rows import TokenRows

ROWS_AT_ONCE = 1 << 14


def encoder_of(model: LinkModel) -> NodePieceEmbedding:
    """The encoder of a model; one that looks up a vector for every node has none for new ones."""
    if isinstance(model.nodes, NodePieceEmbedding):
        return model.nodes
    raise InputError(
        "this run has a trained vector for every node, and none for new nodes or facts; train a "
        "run with pieces for that, such as encoder.kind = mlp"
    )


def vectors_after(
    model: LinkModel,
    before: PatchedVectors,
    rows: TokenRows,
    *,
    tokens: ChangingTokens,
    graph: KnowledgeGraph,
) -> PatchedVectors:
    """The vectors of all nodes of `graph`, in which `rows` are new or different.

    `tokens` has all other rows. Only what is new or different is computed, unless there are graph
    layers: with them a change reaches farther, and everything is computed again.
    """
    with torch.no_grad():
        if not model.layers:
            nodes = torch.tensor(rows.nodes, dtype=torch.int64)
            return before.with_rows(nodes, model.vectors_from(encode(model, rows), None))
        num_before = min(tokens.num_nodes, graph.num_nodes)
        below = tokens.rows_of(np.arange(num_before, dtype=np.int32))
        everything = encode(model, rows.put_over(*below[1:], graph.num_nodes))
        edges = torch.tensor(with_inverses(graph), device=everything.device)
        return PatchedVectors.of(model.vectors_from(everything, edges))


def encode(model: LinkModel, rows: TokenRows) -> Tensor:
    """What the encoder makes of some rows of tokens: (num_rows, dim), before any graph layer."""
    encoder, relations = encoder_of(model), model.relation_vectors()
    parts = [relations.new_empty(0, encoder.embedding_dim)]
    for start in range(0, len(rows.nodes), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        columns = (rows.anchors[part], rows.distances[part], rows.relations[part])
        parts.append(
            encoder.encode_rows(
                *(torch.tensor(column, device=relations.device) for column in columns)
            )
        )
    return torch.cat(parts)
