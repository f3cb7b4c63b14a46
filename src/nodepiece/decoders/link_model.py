"""The model of link prediction: node vectors and a scoring function."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from nodepiece.decoders.path_scorers import PathGraph, PathScorers, QueryEdges, ScorerSettings
from nodepiece.decoders.triple_scores import DECODERS, Decoder
from nodepiece.encoders.complex_numbers import to_unit_modulus
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.graph_layers import GraphLayer, Neighbourhoods, group_neighbours
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.lookup_embedding import NodeEmbedding
from nodepiece.encoders.parameters import Dropout, phases, use_generator
from nodepiece.errors import InputError


@dataclass(frozen=True)
class DecoderSettings:
    """How vectors become scores."""

    kind: str = "rotate"  # a name in DECODERS
    query_dropout: float = 0.0  # on heads that are scored against all nodes, in [0, 1)
    start_range: float = 0.0  # anchors (or nodes) and relations start uniform in +-this; 0: Xavier
    node_norm: bool = False  # BatchNorm on the node vectors
    unit_relations: bool = False  # relations back to unit modulus after each step, as published
    # adjacent numbers are complex numbers of decoder and unit_relations, halves those of CompGCN's
    # composition, as published; False: halves everywhere
    adjacent_pairs: bool = False

    def __post_init__(self) -> None:
        if self.kind not in DECODERS:
            raise InputError(f"unknown decoder {self.kind!r}; it is one of {', '.join(DECODERS)}")
        if not 0 <= self.query_dropout < 1:
            raise InputError(f"decoder.query_dropout must be in [0, 1): {self.query_dropout}")
        if not self.start_range >= 0:
            raise InputError(f"decoder.start_range must be 0 or more, got {self.start_range}")
        if self.unit_relations and not DECODERS[self.kind].is_complex:
            raise InputError(f"decoder.unit_relations: {self.kind} has no complex relations")
        if self.adjacent_pairs and not DECODERS[self.kind].is_complex:
            raise InputError(f"decoder.adjacent_pairs: {self.kind} has no complex numbers")


class LinkModel(nn.Module):
    """Scores facts. Heads are predicted as tails of the inverse relation.

    Where a relation vector has the size of a piece, the relation pieces of the encoder are the
    decoder's relations, as published.
    """

    edges: Tensor | None

    def __init__(
        self,
        nodes: NodeEmbedding,
        edges: Tensor,  # (num_edges, 3) of the training graph, inverses included
        num_relations: int,  # direct and inverse
        decoder: DecoderSettings,
        graph: GraphLayerSettings,
        scorers: Sequence[ScorerSettings] = (),
        *,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        dim = nodes.embedding_dim
        self.nodes, self.formula = nodes, DECODERS[decoder.kind]
        self.num_nodes, self.num_relations = nodes.num_embeddings, num_relations
        relation_dim = self.formula.relation_dim(dim)
        if nodes.relation_table is not None and relation_dim == dim:
            self.own_relations = None
        else:
            self.own_relations = phases(num_relations, relation_dim, generator=generator)
        if self.formula.relation_start == "xavier":
            nn.init.xavier_uniform_(self.relation_vectors(), generator=generator)
        if decoder.start_range:
            self._start_in(decoder.start_range, generator)
        self.decoder_weights = self.formula.new_weights(dim, generator)
        self.layers = nn.ModuleList(
            GraphLayer(dim, graph, generator=generator) for _ in range(graph.layers)
        )
        self.scorers = PathScorers(scorers, num_relations, dim, generator=generator)
        readers = ["graph layers"] * bool(graph.layers) + self.scorers.readers_of_relations
        if readers and relation_dim != dim:
            raise InputError(
                f"the decoder {decoder.kind} does not work with {' and '.join(readers)}"
            )
        needs_edges = bool(graph.layers or self.scorers)
        self.register_buffer("edges", edges if needs_edges else None, persistent=False)
        self._neighbourhood_cache: Neighbourhoods | None = None
        self.node_norm = nn.BatchNorm1d(dim) if decoder.node_norm else None
        self.query_dropout = Dropout(decoder.query_dropout)
        self.unit_relations = decoder.unit_relations
        use_generator(self, generator)

    @property
    def decoder(self) -> Decoder:
        """The scoring function, with its weights if it has some."""
        return self.formula.with_weights(self.decoder_weights)

    def relation_vectors(self) -> Tensor:
        """(num_relations, relation_dim)."""
        shared = self.nodes.relation_table
        return cast(Tensor, shared if self.own_relations is None else self.own_relations)

    def _start_in(self, largest: float, generator: torch.Generator) -> None:
        """Initialize as OGB's models do; rotations keep their uniform angles."""
        tables = [self.nodes.start_table]
        if self.formula.relation_start == "xavier":
            tables.append(cast(nn.Parameter, self.relation_vectors()))
        for table in tables:
            nn.init.uniform_(table, -largest, largest, generator=generator)

    def after_step(self) -> None:
        """Project the weights as the settings require, after a step of the optimizer."""
        if self.unit_relations:
            with torch.no_grad():
                relations = self.relation_vectors()
                relations.copy_(to_unit_modulus(relations))

    def node_vectors(self, edge_mask: Tensor | None = None) -> Tensor:
        """The vectors of all nodes, after the graph layers if there are any: (num_nodes, dim).

        edge_mask: (num_edges,) 0 for edges that are hidden from the layers, and 1 for the others.
        """
        neighbourhoods = self._neighbourhoods() if self.layers else None
        if neighbourhoods is not None and edge_mask is not None:
            neighbourhoods = neighbourhoods.with_edge_mask(edge_mask)
        return self._finish(self.nodes.all_nodes(), neighbourhoods)

    def vectors_from(self, encoded: Tensor, edges: Tensor | None) -> Tensor:
        """Node vectors from the encoder's output, also for nodes that the model does not have.

        encoded (num_nodes, dim); edges (num_edges, 3) between these nodes, inverses included, are
        required if there are graph layers.
        """
        if not self.layers:
            return self._finish(encoded, None)
        edges = cast(Tensor, edges)
        return self._finish(encoded, group_neighbours(edges, len(encoded), self.num_relations))

    @property
    def needs_all_nodes(self) -> bool:
        """Whether the vector of a node depends on all others."""
        return bool(self.layers) or self.node_norm is not None

    def vectors_of(self, nodes: Tensor) -> Tensor:
        """The vectors of some nodes, (num_queries,) -> (num_queries, dim).

        Only these are encoded, where the model allows it, and each once. On a GPU, where the
        shapes of a step do not depend on values, a node that occurs twice is encoded twice, unless
        `nodes` is longer than the number of nodes.
        """
        if self.needs_all_nodes or nodes.numel() >= self.num_nodes:
            return embedding(nodes, self.node_vectors())
        if nodes.is_cuda or not self.nodes.has_pieces:
            return self.nodes(nodes)
        distinct, place = torch.unique(nodes, return_inverse=True)
        return embedding(place, self.nodes(distinct))

    def vectors_at(self, nodes: Tensor, places: Tensor) -> Tensor:
        """The vectors of nodes[places], each place with dropout masks of its own: (..., dim).

        nodes: (num_nodes,), places: (...). With graph layers or a norm, which need all nodes, the
        masks are the same for all places.
        """
        if self.needs_all_nodes:
            return embedding(nodes[places], self.node_vectors())
        return self.nodes.at_places(nodes, places)

    def score_candidates(
        self, heads: Tensor, relations: Tensor, candidates: Tensor, vectors: Tensor
    ) -> Tensor:
        """(batch,), (batch,), (batch, num_candidates), (num_nodes, dim) -> like candidates."""
        head = vectors.index_select(0, heads)[:, None]
        relation = self.relation_vectors().index_select(0, relations)[:, None]
        return self.decoder.score(head, relation, embedding(candidates, vectors))

    def score_all_tails(self, heads: Tensor, relations: Tensor, vectors: Tensor) -> Tensor:
        """(batch,), (batch,), (num_nodes, dim) -> (batch, num_nodes)."""
        scores = self.score_by_vectors(heads, relations, vectors)
        return self.scorers.add_to(scores, heads, relations, self.path_graph)

    def score_by_vectors(self, heads: Tensor, relations: Tensor, vectors: Tensor) -> Tensor:
        """Scores of all tails by the vectors alone, without path scorers: (batch, num_nodes)."""
        head = self.query_dropout(vectors.index_select(0, heads))
        relation = self.relation_vectors().index_select(0, relations)
        return self.decoder.score_all_tails(head, relation, vectors)

    def path_graph(
        self,
        edge_mask: Tensor | None = None,  # (num_edges,) 0: hidden
        edge_index: EdgeIndex | None = None,  # of another graph than the model's own
        query_edges: QueryEdges | None = None,  # additional edges of single queries
    ) -> PathGraph:
        """The graph that path scorers follow."""
        edge_index = self._neighbourhoods().edge_index if edge_index is None else edge_index
        return PathGraph(edge_index, self.relation_vectors(), edge_mask, query_edges)

    def score_all_relations(self, heads: Tensor, tails: Tensor, vectors: Tensor) -> Tensor:
        """(batch,), (batch,), (num_nodes, dim) -> (batch, num_relations)."""
        head, tail = vectors.index_select(0, heads), vectors.index_select(0, tails)
        return self.decoder.score_all_relations(head, tail, self.relation_vectors())

    def _finish(self, vectors: Tensor, neighbourhoods: Neighbourhoods | None) -> Tensor:
        for layer in self.layers:
            vectors = layer(vectors, self.relation_vectors(), neighbourhoods)
        return vectors if self.node_norm is None else self.node_norm(vectors)

    def _neighbourhoods(self) -> Neighbourhoods:
        """The grouped edges: built once, and again when the model moves to another device."""
        edges = cast(Tensor, self.edges)
        if (
            self._neighbourhood_cache is None
            or self._neighbourhood_cache.edge_index.device != edges.device
        ):
            self._neighbourhood_cache = group_neighbours(edges, self.num_nodes, self.num_relations)
        return self._neighbourhood_cache

    def num_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())
