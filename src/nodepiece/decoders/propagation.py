"""Scores from query-conditioned message passing (Bellman-Ford networks; Zhu et al., 2021).

The state of a query (head, relation, ?) starts at its head. In every layer a message is the product
of the source's state and a vector of the edge's relation, computed from the relation of the query;
a node aggregates its messages by their mean, deviation, maximum and minimum, scaled by its degree
(PNA; Corso et al., 2020). An MLP scores the last state of every node. No weight belongs to a node.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from nodepiece.decoders.path_scorers import PathGraph, PathScorer, check_combination
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.message_moments import NUM_MOMENTS, message_moments
from nodepiece.encoders.scaled_update import scaled_update
from nodepiece.errors import InputError

NUM_SCALERS = 3  # of the degree: 1, growing with it, falling with it
# Of message moments that are held for queries without gradients. On a CPU arrays stay below 32 MiB:
# the memory of larger ones goes back to the system each time, and takes half of the time to get.
NUMBERS_AT_ONCE, NUMBERS_ON_CPU = 2**28, 8_000_000


@dataclass(frozen=True)
class PropagationSettings:
    """The size of the network that scores nodes by the paths to them."""

    layers: int = 0  # the longest paths; 0: no propagation, whatever the other settings are
    dim: int = 32  # of the state that a node has for a query; a power of 2
    rank: int = 12  # of the map from a query relation to the relation vectors of a layer
    vectors_alone: float = 0.0  # weight of the loss that vectors have alone, in training
    separate_losses: bool = False  # one for propagation and one for vectors, not one of their sum
    coefficient: float = 1.0  # of propagation in the sum of scores after training
    choose_coefficient: bool = False  # by validation after training; until then: `coefficient`

    name: ClassVar[str] = "propagation"
    switch: ClassVar[str] = "layers"
    reads_relations: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.dim & (self.dim - 1):
            raise InputError(f"propagation.dim must be a power of 2, got {self.dim}")
        if self.layers < 0 or self.dim < 1 or self.rank < 1:
            raise InputError(
                "propagation.layers must be 0 or more, dim and rank 1 or more, got "
                f"{self.layers}, {self.dim}, {self.rank}"
            )
        check_combination(self)

    def build(self, num_relations: int, dim: int, *, generator: torch.Generator) -> "Propagation":
        return Propagation(num_relations, self, generator=generator)


class PropagationLayer(nn.Module):
    """x + relu(norm(sum over degree scalers s of s * W_s [moments of messages, x]))."""

    def __init__(
        self, num_relations: int, settings: PropagationSettings, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        dim, rank = settings.dim, settings.rank
        self.basis = nn.Parameter(torch.empty(num_relations, rank, dim))
        self.relation = nn.Parameter(torch.empty(num_relations, dim))
        self.mix = nn.Parameter(torch.empty(rank, dim))
        self.weight = nn.Parameter(torch.empty(NUM_SCALERS * dim, (NUM_MOMENTS + 1) * dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.scale, self.shift = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        nn.init.normal_(self.basis, std=rank**-0.5, generator=generator)
        nn.init.normal_(self.relation, mean=1.0, std=0.1, generator=generator)
        nn.init.xavier_uniform_(self.mix, generator=generator)
        nn.init.kaiming_uniform_(self.weight, nonlinearity="linear", generator=generator)

    def relations_for(self, queries: Tensor, num_relations: int) -> Tensor:
        """(num_queries, dim) -> (num_relations, num_queries, dim)."""
        mixed = linear(queries, self.mix)  # (num_queries, rank)
        basis, own = (with_unseen(table, num_relations) for table in (self.basis, self.relation))
        return torch.einsum("qk,rkd->rqd", mixed, basis) + own[:, None]

    def forward(
        self,
        states: Tensor,  # (num_nodes, num_queries, dim)
        queries: Tensor,  # (num_queries, dim)
        heads: Tensor,  # (num_queries,)
        scalers: Tensor,  # (num_nodes, 3)
        edge_mask: Tensor,
        edges: EdgeIndex,
    ) -> Tensor:
        dtype = states.dtype
        num_relations = edges.num_relations
        relations = self.relations_for(queries, num_relations).to(dtype)
        moments = message_moments(states, relations, queries, heads, edge_mask, edges)
        parts = _linear(moments.flatten(start_dim=2), self.weight.to(dtype))
        parts = parts.view(*states.shape[:2], NUM_SCALERS, -1)
        return scaled_update(parts, scalers, states, self.bias, self.scale, self.shift)


class Propagation(PathScorer):
    """Scores of all nodes for queries (head, relation, ?) over any graph of the same relations."""

    def __init__(
        self, num_relations: int, settings: PropagationSettings, *, generator: torch.Generator
    ) -> None:
        super().__init__(settings)
        dim = settings.dim
        self.queries = nn.Parameter(torch.empty(num_relations, dim))
        nn.init.normal_(self.queries, std=1.0, generator=generator)
        self.layers = nn.ModuleList(
            PropagationLayer(num_relations, settings, generator=generator)
            for _ in range(settings.layers)
        )
        self.hidden = nn.Parameter(torch.empty(2 * dim, 2 * dim))
        self.hidden_bias = nn.Parameter(torch.zeros(2 * dim))
        self.output = nn.Parameter(torch.empty(1, 2 * dim))
        for weight in (self.hidden, self.output):
            nn.init.xavier_uniform_(weight, generator=generator)

    def queries_at_once(self, graph: PathGraph) -> int:
        if graph.query_edges is not None:
            return 1  # each has a graph of its own
        width, most = len(self.hidden) // 2, NUMBERS_AT_ONCE
        if not self.hidden.is_cuda:
            most = NUMBERS_ON_CPU
        return max(1, most // (width * (NUM_MOMENTS + 1) * graph.num_nodes))

    def scores(self, heads: Tensor, relations: Tensor, graph: PathGraph) -> Tensor:
        """(num_queries, num_nodes): states in bfloat16 inside torch.autocast on CUDA.

        On a CPU they have the type of the weights, which its kernels need.
        """
        device, dtype = heads.device.type, self.output.dtype
        if device == "cuda" and torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
        edges, edge_mask = followed_edges(graph)
        with torch.autocast(device, enabled=False):
            return self.score_tails(heads, relations, edges, edge_mask, dtype)

    def score_tails(
        self,
        heads: Tensor,  # (num_queries,)
        relations: Tensor,  # (num_queries,)
        edges: EdgeIndex,
        edge_mask: Tensor,  # (num_edges,) in the order of `edges`; 0: hidden
        dtype: torch.dtype = torch.float32,  # of the states
    ) -> Tensor:
        """(num_queries, num_nodes)."""
        table = with_unseen(self.queries, edges.num_relations)
        queries = table.index_select(0, relations)
        states = self.last_states(heads, queries, edges, edge_mask, dtype)
        dim = queries.shape[1]
        by_state, by_query = self.hidden[:, :dim], self.hidden[:, dim:]
        hidden = _linear(states.to(queries.dtype), by_state)
        hidden = hidden + linear(queries, by_query, self.hidden_bias)
        return _linear(hidden.relu(), self.output)[..., 0].T

    def last_states(
        self,
        heads: Tensor,
        queries: Tensor,  # (num_queries, dim)
        edges: EdgeIndex,
        edge_mask: Tensor,
        dtype: torch.dtype,
    ) -> Tensor:
        """(num_nodes, num_queries, dim)."""
        query = torch.arange(len(heads), device=heads.device)
        states = torch.zeros(edges.num_nodes, *queries.shape, dtype=dtype, device=heads.device)
        if not states.is_cuda:  # the kernels for CPUs have queries first in memory
            states = states.transpose(0, 1).contiguous().transpose(0, 1)
        states = states.index_put((heads, query), queries.to(dtype))
        scalers = degree_scalers(edge_mask, edges)
        for layer in self.layers:
            states = layer(states, queries, heads, scalers, edge_mask, edges)
        return states


def _linear(rows: Tensor, weight: Tensor) -> Tensor:
    """(num_nodes, num_queries, in) -> (..., out); no copy where queries come first in memory."""
    if rows.is_contiguous():
        return linear(rows, weight)
    return linear(rows.transpose(0, 1), weight).transpose(0, 1)


def degree_scalers(edge_mask: Tensor, edges: EdgeIndex) -> Tensor:
    """(num_nodes, 3): 1, log(degree) over its mean, and the inverse of that."""
    visible = (edge_mask > 0).cumsum(0)
    total = torch.cat([visible.new_zeros(1), visible])
    offsets = edges.target.edges.offsets.long()
    degree = total[offsets[1:]] - total[offsets[:-1]]
    logarithm = (degree + 2).double().log()
    relative = logarithm / logarithm.mean()
    return torch.stack([torch.ones_like(relative), relative, 1 / relative], dim=1).float()


def with_unseen(table: Tensor, num_relations: int) -> Tensor:
    """A table of relations, the second half inverses, with rows for relations of no training fact.

    table: (num_trained, ...), inverses included. A graph with such relations has one for all of
    them, after the direct ones, and its inverse, after the inverse ones. Each gets the mean of its
    half of the table.
    """
    if len(table) == num_relations:
        return table
    direct, inverse = table.chunk(2)
    parts = [direct, direct.mean(dim=0, keepdim=True), inverse, inverse.mean(dim=0, keepdim=True)]
    return torch.cat(parts)


def followed_edges(graph: PathGraph) -> tuple[EdgeIndex, Tensor]:
    """The edges of a graph sorted by target, those of its one query included, and their mask."""
    edges, place = graph.edge_index.by_target
    visible = graph.visible().index_select(0, place)
    if (own := graph.query_edges) is None:
        return edges, visible
    edges, place = edges.insert(torch.stack([own.heads, own.relations, own.tails], dim=1))
    return edges, torch.cat([visible, visible.new_ones(len(own.heads))]).index_select(0, place)
