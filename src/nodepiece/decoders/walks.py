"""How easily walks from the head reach each node, along relations that the question prefers.

Node vectors say what a node is like, and not how near it is to another. On graphs with few
relations, being near is most of what there is to know. The lengths of walks and their preferences
are learned, much as rules are in Neural LP (Yang et al., 2017) and DRUM (Sadeghian et al., 2019);
with none of them learned this is close to personalized PageRank.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from nodepiece.encoders.arranged_edges import ArrangedEdges
from nodepiece.encoders.edge_sums import gather, spread, weighted_sum
from nodepiece.encoders.parameters import linear

LOG_FLOOR = -7.0  # of the chance to reach a node: how it starts


class Walks(nn.Module):
    """strength * log(floor + sum over lengths l of mix_l * chance to be there after l steps).

    Strength, mix and preferences depend on the relation asked for. A step goes to a neighbour
    with a chance of preference(relation) / degree, where preferences are between 0 and 2. The head
    itself counts as not reached.
    """

    def __init__(self, dim: int, num_steps: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.num_steps = num_steps
        self.prefer = nn.ModuleList(linear(dim, dim, generator=generator) for _ in range(num_steps))
        self.mix = linear(dim, num_steps, generator=generator)
        self.strength = linear(dim, 1, generator=generator)
        self.log_floor = nn.Parameter(torch.tensor(LOG_FLOOR))

    def forward(
        self,
        heads: Tensor,  # (batch,)
        asked: Tensor,  # (batch, dim) the relation of each question
        relations: Tensor,  # (num_relations, dim) all of them
        edges: ArrangedEdges,
        weight: Tensor | None,  # (num_edges,) in the caller's order, 0: hidden
    ) -> Tensor:
        """(batch, num_nodes), to be added to scores."""
        if weight is None:
            weight = asked.new_ones(len(edges.order))
        weight = weight.index_select(0, edges.order)[:, None]  # (num_edges, 1)
        in_both = gather(weight, edges.listeners).view(2, edges.num_nodes, 1)
        one_of = 1 / in_both.sum(dim=0).clamp_min(1.0)  # (num_nodes, 1)
        chance = asked.new_zeros(edges.num_nodes, len(heads)).scatter_(0, heads[None], 1.0)
        mix = softplus(self.mix(asked)).T  # (num_steps, batch)
        reached = torch.zeros_like(chance)
        scale = relations.shape[1] ** -0.5
        for step, prefer in enumerate(self.prefer):
            preference = 2 * (relations @ prefer(asked).T * scale).sigmoid()
            said = spread(chance * one_of, edges.neighbours) * spread(preference, edges.relations)
            heard = weighted_sum(said, weight, *edges.ends)  # (2 * num_nodes, batch)
            chance = heard.view(2, edges.num_nodes, -1).sum(dim=0)
            reached = reached + mix[step] * chance
        reached = reached.scatter(0, heads[None], 0.0)  # to be back home is no answer
        strength = 1 + self.strength(asked)  # (batch, 1)
        return strength * (reached.T + self.log_floor.exp()).log()
