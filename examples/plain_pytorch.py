"""NodePieceEmbedding in place of nn.Embedding, in a plain PyTorch model.

    python examples/plain_pytorch.py

The model and its training know nothing of pieces: whatever turns node ids into vectors will do.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

import nodepiece

DIM, EPOCHS, BATCH, NEGATIVES, RATE = 64, 10, 512, 8, 0.01


class DistMult(nn.Module):
    """How plausible a fact is (Yang et al., 2015)."""

    def __init__(self, nodes: nn.Module, num_relations: int) -> None:
        super().__init__()
        self.nodes, self.relations = nodes, nn.Embedding(num_relations, DIM)

    def forward(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return (self.nodes(head) * self.relations(relation) * self.nodes(tail)).sum(dim=-1)


def train(model: DistMult, facts: Tensor, num_nodes: int, generator: torch.Generator) -> float:
    """Separate facts from facts with another tail; the loss of the last batch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for _ in range(EPOCHS):
        for batch in torch.split(facts[torch.randperm(len(facts), generator=generator)], BATCH):
            head, relation, tail = batch.T[:, :, None]  # (batch, 1) each
            others = torch.randint(num_nodes, (len(batch), NEGATIVES), generator=generator)
            scores = model(head, relation, torch.cat([tail, others], dim=1))
            loss = softplus(-scores[:, 0]).mean() + softplus(scores[:, 1:]).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return float(loss.item())


def main() -> dict[str, tuple[float, int]]:
    graph = nodepiece.load_countries().train
    facts, generator = torch.tensor(graph.triples).long(), torch.Generator().manual_seed(0)
    rng = np.random.default_rng(0)
    settings = nodepiece.TokenizerSettings(num_anchors=50, anchors_per_node=6, relations_per_node=4)
    table = nodepiece.tokenize(graph, nodepiece.fit_vocabulary(graph, settings, rng=rng), rng=rng)
    encoder = nodepiece.EncoderSettings(dim=DIM, hidden_dim=DIM, dropout=0.0)
    torch.manual_seed(0)  # nn.Embedding draws from the global generator
    lookup, results = nn.Embedding(graph.num_nodes, DIM), {}
    nn.init.xavier_uniform_(lookup.weight)
    for nodes in (lookup, nodepiece.NodePieceEmbedding(table, encoder, generator=generator)):
        loss = train(DistMult(nodes, graph.num_relations), facts, graph.num_nodes, generator)
        size = sum(parameter.numel() for parameter in nodes.parameters())
        print(f"{type(nodes).__name__:20}loss {loss:.3f}, {size:,} parameters for nodes")
        results[type(nodes).__name__] = loss, size
    return results


if __name__ == "__main__":
    main()
