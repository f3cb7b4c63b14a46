"""NodePieceEmbedding as the entity representation of a PyKEEN model.

    python examples/with_pykeen.py

PyKEEN asks a Representation for the vectors of some nodes, or of all (indices=None). With this
one its interactions, losses, training loops and evaluators work on pieces, distances included.
"""

import numpy as np
import torch
from pykeen.models import ERModel
from pykeen.nn import Embedding, Representation
from pykeen.pipeline import pipeline
from pykeen.triples import CoreTriplesFactory
from torch import Tensor

import nodepiece

DIM = 32


class NodePieceRepresentation(Representation):
    """Vectors of nodes from their pieces."""

    def __init__(self, nodes: nodepiece.NodePieceEmbedding) -> None:
        super().__init__(max_id=nodes.num_embeddings, shape=nodes.embedding_dim)
        self.nodes = nodes

    def _plain_forward(self, indices: Tensor | None = None) -> Tensor:
        return self.nodes.all_nodes() if indices is None else self.nodes(indices)


def main() -> float:
    dataset = nodepiece.load_countries()
    graph, rng = dataset.train, np.random.default_rng(0)
    settings = nodepiece.TokenizerSettings(num_anchors=50, anchors_per_node=6, relations_per_node=4)
    table = nodepiece.tokenize(graph, nodepiece.fit_vocabulary(graph, settings, rng=rng), rng=rng)
    encoder = nodepiece.EncoderSettings(dim=DIM, hidden_dim=DIM, dropout=0.0)
    nodes = nodepiece.NodePieceEmbedding(table, encoder, generator=torch.Generator().manual_seed(0))
    train, valid, test = (
        CoreTriplesFactory(torch.tensor(facts).long(), graph.num_nodes, graph.num_relations)
        for facts in (graph.triples, dataset.valid, dataset.test)
    )
    model: ERModel[Tensor, Tensor, Tensor] = ERModel(
        triples_factory=train,
        interaction="distmult",
        entity_representations=NodePieceRepresentation(nodes),
        relation_representations=Embedding,
        relation_representations_kwargs={"shape": DIM},
        loss="crossentropy",
        random_seed=0,
    )
    quiet = {"use_tqdm": False}
    result = pipeline(
        training=train,
        validation=valid,
        testing=test,
        model=model,
        training_loop="lcwa",
        optimizer_kwargs={"lr": 0.02},
        training_kwargs={"num_epochs": 10, "batch_size": 256, **quiet},
        evaluation_kwargs={"batch_size": 128, **quiet},
    )
    mrr = result.get_metric("both.realistic.inverse_harmonic_mean_rank")
    print(f"MRR of the test facts after 10 epochs: {mrr:.3f}")
    return mrr


if __name__ == "__main__":
    main()
