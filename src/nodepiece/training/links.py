"""The trainer of a link model: batches and the loss."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from nodepiece.decoders.link_model import LinkModel
from nodepiece.training.batches import (
    FactBatch,
    FactBatches,
    QueryBatch,
    QueryBatches,
    TargetChoice,
    subsampling_weights,
)
from nodepiece.training.distribution import current_processes
from nodepiece.training.hidden_edges import HidingGroups, hidden_together
from nodepiece.training.losses import SAMPLED_SOFTMAX
from nodepiece.training.objectives import one_vs_all_loss, sampled_negatives_loss
from nodepiece.training.sampled_softmax import sampled_softmax_loss, tail_frequencies
from nodepiece.training.settings import OneVsAllSettings, SampledSettings, TrainingSettings
from nodepiece.training.trainer import Trainer


def link_trainer(
    model: LinkModel,
    edges: Tensor,  # (num_edges, 3) training facts and inverses, on the device of the model
    training: TrainingSettings,
    *,
    one_vs_all: OneVsAllSettings = OneVsAllSettings(),
    sampled: SampledSettings = SampledSettings(),
    generator: torch.Generator,
    edge_mask: Tensor | None = None,  # (num_edges,) 0: hidden from paths; may change between epochs
) -> Trainer[QueryBatch] | Trainer[FactBatch]:
    """A trainer for queries against all nodes, or facts against sampled negatives (by the loss)."""
    if training.is_one_vs_all:
        return Trainer(
            model,
            query_batches(edges, model.num_relations, training.batch_size, one_vs_all),
            partial(
                one_vs_all_loss,
                model,
                training=training,
                settings=one_vs_all,
                hidden=hidden_edges(edges, model.num_nodes, training, one_vs_all),
                edge_mask=edge_mask,
            ),
            training,
            generator=generator,
            after_step=model.after_step,
        )
    return Trainer(
        model,
        fact_batches(edges, model.num_relations, training.batch_size, sampled),
        sampled_objective(model, edges, training.loss, sampled, generator=generator),
        training,
        generator=generator,
        after_step=model.after_step,
    )


def sampled_objective(
    model: LinkModel,
    edges: Tensor,
    loss: str,
    settings: SampledSettings,
    *,
    generator: torch.Generator,
) -> Callable[[FactBatch], Tensor]:
    """The loss of a batch of facts against sampled negatives."""
    if loss != SAMPLED_SOFTMAX:
        return partial(
            sampled_negatives_loss, model, loss=loss, settings=settings, generator=generator
        )
    return partial(
        sampled_softmax_loss,
        model,
        num_negatives=settings.num_negatives,
        frequencies=tail_frequencies(edges, model.num_nodes),
        generator=generator,
    )


def query_batches(
    edges: Tensor, num_relations: int, batch_size: int, settings: OneVsAllSettings
) -> QueryBatches:
    """Batches of queries with all their answers; `batch_size` is that of all processes."""
    processes = current_processes()
    return QueryBatches(
        edges,
        num_relations,
        processes.share(batch_size),
        num_batches=settings.steps_per_epoch or None,
        targets=TargetChoice(settings.target_share, settings.most_targets, settings.query_balance),
        num_processes=processes.count,
        average=processes.average if processes.count > 1 else None,
    )


def hidden_edges(
    edges: Tensor, num_nodes: int, training: TrainingSettings, settings: OneVsAllSettings
) -> HidingGroups | None:
    """What the targets of a batch hide; None without `training.hide_targets`."""
    if not training.hide_targets:
        return None
    return hidden_together(edges, num_nodes, pairs=settings.hide_pairs)


def fact_batches(
    edges: Tensor, num_relations: int, batch_size: int, settings: SampledSettings
) -> FactBatches:
    """Batches of single facts; `batch_size` is that of all processes."""
    processes = current_processes()
    return FactBatches(
        edges,
        processes.share(batch_size),
        num_batches=settings.steps_per_epoch or None,
        sample_weight=subsampling_weights(edges, num_relations) if settings.subsampling else None,
        num_processes=processes.count,
    )
