"""A link model brought together with its batches and its loss."""

from functools import partial

import torch
from torch import Tensor

from nodepiece.decoders.link_model import LinkModel
from nodepiece.training.batches import FactBatch, FactBatches, QueryBatch, QueryBatches
from nodepiece.training.objectives import loss_against_all, loss_with_negatives
from nodepiece.training.settings import TrainingSettings
from nodepiece.training.trainer import Trainer


def link_trainer(
    model: LinkModel,
    edges: Tensor,  # (num_edges, 3) training facts and inverses, on the device of the model
    settings: TrainingSettings,
    *,
    generator: torch.Generator,
) -> Trainer[QueryBatch] | Trainer[FactBatch]:
    """Queries against all nodes, or facts against sampled negatives, as the loss asks for."""
    if settings.is_against_all:
        return Trainer(
            model,
            QueryBatches(edges, model.num_relations, settings.batch_size),
            partial(loss_against_all, model, settings=settings),
            settings,
            generator=generator,
            after_step=model.after_step,
        )
    return Trainer(
        model,
        FactBatches(edges, settings.batch_size),
        partial(loss_with_negatives, model, settings=settings, generator=generator),
        settings,
        generator=generator,
        after_step=model.after_step,
    )
