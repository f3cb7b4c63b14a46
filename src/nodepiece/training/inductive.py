"""The trainer of an inductive model: batches and the loss.

In evaluation the fact of a query is not in the graph. So in training the facts of a batch, and
their inverses, may be hidden from message passing and from the pieces of their nodes.
"""

from functools import partial
from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from nodepiece.decoders.inductive_model import EncodedGraph, InductiveModel
from nodepiece.encoders.graph_view import GraphView
from nodepiece.training.batches import FactBatch, QueryBatch
from nodepiece.training.hidden_edges import HidingGroups
from nodepiece.training.links import fact_batches, hidden_edges, query_batches
from nodepiece.training.losses import LOSSES_OF_ALL_ANSWERS, ONE_VS_ALL_LOSSES
from nodepiece.training.objectives import (
    corrupted_ends,
    facts_and_negatives,
    loss_with_paths,
    sampled_loss,
    sampled_negatives_loss,
    score_ends,
)
from nodepiece.training.settings import OneVsAllSettings, SampledSettings, TrainingSettings
from nodepiece.training.trainer import Trainer

NEGATIVES_IN_A_PASS = 3000  # of `sampled.separate_masks`, as published


def inductive_trainer(
    model: InductiveModel,  # with a training view
    edges: Tensor,  # (num_edges, 3) facts of the training graph and then their inverses
    training: TrainingSettings,
    *,
    one_vs_all: OneVsAllSettings = OneVsAllSettings(),
    sampled: SampledSettings = SampledSettings(),
    generator: torch.Generator,
) -> Trainer[FactBatch] | Trainer[QueryBatch]:
    """A trainer for single facts, or for queries with all answers where the loss needs them."""
    if model.training_view is None:
        raise ValueError("the model has no training_view; set it before")
    loss = partial(
        loss_of_targets,
        model,
        model.training_view,
        training=training,
        one_vs_all=one_vs_all,
        sampled=sampled,
        hidden=hidden_edges(edges, model.training_view.num_nodes, training, one_vs_all),
        generator=generator,
    )
    num_relations = 2 * model.num_known
    if training.loss in LOSSES_OF_ALL_ANSWERS:
        return Trainer(
            model,
            query_batches(edges, num_relations, training.batch_size, one_vs_all),
            loss,
            training,
            generator=generator,
            after_step=model.after_step,
        )
    return Trainer(
        model,
        fact_batches(edges, num_relations, training.batch_size, sampled),
        loss,
        training,
        generator=generator,
        after_step=model.after_step,
    )


def loss_of_targets(
    model: InductiveModel,
    view: GraphView,
    batch: FactBatch | QueryBatch,
    *,
    training: TrainingSettings,
    one_vs_all: OneVsAllSettings,
    sampled: SampledSettings,
    hidden: HidingGroups | None,
    generator: torch.Generator,
) -> Tensor:
    """The loss of a batch of facts or queries; all nodes are encoded in every step."""
    edge_mask = None if hidden is None else hidden.mask_without(cast(Tensor, batch.edges))
    if isinstance(batch, FactBatch) and sampled.separate_masks and not training.is_one_vs_all:
        nodes, places = corrupted_ends(
            batch, view.num_nodes, sampled.num_negatives, generator=generator
        )
        scores = scores_in_passes(model, view, edge_mask, batch.relations, nodes, places)
        return sampled_loss(*facts_and_negatives(scores), batch, training.loss, sampled)
    graph = model.encode(view, edge_mask)
    if isinstance(batch, QueryBatch) or training.is_one_vs_all:
        return one_vs_all_loss_of(model, graph, batch, training.loss, one_vs_all)
    return sampled_negatives_loss(graph, batch, training.loss, sampled, generator=generator)


def scores_in_passes(
    model: InductiveModel,
    view: GraphView,
    edge_mask: Tensor | None,
    relations: Tensor,  # (batch_size,)
    nodes: Tensor,
    places: Tensor,  # of heads and tails among `nodes`: (2, batch_size, 1 + num_negatives)
) -> Tensor:
    """Scores of facts and of their negatives, with new dropout masks for facts and each part.

    A part is up to NEGATIVES_IN_A_PASS negatives, as many of each fact. Every pass updates the
    running means of BatchNorm.
    """
    _, batch_size, num_columns = places.shape
    width = max(1, NEGATIVES_IN_A_PASS // batch_size)
    columns = [slice(0, 1)] + [slice(at, at + width) for at in range(1, num_columns, width)]
    scores = [
        score_ends(model.encode(view, edge_mask), relations, nodes, places[:, :, part])
        for part in columns
    ]
    return torch.cat(scores, dim=1)


def one_vs_all_loss_of(
    model: InductiveModel,
    graph: EncodedGraph,
    batch: FactBatch | QueryBatch,
    name: str,  # of the loss
    settings: OneVsAllSettings,
) -> Tensor:
    answers, sample_weight, count = answers_of(batch)
    loss = loss_with_paths(
        model.score_by_vectors(batch.heads, batch.relations, graph).float(),
        model.scorers.all_scores(batch.heads, batch.relations, graph.path_graph),
        answers,
        sample_weight,
        loss=partial(ONE_VS_ALL_LOSSES[name], smoothing=settings.smoothing, count=count),
    )
    if settings.relation_weight:
        rows, tails = answers
        scores = model.score_all_relations(batch.heads[rows], tails, graph).float()
        losses = cross_entropy(scores, batch.relations[rows], reduction="none")
        if sample_weight is None:
            return loss + settings.relation_weight * losses.mean()
        total = sample_weight.sum() if count is None else count
        loss = loss + settings.relation_weight * (losses * sample_weight).sum() / total
    return loss


def answers_of(batch: FactBatch | QueryBatch) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Answers, their weights and the sum of these, as a `OneVsAllLoss` takes them.

    A fact is a query with one answer.
    """
    if isinstance(batch, QueryBatch):
        return batch.answers, batch.sample_weight, batch.mean_count
    rows = torch.arange(len(batch.heads), device=batch.heads.device)
    return torch.stack([rows, batch.tails]), None, None
