"""What the edges around head and tail say of a fact: how easily one is reached from the other.

Node vectors say what a node is like, and not how near it is to another. On graphs with few
relations, being near is most of what there is to know. Walks are no part of NodePiece: they add
what its hashes cannot tell, and `steps = 0` goes without. Their lengths and preferences are
learned, much as rules are in Neural LP (Yang et al., 2017) and DRUM (Sadeghian et al., 2019);
with none of them learned this is close to personalized PageRank.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from nodepiece.decoders import walks_cpu
from nodepiece.decoders.walk_ground import Ground, OwnEdges
from nodepiece.encoders.edge_products import EdgeEnds
from nodepiece.encoders.parameters import linear
from nodepiece.errors import InputError

LOG_FLOOR = -7.0  # of the chance to reach a node: how it starts
PLAIN_FLOOR = 1e-7  # of the chance to reach it without preferences
DAMPING = 0.85  # of those: how much less a step more counts


@dataclass(frozen=True)
class WalkSettings:
    """How far walks go, and what is counted beside them."""

    steps: int = 0  # the longest walks; 0: none of any kind, whatever the other knobs say
    plain_steps: int = 0  # of longer walks without preferences beside them; 0: none
    counts: bool = True  # also how often a node is an answer, and its degree
    vectors_alone: float = 0.0  # weight of the loss that vectors have without walks, in training
    apart: bool = False  # walks and vectors learn each by themselves, and not by their sum
    weight: float = 1.0  # of walks in the sum after training, where vectors know its facts by heart
    choose_weight: bool = False  # by validation, when training is done; until then it is `weight`

    def __post_init__(self) -> None:
        if self.steps < 0 or self.plain_steps < 0 or not self.vectors_alone >= 0:
            raise InputError(
                "walks.steps, plain_steps and vectors_alone must be 0 or more, got "
                f"{self.steps}, {self.plain_steps}, {self.vectors_alone}"
            )
        if not 0 <= self.weight < math.inf:
            raise InputError(f"walks.weight must be 0 or more, got {self.weight}")
        if self.apart and self.vectors_alone:
            raise InputError(
                "with walks.apart vectors learn alone as it is; leave walks.vectors_alone out"
            )


WALKS_AT_ONCE = 512  # questions: each takes a number for every node, or for every edge


class Walks(nn.Module):
    """Scores from walks: the chance to reach a node, and what the settings add to it.

    reach * log(floor + sum over lengths l of mix_l * chance to be there after l steps)
    + answers * log(1 + facts with the relation asked for that the node is the tail of)
    + edges * log(1 + edges of the node)
    + plain * log(floor + chance to be there on a plain walk), or out, if that does not get there,

    where reach, floor, mix, answers, edges, plain and out depend on the relation asked for. A step
    goes to a neighbour with a chance of preference(relation) / degree, where preferences are
    between 0 and 2; on a plain walk all are 1, and it is personalized PageRank cut off. What is
    learned of preferences may hold in one graph only; plain walks are the same everywhere. The head
    itself counts as not reached.
    """

    weight: float | Tensor  # (): a buffer, which is saved, where it is chosen after training

    def __init__(self, dim: int, settings: WalkSettings, *, generator: torch.Generator) -> None:
        super().__init__()
        num_steps, self.plain_steps = settings.steps, settings.plain_steps
        if settings.choose_weight:
            self.register_buffer("weight", torch.tensor(settings.weight, dtype=torch.float64))
        else:
            self.weight = settings.weight
        self.prefer = nn.ModuleList(linear(dim, dim, generator=generator) for _ in range(num_steps))
        self.mix = linear(dim, num_steps, generator=generator)
        self.weigh = linear(dim, 2, generator=generator)  # reach, floor
        self.weigh_counts = linear(dim, 2, generator=generator) if settings.counts else None
        self.weigh_plain = linear(dim, 2, generator=generator) if settings.plain_steps else None

    def forward(
        self,
        heads: Tensor,  # (batch,)
        asked: Tensor,  # (batch,) the relation of each question
        relations: Tensor,  # (num_relations, dim) all of them, the second half inverses
        ends: EdgeEnds,
        weight: Tensor | None,  # (num_edges,) 0: hidden
        own: OwnEdges | None = None,  # what single questions have beside `ends`
    ) -> Tensor:
        """(batch, num_nodes), to be added to scores; `weight` counts after training."""
        if weight is None:
            weight = relations.new_ones(len(ends.heads.rows))
        ground = Ground(ends, weight, len(heads), own)
        questions = relations.index_select(0, asked)  # (batch, dim)
        reach, log_floor = self.weigh(questions).T[:, None]  # (1, batch) each
        reached = self.reached(heads, questions, relations, ground)
        scores = (1 + reach) * (reached + (LOG_FLOOR + log_floor).exp()).log()
        if self.weigh_counts is not None:
            for_answers, for_edges = self.weigh_counts(questions).T[:, None]
            # Seen from their tails, the facts asked for are edges along the inverse relation.
            inverse = (asked + len(relations) // 2) % len(relations)
            answers = ground.count(inverse, len(relations))
            scores = scores + for_answers * answers.log1p() + for_edges * ground.degree.log1p()
        if self.weigh_plain is not None:
            plain, out = self.weigh_plain(questions).T[:, None]
            chance = self.reached_plainly(heads, ground)
            scores = scores + (1 + plain) * (chance + PLAIN_FLOOR).log() + out * (chance == 0)
        return scores.T if self.training else self.weight * scores.T

    def in_parts(
        self,
        heads: Tensor,
        asked: Tensor,
        relations: Tensor,
        ends: EdgeEnds,
        weight: Tensor | None,
        own: OwnEdges | None = None,
    ) -> Tensor:
        """The same, a few questions at a time, unless a gradient is wanted."""
        at_once = max(1, len(heads)) if torch.is_grad_enabled() else WALKS_AT_ONCE
        parts = []
        for start in range(0, max(1, len(heads)), at_once):
            stop = start + at_once
            few = None if own is None else own.part(start, stop)
            parts.append(self(heads[start:stop], asked[start:stop], relations, ends, weight, few))
        return torch.cat(parts)

    def reached(
        self,
        heads: Tensor,
        questions: Tensor,  # (batch, dim)
        relations: Tensor,
        ground: Ground,
    ) -> Tensor:
        """The chances of being at a node after some steps, added up: (num_nodes, batch)."""
        mix = softplus(self.mix(questions)).T  # (num_steps, batch)
        scale = relations.shape[1] ** -0.5
        preferences = torch.stack(
            [2 * (relations @ prefer(questions).T * scale).sigmoid() for prefer in self.prefer]
        )
        if walks_cpu.can_walk(preferences, mix, ground):
            return walks_cpu.walk(heads, preferences, mix, ground)
        return ground.walk(heads, preferences, mix)

    def reached_plainly(self, heads: Tensor, ground: Ground) -> Tensor:
        """The chances of being at a node on walks without preferences: (num_nodes, batch).

        Nothing of it is learned, so it takes no memory for a gradient.
        """
        with torch.no_grad():
            ground = replace(ground, damping=DAMPING)
            chance = ground.start(heads)
            total = torch.zeros_like(chance)
            for _ in range(self.plain_steps):
                chance = ground.step(chance)
                total = total + chance
            return ((1 - DAMPING) * total).scatter(0, heads[None], 0.0)
