"""The slow and obvious way to the vectors of a changed graph: tokenize and encode all of it."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from nodepiece.encoders.node_embedding import NodePieceEmbedding
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.inference.links import LinkRun
from nodepiece.tokenizer.storage import load_tokens
from nodepiece.tokenizer.tokens import tokenize_by


def fresh_vectors(run: LinkRun) -> Tensor:
    graph, trained = run.dataset.train, load_tokens(run.folder / "vocabulary")
    vocabulary = replace(trained.vocabulary, num_nodes=graph.num_nodes)
    assert trained.salts is not None and isinstance(run.model.nodes, NodePieceEmbedding)
    table = tokenize_by(trained.salts, build_adjacency(graph), vocabulary)
    columns = (table.anchors, table.distances, table.relations)
    rows = [torch.tensor(np.asarray(column)) for column in columns]
    with torch.no_grad():
        encoded = run.model.nodes.encode_rows(*rows)
        return run.model.vectors_from(encoded, torch.tensor(with_inverses(graph)))


def facts_of(run: LinkRun) -> set[tuple[str, str, str]]:
    """The facts of a run, trained or added, by name."""
    names = run.dataset.names
    return {
        (names.node(head), names.relation(relation), names.node(tail))
        for head, relation, tail in run.dataset.train.triples.tolist()
    }
