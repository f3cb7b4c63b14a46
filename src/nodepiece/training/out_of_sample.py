"""Training for out-of-sample nodes: with masked nodes, or with some facts hidden."""

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import embedding

from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.unseen_nodes import neighbour_sums
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.training.batches import Batches, FactBatch
from nodepiece.training.distribution import current_processes
from nodepiece.training.links import fact_batches
from nodepiece.training.objectives import sampled_loss
from nodepiece.training.settings import SampledSettings, TrainingSettings
from nodepiece.training.trainer import Trainer

Batch = TypeVar("Batch")


class ChosenBatches(Generic[Batch]):
    """Batches of facts that are chosen again before every epoch; their number does not change."""

    capacity = 0  # depends on the facts of an epoch only

    def __init__(self, make: Callable[[Tensor], Batches[Batch]], edges: Tensor) -> None:
        # edges: (num_edges, 3), of the first epoch
        self._make, self._batches = make, make(edges)

    def choose(self, edges: Tensor) -> None:
        """Train on these edges from now on: (num_edges, 3), inverses included."""
        self._batches = self._make(edges)

    @property
    def num_batches(self) -> int:
        return self._batches.num_batches

    @property
    def facts_per_step(self) -> float:
        return self._batches.facts_per_step

    def reserve(self, capacity: int) -> None:
        pass

    def start_epoch(self, *, generator: torch.Generator) -> bool:
        """Prepare an epoch. Returns True: a step captured with other facts must be discarded."""
        self._batches.start_epoch(generator=generator)
        return True

    def take(self, step: Tensor) -> Batch:
        return self._batches.take(step)


def masking_trainer(
    model: LinkModel,
    edges: Tensor,
    training: TrainingSettings,
    sampled: SampledSettings,
    *,
    mask_share: float,
    generator: torch.Generator,
) -> Trainer[FactBatch]:
    """The trainer of oDistMult: a vector for every node, trained with masked nodes."""
    edge_index = EdgeIndex(edges, model.num_nodes, model.num_relations)
    degrees = torch.bincount(edges[:, 0].long(), minlength=model.num_nodes)
    return Trainer(
        model,
        fact_batches(edges, model.num_relations, training.batch_size, sampled),
        partial(
            loss_with_masked_nodes,
            model,
            loss=training.loss,
            settings=sampled,
            mask_share=mask_share,
            edge_index=edge_index,
            degrees=degrees,
            generator=generator,
        ),
        training,
        generator=generator,
        after_step=model.after_step,
    )


def loss_with_masked_nodes(
    model: LinkModel,
    batch: FactBatch,
    *,
    loss: str,
    settings: SampledSettings,
    mask_share: float,
    edge_index: EdgeIndex,
    degrees: Tensor,  # (num_nodes,) edges of each node
    generator: torch.Generator,
) -> Tensor:
    """The loss of facts against negative tails, with the head or tail of some facts masked.

    With probability mask_share / 2 each, the head or the tail is replaced by the average over its
    other edges (Albooyeh et al., 2020). A batch contains inverse facts, so heads get negatives too.
    """
    vectors, relations = model.node_vectors(), model.relation_vectors()
    sums = neighbour_sums(vectors, relations, edge_index)
    device, num_facts = batch.heads.device, len(batch.heads)
    half = model.num_relations // 2
    forth = embedding(batch.relations, relations)
    back = embedding((batch.relations + half) % model.num_relations, relations)
    head, tail = embedding(batch.heads, vectors), embedding(batch.tails, vectors)
    others = (degrees - 1).clamp_min(1)[:, None]
    head_seen = (embedding(batch.heads, sums) - forth * tail) / others[batch.heads]
    tail_seen = (embedding(batch.tails, sums) - back * head) / others[batch.tails]
    processes = current_processes()
    draw = processes.own_rows(
        num_facts, lambda rows: torch.rand(rows, 1, generator=generator, device=device)
    )
    limit = mask_share / 2
    head = torch.where(draw < limit, head_seen, head)
    tail = torch.where((draw >= limit) & (draw < 2 * limit), tail_seen, tail)

    def draw_nodes(rows: int) -> Tensor:
        shape = (rows, settings.num_negatives)
        return torch.randint(model.num_nodes, shape, generator=generator, device=device)

    drawn = processes.own_rows(num_facts, draw_nodes)
    positive = model.decoder.score(head, forth, tail)
    negative = model.decoder.score(head[:, None], forth[:, None], embedding(drawn, vectors))
    return sampled_loss(positive, negative, batch, loss, settings)
