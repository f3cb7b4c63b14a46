"""Batches of training, prepared for a whole epoch on the device of the model.

A step takes its batch by a counter on the device and gets tensors whose shapes never change, so
that the step can be captured once and replayed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

Batch_co = TypeVar("Batch_co", covariant=True)


class Batches(Protocol[Batch_co]):
    """The batches of an epoch, as a Trainer needs them."""

    @property
    def num_batches(self) -> int:
        """The number of steps in an epoch."""

    @property
    def facts_per_step(self) -> float:
        """How many facts (of labels: nodes) a step learns from, on average; for progress."""

    @property
    def capacity(self) -> int:
        """The length of the padded part of a batch that varies between epochs; 0: none does."""

    def reserve(self, capacity: int) -> None:
        """Allocate at least this capacity, so that a resumed run has as much as before."""

    def start_epoch(self, *, generator: torch.Generator) -> bool:
        """Prepare the batches of an epoch. Returns whether their shapes changed."""

    def take(self, step: Tensor) -> Batch_co:
        """The batch of a step; step (1,) is on the device, and the host does not read its value."""


class QueryBatch(NamedTuple):
    """Queries and all their answers, for training against all nodes."""

    heads: Tensor  # (batch_size,)
    relations: Tensor  # (batch_size,)
    answers: Tensor  # (2, capacity) rows of the batch and nodes
    sample_weight: Tensor  # (capacity,) of targets; 0 for other answers and padding
    edges: Tensor | None = None  # (capacity,) ids of the targets' training edges; num_edges: none
    mean_count: Tensor | None = None  # () sum of weights, over the processes; None: there is one


class FactBatch(NamedTuple):
    """Facts, each a separate query, and their ids among the training edges."""

    heads: Tensor  # (batch_size,)
    relations: Tensor
    tails: Tensor
    edges: Tensor
    sample_weight: Tensor | None = None  # (batch_size,) how much each counts, 1 on average; None: 1
    other_tails: Tensor | None = None  # of the facts of all other processes; None: there is one


@dataclass(frozen=True)
class TargetChoice:
    """Which answers of a query are its targets in an epoch, and how much each counts."""

    share: float = 1.0  # of the answers of a query, at least one
    most: int = 0  # of a query; 0: no limit
    balance: float = 0.0  # a target weighs (targets of its query) ** -balance

    @property
    def takes_all(self) -> bool:
        return self.share == 1 and not self.most

    def counts(self, num_answers: Tensor) -> Tensor:
        """The number of targets of queries with so many answers each."""
        chosen = (num_answers * self.share).round().long().clamp_min(1)
        return chosen.clamp_max(self.most) if self.most else chosen


ALL_TARGETS = TargetChoice()


class QueryBatches:
    """The distinct (head, relation) pairs of the training facts, shuffled each epoch.

    The last batch of an epoch is filled up with the first queries of the same shuffle. With
    `num_batches` an epoch is this many batches of queries drawn at random.
    """

    def __init__(
        self,
        edges: Tensor,  # (num_edges, 3), inverses included
        num_relations: int,
        batch_size: int,
        *,
        num_batches: int | None = None,
        targets: TargetChoice = ALL_TARGETS,
        may_be_target: Tensor | None = None,  # (num_edges,) bool; None: every edge
        num_processes: int = 1,  # that share an epoch
        rank: int = 0,  # of this process
        average: Callable[[list[Tensor]], None] | None = None,  # over them, in place; None: one
    ) -> None:
        head, relation, tail = edges.long().T
        key = head * num_relations + relation
        if may_be_target is None:
            key, order = torch.sort(key, stable=True)
        else:  # of the answers of a query, those that may be targets come first
            key, order = torch.sort(2 * key + ~may_be_target, stable=True)
            key = key // 2
        pairs, counts = torch.unique_consecutive(key, return_counts=True)
        starts = counts.cumsum(0) - counts
        self.tails, self.order = tail[order].int(), order
        self.eligible: Tensor | None = None  # (num_queries,) how many answers may be targets
        if may_be_target is not None:
            total = torch.cat([starts.new_zeros(1), may_be_target[order].long().cumsum(0)])
            eligible = total[starts + counts] - total[starts]
            asked = eligible > 0
            pairs, counts, starts = pairs[asked], counts[asked], starts[asked]
            self.eligible = eligible[asked]
        self.heads, self.relations = pairs // num_relations, pairs % num_relations
        self.counts, self.starts = counts, starts
        self.batch_size, self.num_processes, self.rank = batch_size, num_processes, rank
        self.num_batches = num_batches or -(-len(pairs) // (batch_size * num_processes))
        num_facts = len(edges) if self.eligible is None else int(self.eligible.sum())
        self.facts_per_step = batch_size * num_processes * num_facts / len(pairs)
        self.targets, self.capacity = targets, 0
        self.average = average
        self.mean_counts = torch.zeros(self.num_batches, device=edges.device)

    def start_epoch(self, *, generator: torch.Generator) -> bool:
        """Shuffle. Returns whether shapes changed: an epoch may need more capacity for answers.

        Every process draws what one process would, and takes its part of each batch.
        """
        device = self.tails.device
        num_slots = self.num_batches * self.batch_size * self.num_processes
        shuffle = torch.randperm(len(self.counts), generator=generator, device=device)
        pairs = shuffle[torch.arange(num_slots, device=device) % len(shuffle)]
        self.pairs = self._own(pairs)
        counts = self.counts[self.pairs]  # (num_slots,)
        num_answers = counts.view(self.num_batches, -1).sum(dim=1)
        needed = int(num_answers.max())
        grew = needed > self.capacity
        if grew:
            self.reserve(needed + needed // 4)
        self._write_epoch(counts, self._draw_targets(pairs, generator))
        if self.average is not None:
            self.mean_counts.copy_(self.sample_weight.sum(dim=1))
            self.average([self.mean_counts])
        return grew

    def reserve(self, capacity: int) -> None:
        """Allocate space for this many answers per batch.

        Sums over more padding may round differently, so a resumed run needs the same capacity.
        """
        self.capacity, device = capacity, self.tails.device
        shape = (self.num_batches, capacity)
        self.rows = torch.empty(shape, dtype=torch.int32, device=device)
        self.nodes, self.sample_weight = (
            torch.empty_like(self.rows),
            torch.empty(shape, device=device),
        )
        self.edges = torch.empty(shape, dtype=torch.int64, device=device)
        self.queries = torch.empty(self.num_batches, self.batch_size, 2, device=device).long()

    def _own(self, slots: Tensor) -> Tensor:
        """The part of this process of the slots of all processes, batch by batch."""
        return slots.view(self.num_batches, self.num_processes, -1)[:, self.rank].flatten()

    def _draw_targets(self, pairs: Tensor, generator: torch.Generator) -> Tensor | None:
        """Which answers of this process are targets; None: all. pairs: of all processes."""
        if self.targets.takes_all and self.eligible is None:
            return None
        counts = self.counts[pairs]
        number = torch.arange(len(counts), device=counts.device)
        slot = torch.repeat_interleave(number, counts)
        group, first = slot, counts.cumsum(0) - counts
        if self.eligible is not None:  # the other answers of a query rank after these
            place = torch.arange(len(slot), device=slot.device) - first[slot]
            group = 2 * slot + (place >= self.eligible[pairs][slot])
            first = first.repeat_interleave(2)
        order = rank_at_random(group, first, generator=generator)
        is_target = order < self._num_targets(pairs)[slot]
        is_own = slot // self.batch_size % self.num_processes == self.rank
        return is_target[is_own]

    def _num_targets(self, pairs: Tensor) -> Tensor:
        """The number of targets of each query."""
        return self.targets.counts((self.counts if self.eligible is None else self.eligible)[pairs])

    def _write_epoch(self, counts: Tensor, is_target: Tensor | None) -> None:
        """Write the answers of all batches to the buffers of the epoch."""
        device = counts.device
        slot = torch.repeat_interleave(torch.arange(len(counts), device=device), counts)
        answer = torch.arange(len(slot), device=device)
        first = counts.cumsum(0) - counts  # (num_slots,) answer at which each query begins
        batch = slot // self.batch_size
        column = answer - first[batch * self.batch_size]
        place = self.starts[self.pairs[slot]] + answer - first[slot]
        self.rows.zero_()  # padding repeats the first answer of the first query
        self.nodes.copy_(self.tails[self.starts[self.pairs[:: self.batch_size]]][:, None])
        self.rows[batch, column] = (slot % self.batch_size).int()
        self.nodes[batch, column] = self.tails[place]
        weight = (self._num_targets(self.pairs).float() ** -self.targets.balance)[slot]
        edges = self.order[place]
        if is_target is not None:
            weight = weight * is_target
            edges = torch.where(is_target, edges, len(self.order))
        self.sample_weight.zero_()
        self.sample_weight[batch, column] = weight
        self.edges.fill_(len(self.order))
        self.edges[batch, column] = edges
        queries = torch.stack([self.heads[self.pairs], self.relations[self.pairs]], dim=1)
        self.queries.copy_(queries.view_as(self.queries))

    def take(self, step: Tensor) -> QueryBatch:
        # step: (1,) on the device
        heads, relations = self.queries.index_select(0, step)[0].unbind(dim=1)
        rows, nodes = self.rows.index_select(0, step), self.nodes.index_select(0, step)
        answers = torch.cat([rows, nodes])
        sample_weight, edges = (
            rows.index_select(0, step)[0] for rows in (self.sample_weight, self.edges)
        )
        mean_count = None if self.average is None else self.mean_counts.index_select(0, step)[0]
        return QueryBatch(heads, relations, answers, sample_weight, edges, mean_count)


class FactBatches:
    """The training facts and their inverses, shuffled each epoch; the last batch is filled up.

    With `num_batches` an epoch is this many batches of facts drawn at random with replacement.
    """

    def __init__(
        self,
        edges: Tensor,  # (num_edges, 3)
        batch_size: int,
        *,
        num_batches: int | None = None,
        sample_weight: Tensor | None = None,  # (num_edges,) how much each fact counts
        num_processes: int = 1,  # that share an epoch
        rank: int = 0,  # of this process
    ) -> None:
        self.edges, self.sample_weight, self.is_drawn = (
            edges,
            sample_weight,
            num_batches is not None,
        )
        self.rank = rank
        self.num_batches = num_batches or -(-len(edges) // (batch_size * num_processes))
        shape = (self.num_batches, num_processes, batch_size)  # every process draws all
        self.chosen = torch.empty(shape, dtype=torch.int64, device=edges.device)
        self.facts_per_step = batch_size * num_processes
        self.capacity = 0  # all batches have the same shape

    def reserve(self, capacity: int) -> None:
        pass

    def start_epoch(self, *, generator: torch.Generator) -> bool:
        device, num_edges = self.edges.device, len(self.edges)
        if self.is_drawn:
            self.chosen.random_(num_edges, generator=generator)
            return False
        chosen = self.chosen.view(-1)
        chosen[:num_edges] = torch.randperm(num_edges, generator=generator, device=device)
        num_filled = len(chosen) - num_edges
        chosen[num_edges:] = chosen[torch.arange(num_filled, device=device) % num_edges]
        return False

    def take(self, step: Tensor) -> FactBatch:
        everyone = self.chosen.index_select(0, step)[0]  # (num_processes, batch_size)
        chosen = everyone[self.rank]
        heads, relations, tails = self.edges.index_select(0, chosen).long().unbind(dim=1)
        sample_weight = (
            None if self.sample_weight is None else self.sample_weight.index_select(0, chosen)
        )
        others = torch.cat([everyone[: self.rank], everyone[self.rank + 1 :]]).flatten()
        other_tails = self.edges[:, 2].index_select(0, others).long() if len(others) else None
        return FactBatch(heads, relations, tails, chosen, sample_weight, other_tails)


def rank_at_random(group: Tensor, first: Tensor, *, generator: torch.Generator) -> Tensor:
    """A random order within each group: (num_members,) from 0 on.

    group: (num_members,) ascending; first: (num_groups,) the first member of each.
    """
    draw = torch.rand(len(group), generator=generator, device=group.device, dtype=torch.float64)
    order = torch.argsort(group + draw)  # members stay in their group
    rank = torch.empty_like(group)
    rank[order] = torch.arange(len(group), device=group.device) - first[group]
    return rank


def subsampling_weights(edges: Tensor, num_relations: int) -> Tensor:
    """The weight of each fact, smaller if many facts share its head and relation: (num_edges,).

    1 / sqrt(8 + number of these facts), scaled to a mean of 1. The 8 is from the published code,
    which starts counting at 4, both for the head and for the tail.
    """
    head, relation, _ = edges.long().T
    key, order = torch.sort(head * num_relations + relation)
    _, place, counts = torch.unique_consecutive(key, return_inverse=True, return_counts=True)
    sample_weight = torch.empty(len(edges), device=edges.device)
    sample_weight[order] = (8 + counts).rsqrt()[place]
    return sample_weight / sample_weight.mean()
