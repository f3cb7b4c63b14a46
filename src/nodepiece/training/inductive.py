"""An inductive model brought together with its batches and its loss.

A fact is asked for as it will be asked for later: in a graph that does not have it. So the
facts of a batch, and their inverses, may be hidden from message passing and from the pieces of
their nodes.
"""

from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from nodepiece.decoders.inductive_model import EncodedGraph, InductiveModel
from nodepiece.encoders.graph_view import GraphView
from nodepiece.training.batches import FactBatch
from nodepiece.training.links import fact_batches
from nodepiece.training.objectives import loss_with_negatives, loss_with_walks
from nodepiece.training.settings import TrainingSettings
from nodepiece.training.trainer import Trainer


def inductive_trainer(
    model: InductiveModel,  # with a training view
    edges: Tensor,  # (num_edges, 3) facts of the training graph and then their inverses
    settings: TrainingSettings,
    *,
    generator: torch.Generator,
) -> Trainer[FactBatch]:
    if model.training_view is None:
        raise ValueError("the model has no training_view; set it with look_at")
    loss = partial(
        loss_of_targets, model, model.training_view, settings=settings, generator=generator
    )
    return Trainer(
        model,
        fact_batches(edges, 2 * model.num_known, settings),
        loss,
        settings,
        generator=generator,
        after_step=model.after_step,
    )


def loss_of_targets(
    model: InductiveModel,
    view: GraphView,
    batch: FactBatch,
    *,
    settings: TrainingSettings,
    generator: torch.Generator,
) -> Tensor:
    """All nodes are encoded in every step; each fact of the batch is then a question of its own."""
    weight = view.weights_without(batch.edges) if settings.hide_targets else None
    graph = model.encode(view, weight)
    if settings.is_against_all:
        return loss_against_all_nodes(model, graph, batch, settings)
    return loss_with_negatives(graph, batch, settings, generator=generator)


def loss_against_all_nodes(
    model: InductiveModel, graph: EncodedGraph, facts: FactBatch, settings: TrainingSettings
) -> Tensor:
    rows = torch.arange(len(facts.heads), device=facts.heads.device)
    by_vectors = model.score_by_vectors(facts.heads, facts.relations, graph).float()
    walked = None
    if model.walks is not None:
        walked = model.walk(facts.heads, facts.relations, graph).float()
    loss = loss_with_walks(
        by_vectors,
        walked,
        torch.stack([rows, facts.tails]),
        walks=model.walk_settings,
        settings=settings,
    )
    if settings.relation_weight:
        of_relations = model.score_all_relations(facts.heads, facts.tails, graph).float()
        loss = loss + settings.relation_weight * cross_entropy(of_relations, facts.relations)
    return loss
