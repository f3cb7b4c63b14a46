"""The model of inductive link prediction, for any graph with known relations (section 4.2)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.decoders.path_scorers import PathGraph, PathScorers, ScorerSettings
from nodepiece.decoders.triple_scores import DECODERS, Decoder
from nodepiece.encoders.compgcn import CompGCN
from nodepiece.encoders.complex_numbers import to_adjacent, to_halves, to_unit_modulus
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.graph_view import GraphView, unseen_vectors, view_graph
from nodepiece.encoders.node_embedding import EncoderSettings, factorized_form, make_encoder
from nodepiece.encoders.parameters import Dropout, use_generator
from nodepiece.encoders.pieces import PieceCounts, PieceTables, PieceVectors, Tokens
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.tokenizer.tokens import TokenTable


@dataclass(frozen=True)
class EncodedGraph:
    """The vectors of a view, and everything needed to score its facts."""

    nodes: Tensor  # (num_nodes, dim)
    relations: Tensor  # (num_relations, dim) as in GraphView.relation_row
    view: GraphView
    edge_mask: Tensor | None  # (num_edges,) 0: hidden
    decoder: Decoder

    @property
    def num_nodes(self) -> int:
        return self.view.num_nodes

    def vectors_of(self, nodes: Tensor) -> Tensor:
        return embedding(nodes, self.nodes)

    def vectors_at(self, nodes: Tensor, places: Tensor) -> Tensor:
        """The vectors of nodes[places]; all of them are of one pass, with the same masks."""
        return self.vectors_of(nodes[places])

    def relation_vectors(self) -> Tensor:
        return self.relations

    def path_graph(self) -> PathGraph:
        """The graph that path scorers follow."""
        edges, edge_mask = self.view.edges, self.edge_mask
        if edge_mask is not None:
            edge_mask = edge_mask.index_select(0, edges.order)
        return PathGraph(edges, self.relations, edge_mask)


class InductiveModel(nn.Module):
    """Relation pieces, an encoder, CompGCN and a decoder: no weight belongs to a node.

    The graph is an argument, as a view that the model makes of it. The relation pieces are the
    relations of message passing and, after its layers, of the decoder.
    """

    def __init__(
        self,
        counts: PieceCounts,
        encoder: EncoderSettings,
        graph: GraphLayerSettings,
        decoder: DecoderSettings,
        scorers: Sequence[ScorerSettings],
        *,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        if counts.anchors_per_node:
            raise InputError("anchors belong to one graph; set tokenizer.anchors_per_node = 0")
        self.num_known = counts.num_relations // 2
        self.formula = DECODERS[decoder.kind]
        if self.formula.relation_dim(encoder.dim) != encoder.dim:
            raise InputError(f"the decoder {decoder.kind} does not work with relation pieces")
        self.tables = PieceTables(
            counts, encoder.dim, zero_padding=encoder.zero_padding, generator=generator
        )
        if self.formula.relation_start == "xavier" and graph.composition != "rotate":
            nn.init.xavier_uniform_(self.tables.relations, generator=generator)
        self.adjacent_pairs = decoder.adjacent_pairs
        if self.adjacent_pairs:
            with torch.no_grad():
                self.tables.relations.copy_(to_adjacent(self.tables.relations))
        self.decoder_weights = self.formula.new_weights(encoder.dim, generator)
        self.encoder = make_encoder(counts, encoder, generator=generator)
        self.layers = CompGCN(encoder.dim, graph, generator=generator) if graph.layers else None
        self.node_norm = nn.BatchNorm1d(encoder.dim) if decoder.node_norm else None
        self.scorers = PathScorers(scorers, counts.num_relations, encoder.dim, generator=generator)
        self.query_dropout = Dropout(decoder.query_dropout)
        self.unit_relations = decoder.unit_relations
        use_generator(self, generator)
        self.training_view: GraphView | None = None  # of the training graph, for the trainer

    @property
    def decoder(self) -> Decoder:
        """The scoring function, with its weights if it has some."""
        return self.formula.with_weights(self.decoder_weights)

    def view(self, graph: KnowledgeGraph, table: TokenTable) -> GraphView:
        """The view of a graph that `encode` needs, on the device of the model."""
        encoder, device = factorized_form(self.encoder), self.tables.relations.device
        return view_graph(graph, table, self.num_known, encoder, device=device)

    def renew_tokens(self, view: GraphView, tokens: Tokens) -> None:
        """Replace the tokens of a view in place."""
        view.tokens.copy_from(tokens)
        encoder = factorized_form(self.encoder)
        if view.bags is not None and encoder is not None:
            fresh = encoder.product_rows(view.tokens)
            for bags, new in zip(view.bags, (fresh, fresh.transposed()), strict=True):
                bags.copy_from(new)

    def encode(self, view: GraphView, edge_mask: Tensor | None = None) -> EncodedGraph:
        """The vectors of all nodes and relations; edges with mask 0 are hidden.

        No message goes along hidden edges, and the pieces of their nodes do not contain them.
        """
        pieces = self.tables.vectors()
        relations: Tensor = self.tables.relations
        if view.has_unseen:
            unseen = unseen_vectors(relations)
            direct, inverse = relations.chunk(2)
            relations = torch.cat([direct, unseen[:1], inverse, unseen[1:]])
            more = torch.cat([pieces.relations, unseen])
            pieces = PieceVectors(pieces.anchors, pieces.distances, more)
        nodes = self.encode_pieces(pieces, view, edge_mask)
        if self.layers is not None:
            nodes, relations = self.layers(nodes, relations, view.edges, edge_mask)
        if self.node_norm is not None:
            nodes = self.node_norm(nodes)
        if self.adjacent_pairs:
            nodes, relations = to_halves(nodes), to_halves(relations)
        return EncodedGraph(nodes, relations, view, edge_mask, self.decoder)

    def encode_pieces(
        self, pieces: PieceVectors, view: GraphView, edge_mask: Tensor | None
    ) -> Tensor:
        """Node vectors before any message passing: (num_nodes, dim)."""
        if edge_mask is not None:
            return self.encoder(pieces, view.tokens_with(edge_mask))
        encoder = factorized_form(self.encoder)
        if view.bags is not None and encoder is not None:
            return encoder.factorized(pieces, *view.bags)
        return self.encoder(pieces, view.tokens)

    def score_all_tails(self, heads: Tensor, relations: Tensor, graph: EncodedGraph) -> Tensor:
        """(batch,), (batch,) -> (batch, num_nodes)."""
        scores = self.score_by_vectors(heads, relations, graph)
        return self.scorers.add_to(scores, heads, relations, graph.path_graph)

    def score_by_vectors(self, heads: Tensor, relations: Tensor, graph: EncodedGraph) -> Tensor:
        """Scores of all tails by the vectors alone, without path scorers: (batch, num_nodes)."""
        head = self.query_dropout(graph.vectors_of(heads))
        relation = graph.relations.index_select(0, relations)
        return self.decoder.score_all_tails(head, relation, graph.nodes)

    def score_all_relations(self, heads: Tensor, tails: Tensor, graph: EncodedGraph) -> Tensor:
        """Scores of all relations by vectors alone, as path scorers only score tails.

        (batch,), (batch,) -> (batch, num_relations).
        """
        head, tail = graph.vectors_of(heads), graph.vectors_of(tails)
        return self.decoder.score_all_relations(head, tail, graph.relations)

    def after_step(self) -> None:
        """Project the weights as the settings require, after a step of the optimizer."""
        if self.unit_relations:
            with torch.no_grad():
                relations: Tensor = self.tables.relations
                if self.adjacent_pairs:
                    unit = to_adjacent(to_unit_modulus(to_halves(relations)))
                else:
                    unit = to_unit_modulus(relations)
                relations.copy_(unit)
