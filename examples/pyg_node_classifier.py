"""A node classifier in PyTorch Geometric whose features are NodePiece vectors.

    python -m examples.pyg_node_classifier

Which region is a country in? The graph has no node features and no facts about regions; pieces
give every node a vector, and two relational convolutions read the neighbours.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import RGCNConv

import nodepiece

DIM, EPOCHS, STATED = 32, 60, ("in region", "in subregion")


class Classifier(nn.Module):
    """Class scores of all nodes: (num_nodes, num_classes)."""

    def __init__(self, features: nodepiece.NodePieceEmbedding, num_relations: int, classes: int):
        super().__init__()
        self.features = features
        self.first = RGCNConv(DIM, DIM, num_relations)
        self.second = RGCNConv(DIM, classes, num_relations)

    def forward(self, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        hidden = self.first(self.features.all_nodes(), edge_index, edge_type).relu()
        return self.second(hidden, edge_index, edge_type)


def main() -> float:
    """The accuracy on countries without a label in training; the largest region alone: 0.25."""
    facts = nodepiece.load_countries().train.to_pandas()
    graph = nodepiece.graph(facts[~facts["relation"].isin(STATED)])
    labels = facts[
        (facts["relation"] == "in region") & facts["head"].isin(graph.to_pandas()["head"])
    ]
    target = torch.tensor(labels["tail"].astype("category").cat.codes.to_numpy().astype(np.int64))
    place = {graph.node_name(node): node for node in range(graph.num_nodes)}
    nodes = torch.tensor([place[name] for name in labels["head"]])
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    settings = nodepiece.TokenizerSettings(num_anchors=50, anchors_per_node=6, relations_per_node=4)
    table = nodepiece.tokenize(graph, nodepiece.fit_vocabulary(graph, settings, rng=rng), rng=rng)
    encoder = nodepiece.EncoderSettings(dim=DIM, hidden_dim=DIM, dropout=0.1)
    features = nodepiece.NodePieceEmbedding(table, encoder, generator=generator)
    data = graph.to_pyg()
    torch.manual_seed(0)  # RGCNConv draws from the global generator
    model = Classifier(features, int(data.edge_type.max()) + 1, int(target.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    is_train = torch.rand(len(nodes), generator=generator) < 0.5
    for _ in range(EPOCHS):
        scores = model(data.edge_index, data.edge_type)[nodes]
        loss = nn.functional.cross_entropy(scores[is_train], target[is_train])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    correct = model.eval()(data.edge_index, data.edge_type)[nodes].argmax(dim=1) == target
    accuracy = float(correct[~is_train].float().mean())
    print(f"accuracy {accuracy:.3f} on {int((~is_train).sum())} countries without a label")
    return accuracy


if __name__ == "__main__":
    main()
