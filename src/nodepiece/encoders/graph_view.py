"""The tokens and edges of a graph for a model without anchors.

Nodes are written with relations alone, so tokens do not refer to nodes of the training graph. The
same weights then serve any graph with the relations of training, through another view.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nodepiece.encoders.bag_sum import Bags
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.gated_sum import GatedSumEncoder
from nodepiece.encoders.mlp import MLPEncoder
from nodepiece.encoders.pieces import Tokens, TokenTensors
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.tokens import TokenTable, tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary


@dataclass(frozen=True)
class GraphView:
    """The tokens of the nodes of a graph, and its edges.

    All relations that training did not have are one additional relation, the unseen relation.
    """

    num_nodes: int
    num_known: int  # relations that training had, without inverses
    has_unseen: bool
    tokens: Tokens  # relations as in PieceVectors, then the unseen one and its inverse
    edges: EdgeIndex  # sorted by direction; relations as in `relation_row`
    bags: tuple[Bags, Bags] | None = None  # of the factorized encoder, where it is used

    @property
    def num_relations(self) -> int:
        """The number of relations, direct and inverse, the unseen one included."""
        return 2 * (self.num_known + self.has_unseen)

    def relation_row(self, relation: int, num_relations: int) -> int:
        """The row in this view of a relation of a graph with `num_relations` relations.

        Inverses come after all direct ones, in the graph as in the view.
        """
        direct, is_inverse = relation % num_relations, relation >= num_relations
        return min(direct, self.num_known) + is_inverse * (self.num_known + self.has_unseen)

    def tokens_with(self, edge_mask: Tensor) -> Tokens:
        """The tokens without relations that a node has only along hidden edges.

        edge_mask: (num_edges,) 0: hidden, numbered as in `with_inverses`. The other relations
        move up and [PAD] fills the row, as in a graph without these edges, except that the freed
        slots are not used to sample more relations. For a view without unseen relations.
        """
        pairs = self.edges.target_relations
        edge_mask = edge_mask.index_select(0, self.edges.order)
        visible = edge_mask.new_zeros(len(pairs.key)).index_add_(0, pairs.of_edges.rows, edge_mask)
        relations = self.tokens.relations
        node = torch.arange(self.num_nodes, device=relations.device)[:, None]
        key = node * (self.num_relations + 1) + relations
        pair = torch.searchsorted(pairs.key, key).clamp_max(len(pairs.key) - 1)
        is_relation = pairs.key[pair] == key  # not padding
        is_hidden = is_relation & (visible[pair] <= 0)
        shown = relations.masked_fill(is_hidden, self.num_relations)
        order = (shown == self.num_relations).int().argsort(dim=1, stable=True)
        shown = shown.gather(1, order)
        return Tokens(self.tokens.anchors, self.tokens.distances, shown)


def merge_unseen(graph: KnowledgeGraph, num_known: int) -> KnowledgeGraph:
    """The graph with all relations from `num_known` on merged into one, without names."""
    if graph.num_relations <= num_known:
        return graph
    triples = graph.triples.copy()
    triples[:, 1] = np.minimum(triples[:, 1], num_known)
    return KnowledgeGraph(triples, graph.num_nodes, num_known + 1)


def tokenize_by_relations(
    graph: KnowledgeGraph,
    settings: TokenizerSettings,
    num_known: int,
    *,
    rng: np.random.Generator,
) -> TokenTable:
    """The tokens of a graph for `view_graph`."""
    merged = merge_unseen(graph, num_known)
    return tokenize(merged, fit_vocabulary(merged, settings, rng=rng), rng=rng)


def view_graph(
    graph: KnowledgeGraph,
    table: TokenTable,  # of the graph, from `tokenize_by_relations`
    num_known: int,
    encoder: MLPEncoder | GatedSumEncoder | None,  # None: not factorized
    *,
    device: torch.device,
) -> GraphView:
    """The view of a graph; built once for each graph."""
    merged = merge_unseen(graph, num_known)
    edges = torch.tensor(with_inverses(merged)).to(device)
    has_unseen = merged.num_relations > num_known
    tokens = TokenTensors(table).to(device).tokens()
    if has_unseen:
        rows = renumbered(tokens.relations, num_known)
        tokens = Tokens(tokens.anchors, tokens.distances, rows)
    bags = None
    if encoder is not None and not has_unseen:
        rows_of = encoder.product_rows(tokens)
        bags = (rows_of, rows_of.transposed())
    edge_index = EdgeIndex(edges, merged.num_nodes, 2 * merged.num_relations, "direction")
    return GraphView(merged.num_nodes, num_known, has_unseen, tokens, edge_index, bags)


def renumbered(relations: Tensor, num_known: int) -> Tensor:
    """Relation tokens renumbered for a model that does not have the unseen relation.

    From: known, unseen, their inverses, [PAD]. To: known, their inverses, [PAD], unseen, inverse.
    """
    known = torch.arange(num_known, device=relations.device, dtype=torch.int32)
    padding = 2 * num_known
    ends = torch.tensor(
        [padding + 1, padding + 2, padding], device=relations.device, dtype=torch.int32
    )
    rows = torch.cat([known, ends[:1], known + num_known, ends[1:]])
    return rows[relations.long()]


def unseen_vectors(relations: Tensor) -> Tensor:
    """The mean of all direct relations and the mean of all inverse relations: (2, dim)."""
    direct, inverse = relations.chunk(2)
    return torch.stack([direct.mean(dim=0), inverse.mean(dim=0)])
