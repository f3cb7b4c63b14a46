"""The trainer of an inductive model: batches and the loss.

In evaluation the fact of a query is not in the graph. So in training the facts of a batch, and
their inverses, may be hidden from message passing and from the pieces of their nodes.
"""

from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from nodepiece.decoders.inductive_model import EncodedGraph, InductiveModel
from nodepiece.encoders.graph_view import GraphView
from nodepiece.training.batches import FactBatch
from nodepiece.training.links import fact_batches
from nodepiece.training.losses import ONE_VS_ALL_LOSSES
from nodepiece.training.objectives import loss_with_paths, sampled_negatives_loss
from nodepiece.training.settings import OneVsAllSettings, SampledSettings, TrainingSettings
from nodepiece.training.trainer import Trainer


def inductive_trainer(
    model: InductiveModel,  # with a training view
    edges: Tensor,  # (num_edges, 3) facts of the training graph and then their inverses
    training: TrainingSettings,
    *,
    one_vs_all: OneVsAllSettings = OneVsAllSettings(),
    sampled: SampledSettings = SampledSettings(),
    generator: torch.Generator,
) -> Trainer[FactBatch]:
    if model.training_view is None:
        raise ValueError("the model has no training_view; set it with look_at")
    loss = partial(
        loss_of_targets,
        model,
        model.training_view,
        training=training,
        one_vs_all=one_vs_all,
        sampled=sampled,
        generator=generator,
    )
    return Trainer(
        model,
        fact_batches(edges, 2 * model.num_known, training.batch_size, sampled),
        loss,
        training,
        generator=generator,
        after_step=model.after_step,
    )


def loss_of_targets(
    model: InductiveModel,
    view: GraphView,
    batch: FactBatch,
    *,
    training: TrainingSettings,
    one_vs_all: OneVsAllSettings,
    sampled: SampledSettings,
    generator: torch.Generator,
) -> Tensor:
    """The loss of a batch of facts, each a separate query; all nodes are encoded in every step."""
    edge_mask = view.edge_mask_without(batch.edges) if training.hide_targets else None
    graph = model.encode(view, edge_mask)
    if training.is_one_vs_all:
        return one_vs_all_loss_of_facts(model, graph, batch, training.loss, one_vs_all)
    return sampled_negatives_loss(graph, batch, training.loss, sampled, generator=generator)


def one_vs_all_loss_of_facts(
    model: InductiveModel,
    graph: EncodedGraph,
    facts: FactBatch,
    name: str,  # of the loss
    settings: OneVsAllSettings,
) -> Tensor:
    rows = torch.arange(len(facts.heads), device=facts.heads.device)
    vector_scores = model.score_by_vectors(facts.heads, facts.relations, graph).float()
    loss = loss_with_paths(
        vector_scores,
        model.scorers.all_scores(facts.heads, facts.relations, graph.path_graph),
        torch.stack([rows, facts.tails]),
        loss=partial(ONE_VS_ALL_LOSSES[name], smoothing=settings.smoothing),
    )
    if settings.relation_weight:
        of_relations = model.score_all_relations(facts.heads, facts.tails, graph).float()
        loss = loss + settings.relation_weight * cross_entropy(of_relations, facts.relations)
    return loss
