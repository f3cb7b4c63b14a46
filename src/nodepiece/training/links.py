"""The trainer of a link model: batches and the loss."""

from functools import partial

import torch
from torch import Tensor

from nodepiece.decoders.link_model import LinkModel
from nodepiece.training.batches import (
    FactBatch,
    FactBatches,
    QueryBatch,
    QueryBatches,
    subsampling_weights,
)
from nodepiece.training.distribution import current_processes
from nodepiece.training.objectives import one_vs_all_loss, sampled_negatives_loss
from nodepiece.training.settings import TrainingSettings
from nodepiece.training.trainer import Trainer


def link_trainer(
    model: LinkModel,
    edges: Tensor,  # (num_edges, 3) training facts and inverses, on the device of the model
    settings: TrainingSettings,
    *,
    generator: torch.Generator,
    edge_mask: Tensor | None = None,  # (num_edges,) 0: hidden from walks; may change between epochs
) -> Trainer[QueryBatch] | Trainer[FactBatch]:
    """A trainer for queries against all nodes, or facts against sampled negatives (by the loss)."""
    if settings.is_one_vs_all:
        return Trainer(
            model,
            query_batches(edges, model.num_relations, settings),
            partial(one_vs_all_loss, model, settings=settings, edge_mask=edge_mask),
            settings,
            generator=generator,
            after_step=model.after_step,
        )
    return Trainer(
        model,
        fact_batches(edges, model.num_relations, settings),
        partial(sampled_negatives_loss, model, settings=settings, generator=generator),
        settings,
        generator=generator,
        after_step=model.after_step,
    )


def query_batches(edges: Tensor, num_relations: int, settings: TrainingSettings) -> QueryBatches:
    processes = current_processes()
    batch_size = processes.share(settings.batch_size)
    return QueryBatches(
        edges,
        num_relations,
        batch_size,
        num_processes=processes.count,
        average=processes.average if processes.count > 1 else None,
    )


def fact_batches(edges: Tensor, num_relations: int, settings: TrainingSettings) -> FactBatches:
    processes = current_processes()
    return FactBatches(
        edges,
        processes.share(settings.batch_size),
        num_batches=settings.steps_per_epoch or None,
        sample_weight=subsampling_weights(edges, num_relations) if settings.subsampling else None,
        num_processes=processes.count,
    )
