"""CompGCN: graph layers that compose neighbours with relations, and update both.

Vashishth et al., 2020, with attention over the neighbours as the paper used it, on top of NodePiece
vectors or of trained ones.
"""

import torch
from torch import Tensor, nn

from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.messages import Messages
from nodepiece.encoders.parameters import Dropout, linear, xavier


class CompGCN(nn.Module):
    """CompGCN layers with the graph as an argument, so the same weights serve any graph.

    Relations are those of the graph with their inverses. An edge mask of 0 hides an edge from a
    step, such as those of a batch's own facts, without a change of shapes.
    """

    def __init__(
        self, dim: int, settings: GraphLayerSettings, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        settings.check_dim(dim)
        self.residual = settings.residual
        self.layers = nn.ModuleList(
            CompGCNLayer(dim, settings, generator=generator) for _ in range(settings.layers)
        )
        self.layer_dropout = Dropout(settings.layer_dropout)
        self.jump = (
            nn.Sequential(
                linear(settings.layers * dim, dim, generator=generator),
                nn.ReLU(),
                linear(dim, dim, generator=generator),
            )
            if settings.jumping_knowledge
            else None
        )

    def forward(
        self, nodes: Tensor, relations: Tensor, edges: EdgeIndex, edge_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Nodes (num_nodes, dim) and relations (num_relations, dim) after all layers.

        edges: sorted by direction. edge_mask: (num_edges,), 0 for hidden edges, in the caller's
        order.
        """
        if edge_mask is not None:
            edge_mask = edge_mask.index_select(0, edges.order)[:, None].to(nodes.dtype)
        after_layers = []
        for layer in self.layers:
            update, relations = layer(nodes, relations, edges, edge_mask)
            update = self.layer_dropout(update)
            nodes = nodes + update if self.residual else update
            after_layers.append(nodes)
        if self.jump is not None:
            nodes = self.jump(torch.cat(after_layers, dim=1))
        return nodes, relations


class CompGCNLayer(nn.Module):
    """relu(norm((dropout(direct sum) + dropout(inverse sum) + own) / 3)) for nodes.

    `own` is W (node o loop), where o is the composition and loop the vector of an additional
    relation. Relations are multiplied by a matrix.
    """

    def __init__(
        self, dim: int, settings: GraphLayerSettings, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.messages = make_messages(dim, settings, generator=generator)
        width = self.messages.width
        self.condense = linear(width * dim, dim, generator=generator) if width > 1 else None
        self.loop = xavier(1, dim, generator=generator)
        self.weight_loop = xavier(dim, dim, generator=generator)
        self.weight_relation = xavier(dim, dim, generator=generator)
        self.norm = nn.BatchNorm1d(dim)
        self.dropout = Dropout(settings.dropout)
        self.edge_dropout = Dropout(settings.edge_dropout)

    def forward(
        self, nodes: Tensor, relations: Tensor, edges: EdgeIndex, edge_mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if self.training and self.edge_dropout.share:
            edge_mask = nodes.new_ones(edges.num_edges, 1) if edge_mask is None else edge_mask
            edge_mask = self.edge_dropout(edge_mask)
        aggregated = self.dropout(self.messages(nodes, relations, edges, edge_mask))
        direct, inverse = aggregated.view(2, edges.num_nodes, -1)
        both = direct + inverse
        if self.condense is not None:
            both = self.condense(both)
        own = self.messages.compose(nodes, self.loop) @ self.weight_loop
        return self.norm((both + own) / 3).relu(), relations @ self.weight_relation


def make_messages(
    dim: int, settings: GraphLayerSettings, *, generator: torch.Generator
) -> Messages:
    """A module for messages: our kernels or PyTorch Geometric, with the same results."""
    kind = Messages
    if not settings.fused:
        from nodepiece.encoders.pyg_messages import PyGMessages  # takes seconds to import

        kind = PyGMessages
    return kind(
        dim,
        composition=settings.composition,
        heads=settings.attention_heads,
        attention_dropout=settings.attention_dropout,
        slope=settings.attention_slope,
        statistics=settings.aggregation == "pna",
        generator=generator,
    )
