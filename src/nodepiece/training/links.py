"""The trainer of a link model: batches and the loss."""

from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor

from nodepiece.decoders.link_model import LinkModel
from nodepiece.encoders.rows_in_use import RowsInUse
from nodepiece.errors import InputError
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
from nodepiece.training.objectives import one_vs_all_loss, path_loss, sampled_negatives_loss
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
    model.nodes.rows_in_use = None
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
    batch_size = current_processes().share(training.batch_size)
    return Trainer(
        model,
        fact_batches(edges, model.num_relations, training.batch_size, sampled),
        sampled_objective(model, edges, training, sampled, generator=generator),
        training,
        generator=generator,
        after_step=model.after_step,
        rows_in_use=lazy_tables(model, training.loss, batch_size, sampled),
    )


def lazy_tables(
    model: LinkModel, loss: str, batch_size: int, settings: SampledSettings
) -> list[RowsInUse]:
    """The table of which a step updates only the rows in use, if that is wanted; see `lazy_rows`.

    It is the table of anchors, or of nodes with a lookup encoder.
    """
    nodes = model.nodes
    num_nodes = number_encoded(batch_size, loss, settings)
    num_used = num_nodes * nodes.rows_per_node
    is_wanted = settings.lazy_rows
    if is_wanted is None:
        is_wanted = loss == SAMPLED_SOFTMAX and num_used < len(nodes.start_table)
    reason = why_all_rows(model, num_nodes)
    if settings.lazy_rows and reason:
        raise InputError(f"sampled.lazy_rows = true does not work with {reason}; leave it out")
    nodes.rows_in_use = RowsInUse(nodes.start_table) if is_wanted and not reason else None
    return [] if nodes.rows_in_use is None else [nodes.rows_in_use]


def number_encoded(batch_size: int, loss: str, settings: SampledSettings) -> int:
    """How many nodes a step encodes, heads, tails and negatives."""
    is_shared = loss == SAMPLED_SOFTMAX or settings.shared_negatives
    return 2 * batch_size + settings.num_negatives * (1 if is_shared else batch_size)


def why_all_rows(model: LinkModel, num_nodes: int) -> str:
    """Why a step that encodes `num_nodes` uses all rows of the table; "": it does not."""
    if model.needs_all_nodes:
        return "graph layers or decoder.node_norm, which use all nodes"
    if num_nodes >= model.num_nodes:
        return f"batches of {num_nodes:,} nodes in a graph of {model.num_nodes:,}"
    if not model.nodes.rows_per_node:
        return "tokens without anchors, or this encoder"
    if current_processes().count > 1:
        return "several processes"
    return ""


def sampled_objective(
    model: LinkModel,
    edges: Tensor,
    training: TrainingSettings,
    settings: SampledSettings,
    *,
    generator: torch.Generator,
) -> Callable[[FactBatch], Tensor]:
    """The loss of a batch of facts against sampled negatives, and of path scorers if any."""
    if training.loss != SAMPLED_SOFTMAX:
        return partial(
            sampled_negatives_loss,
            model,
            loss=training.loss,
            settings=settings,
            generator=generator,
        )
    of_vectors = partial(
        sampled_softmax_loss,
        model,
        num_negatives=settings.num_negatives,
        group_size=settings.group_size,
        frequencies=tail_frequencies(edges, model.num_nodes),
        generator=generator,
    )
    processes = current_processes()
    if processes.share(training.batch_size) % (settings.group_size or 1) and processes.count > 1:
        raise InputError(
            f"sampled.group_size = {settings.group_size} must divide the share of a process, "
            f"{processes.share(training.batch_size)} of {training.batch_size} facts; change one"
        )
    if not model.scorers:
        return of_vectors
    if processes.count > 1:
        raise InputError(
            f"{' and '.join(model.scorers)} beside {SAMPLED_SOFTMAX} is for one process; train "
            "with one, or against all nodes, or set walks.steps = 0"
        )
    hidden = cache(partial(hidden_together, edges, model.num_nodes, pairs=False))
    of_paths = partial(path_loss, model, num_queries=settings.path_queries, hidden=hidden)
    return lambda batch: of_vectors(batch) + of_paths(batch)


def query_batches(
    edges: Tensor, num_relations: int, batch_size: int, settings: OneVsAllSettings
) -> QueryBatches:
    """Batches of queries with all their answers; `batch_size` is that of all processes."""
    processes = current_processes()
    least = settings.target_degree
    return QueryBatches(
        edges,
        num_relations,
        processes.share(batch_size),
        num_batches=settings.steps_per_epoch or None,
        targets=TargetChoice(settings.target_share, settings.most_targets, settings.query_balance),
        may_be_target=between_nodes_of_degree(least, edges) if least > 1 else None,
        num_processes=processes.count,
        rank=processes.rank,
        average=processes.average if processes.count > 1 else None,
    )


def between_nodes_of_degree(least: int, edges: Tensor) -> Tensor:
    """Whether both nodes of an edge have so many facts: (num_edges,) bool.

    edges: (num_edges, 3) facts, and then their inverses in the same order.
    """
    head, _, tail = edges[: len(edges) // 2].long().T
    ends = torch.cat([head, tail[head != tail]])  # a fact between a node and itself counts once
    degree = torch.bincount(ends)
    is_between = torch.minimum(degree[head], degree[tail]) >= least
    if not is_between.any():
        raise InputError(
            f"one_vs_all.target_degree = {least} leaves no targets: no fact is between two nodes "
            "of so many facts; choose a smaller one"
        )
    return torch.cat([is_between, is_between])


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
        rank=processes.rank,
    )
