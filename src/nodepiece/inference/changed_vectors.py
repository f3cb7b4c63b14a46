"""Node vectors after a change of the graph, without training."""

import numpy as np
import torch

from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.unseen_nodes import encode_rows
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.inference.patched_vectors import PatchedVectors
from nodepiece.tokenizer.changing_tokens import ChangingTokens
from nodepiece.tokenizer.token_rows import TokenRows


def vectors_after(
    model: LinkModel,
    before: PatchedVectors,
    rows: TokenRows,
    *,
    tokens: ChangingTokens,
    graph: KnowledgeGraph | None,
) -> PatchedVectors:
    """The vectors of all nodes of a graph in which `rows` are new or different.

    `tokens` has all other rows. Only new or different rows are computed, unless there are graph
    layers: with them a change affects more nodes, all vectors are computed again, and `graph` is
    needed.
    """
    with torch.no_grad():
        if graph is None or not model.layers:
            nodes = torch.tensor(rows.nodes, dtype=torch.int64)
            return before.with_rows(nodes, model.vectors_from(encode_rows(model, rows), None))
        num_before = min(tokens.num_nodes, graph.num_nodes)
        below = tokens.rows_of(np.arange(num_before, dtype=np.int32))
        everything = encode_rows(model, rows.put_over(*below[1:], graph.num_nodes))
        edges = torch.tensor(with_inverses(graph), device=everything.device)
        return PatchedVectors.of(model.vectors_from(everything, edges))
