"""The model of node classification: node vectors and a linear layer."""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from nodepiece.encoders.compgcn import CompGCN
from nodepiece.encoders.complex_numbers import to_unit_modulus
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.lookup_embedding import NodeEmbedding
from nodepiece.encoders.parameters import Dropout, linear, phases, use_generator
from nodepiece.errors import InputError

RAREST = 1e-4  # lower limit of a class frequency, so that the class can still be learned


@dataclass(frozen=True)
class ClassifierSettings:
    """How classes are predicted from node vectors, and the share of labels that is used."""

    label_share: float = 1.0  # of the labelled training nodes that are learned from, in (0, 1]
    hidden_layers: int = 0  # linear layers with ReLU before the one that gives the classes
    dropout: float = 0.0  # on the node vectors and after each hidden layer, in [0, 1)
    unit_relations: bool = False  # relations back to unit modulus after each step, as published

    def __post_init__(self) -> None:
        if not 0 < self.label_share <= 1:
            raise InputError(f"classifier.label_share must be in (0, 1], got {self.label_share}")
        if self.hidden_layers < 0:
            raise InputError(
                f"classifier.hidden_layers must be 0 or more, got {self.hidden_layers}"
            )
        if not 0 <= self.dropout < 1:
            raise InputError(f"classifier.dropout must be in [0, 1), got {self.dropout}")


class ClassModel(nn.Module):
    """Computes the logits of every class, each a binary classification.

    The relations of message passing are the relation pieces of the encoder, as published, or
    separate vectors where node vectors are looked up.
    """

    edges: Tensor | None

    def __init__(
        self,
        nodes: NodeEmbedding,
        edges: Tensor,  # (num_edges, 3) of the graph, inverses included
        num_relations: int,  # direct and inverse
        frequency: Tensor,  # (num_classes,) share of the training nodes that have each class
        classifier: ClassifierSettings,
        graph: GraphLayerSettings,
        *,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        dim = nodes.embedding_dim
        self.nodes, self.num_relations = nodes, num_relations
        self.layers = CompGCN(dim, graph, generator=generator) if graph.layers else None
        self.own_relations = (
            phases(num_relations, dim, generator=generator)
            if self.layers is not None and nodes.relation_table is None
            else None
        )
        self.hidden = nn.ModuleList(
            linear(dim, dim, generator=generator) for _ in range(classifier.hidden_layers)
        )
        self.output = linear(dim, len(frequency), generator=generator)
        start_at_frequency(self.output, frequency)
        self.dropout = Dropout(classifier.dropout)
        self.unit_relations = classifier.unit_relations
        self.register_buffer("edges", edges if graph.layers else None, persistent=False)
        self._edge_index_cache: EdgeIndex | None = None
        use_generator(self, generator)

    def relation_vectors(self) -> nn.Parameter:
        """(num_relations, dim), the relations of the first graph layer, if there are any."""
        shared = self.nodes.relation_table
        return cast(nn.Parameter, self.own_relations) if shared is None else shared

    def node_vectors(self) -> Tensor:
        """The vectors of all nodes, after the graph layers if there are any: (num_nodes, dim)."""
        vectors = self.nodes.all_nodes()
        if self.layers is None:
            return vectors
        return self.layers(vectors, self.relation_vectors(), self._edge_index())[0]

    def logits(self, nodes: Tensor, vectors: Tensor) -> Tensor:
        """(batch,), (num_nodes, dim) from `node_vectors` -> (batch, num_classes)."""
        hidden = self.dropout(vectors.index_select(0, nodes))
        for layer in self.hidden:
            hidden = self.dropout(layer(hidden).relu())
        return self.output(hidden)

    def after_step(self) -> None:
        """Project the weights as the settings require, after a step of the optimizer."""
        if self.unit_relations:
            with torch.no_grad():
                relations = self.relation_vectors()
                relations.copy_(to_unit_modulus(relations))

    def _edge_index(self) -> EdgeIndex:
        """The edge index: built once, and again when the model moves to another device."""
        edges = cast(Tensor, self.edges)
        if self._edge_index_cache is None or self._edge_index_cache.device != edges.device:
            num_nodes = self.nodes.num_embeddings
            self._edge_index_cache = EdgeIndex(edges, num_nodes, self.num_relations, "direction")
        return self._edge_index_cache


def start_at_frequency(layer: nn.Linear, frequency: Tensor) -> None:
    """Initialize the bias of a layer so that the probability of each class is its frequency.

    Nearly all of 465 classes are wrong for a node: from a bias of 0, the model would learn nothing
    else in the first hundreds of steps.
    """
    odds = frequency.clamp(RAREST, 1 - RAREST)
    with torch.no_grad():
        layer.bias.copy_(odds.log() - (1 - odds).log())
