"""The loss of one batch, from a model, sampled negatives and a loss function."""

from collections.abc import Callable
from functools import partial
from typing import Protocol, cast

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, embedding

from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.path_scorers import PathScorer
from nodepiece.decoders.triple_scores import Decoder
from nodepiece.encoders.complex_numbers import moduli
from nodepiece.training.batches import FactBatch, QueryBatch
from nodepiece.training.distribution import current_processes
from nodepiece.training.hidden_edges import HidingGroups
from nodepiece.training.losses import ONE_VS_ALL_LOSSES, SAMPLED_LOSSES, cross_entropy_all
from nodepiece.training.settings import OneVsAllSettings, SampledSettings, TrainingSettings


class FactScorer(Protocol):
    """A model, or an encoded graph, that can score single facts."""

    @property
    def num_nodes(self) -> int: ...

    @property
    def decoder(self) -> Decoder: ...

    def vectors_of(self, nodes: Tensor) -> Tensor: ...

    def vectors_at(self, nodes: Tensor, places: Tensor) -> Tensor: ...

    def relation_vectors(self) -> Tensor: ...


def one_vs_all_loss(
    model: LinkModel,
    batch: QueryBatch,
    training: TrainingSettings,
    settings: OneVsAllSettings = OneVsAllSettings(),
    *,
    hidden: HidingGroups | None = None,  # what the targets of the batch hide
    edge_mask: Tensor | None = None,  # (num_edges,) 0: also hidden from paths and graph layers
) -> Tensor:
    """The loss of every query against every node; node vectors are computed once for the step."""
    followed = first_queries(batch, settings.path_queries)
    if hidden is not None:
        visible = hidden.mask_without(cast(Tensor, (batch if model.layers else followed).edges))
        edge_mask = visible if edge_mask is None else visible * edge_mask
    vectors = model.node_vectors(edge_mask)
    vector_scores = model.score_by_vectors(batch.heads, batch.relations, vectors).float()
    path_scores = model.scorers.all_scores(
        followed.heads, followed.relations, lambda: model.path_graph(edge_mask)
    )
    compute = partial(ONE_VS_ALL_LOSSES[training.loss], smoothing=settings.smoothing)
    if followed is batch:
        loss = loss_with_paths(
            vector_scores,
            path_scores,
            batch.answers,
            batch.sample_weight,
            loss=partial(compute, count=batch.mean_count),
        )
    else:
        loss = compute(vector_scores, batch.answers, batch.sample_weight, count=batch.mean_count)
        for _, scores in path_scores:
            loss = loss + compute(scores.float(), followed.answers, followed.sample_weight)
    if settings.relation_weight or settings.regularization:
        loss = loss + loss_of_answers(model, batch, vectors, settings)
    return loss


def first_queries(batch: QueryBatch, number: int) -> QueryBatch:
    """The first queries of a batch with their answers; 0: all. Shapes do not depend on values.

    Answers of other queries become padding, which repeats the first answer with weight 0.
    """
    if not number or number >= len(batch.heads):
        return batch
    is_in = batch.answers[0] < number
    edges = cast(Tensor, batch.edges)
    return QueryBatch(
        batch.heads[:number],
        batch.relations[:number],
        torch.where(is_in, batch.answers, batch.answers[:, :1]),
        batch.sample_weight * is_in,
        torch.where(is_in, edges, edges[0]),
    )


def loss_with_paths(
    vector_scores: Tensor,  # (batch, num_nodes)
    path_scores: list[tuple[PathScorer, Tensor]],  # each (batch, num_nodes); may be empty
    answers: Tensor,
    sample_weight: Tensor | None = None,
    *,
    loss: Callable[[Tensor, Tensor, Tensor | None], Tensor],  # a OneVsAllLoss with its settings
) -> Tensor:
    """The loss of vectors and path scorers against all nodes.

    It is the loss of the sum of the scores of vectors and of scorers without `separate_losses`,
    plus a loss for each scorer with `separate_losses`, plus for each other scorer the loss of the
    vectors alone times its `vectors_alone`. For answers and sample_weight see `OneVsAllLoss`.
    """
    total, separate = vector_scores, list[Tensor]()
    for scorer, scores in path_scores:
        if scorer.settings.separate_losses:
            separate.append(loss(scores.float(), answers, sample_weight))
            continue
        total = total + scores.float()
        if alone := scorer.settings.vectors_alone:
            separate.append(alone * loss(vector_scores, answers, sample_weight))
    return sum(separate, start=loss(total, answers, sample_weight))


def loss_of_answers(
    model: LinkModel, batch: QueryBatch, vectors: Tensor, settings: OneVsAllSettings
) -> Tensor:
    """Additional losses of the facts: relation prediction, and regularization of their vectors.

    The regularizer is the nuclear 3-norm (N3; Lacroix et al., 2018), of moduli where vectors are
    complex.
    """
    rows, tails = batch.answers
    heads, relations = batch.heads[rows], batch.relations[rows]
    weight = batch.sample_weight
    sample_weight = weight / (weight.sum() if batch.mean_count is None else batch.mean_count)
    loss = torch.zeros((), device=vectors.device)
    if settings.relation_weight:
        scores = model.score_all_relations(heads, tails, vectors)
        losses = cross_entropy(scores.float(), relations, reduction="none")
        loss = loss + settings.relation_weight * (losses * sample_weight).sum()
    if settings.regularization:
        ends = embedding(torch.cat([heads, tails]), vectors)  # its gradient is fast on a GPU
        parts = (ends, embedding(relations, model.relation_vectors()))
        sizes = moduli if model.decoder.is_complex else torch.abs
        of_ends, of_relations = (sizes(part).pow(3).sum(dim=1) for part in parts)
        cubes = of_ends.view(2, -1).sum(dim=0) + of_relations
        loss = loss + settings.regularization * (cubes * sample_weight).sum() / 3
    return loss


def path_loss(
    model: LinkModel,
    batch: FactBatch,
    num_queries: int,
    *,
    hidden: Callable[[], HidingGroups],  # called if a scorer needs it, as it takes memory
) -> Tensor:
    """The loss of the path scorers on the first facts of a batch, against all nodes: ().

    Paths do not use the fact that is asked for. A scorer that has to score every node uses none of
    these facts, nor what is hidden with them.
    """
    heads, relations, tails, edges = (part[:num_queries] for part in batch[:4])
    losses = []
    for scorer in model.scorers.listed():
        loss = scorer.loss_of_facts(heads, relations, tails, model.path_graph())
        if loss is None:
            graph = model.path_graph(hidden().mask_without(edges))
            answers = torch.stack([torch.arange(len(heads), device=heads.device), tails])
            scores = scorer(heads, relations, graph).float()
            loss = cross_entropy_all(scores, answers, smoothing=0.0)
        losses.append(loss)
    return torch.stack(losses).sum()


def sampled_negatives_loss(
    model: FactScorer,
    batch: FactBatch,
    loss: str,
    settings: SampledSettings,
    *,
    generator: torch.Generator,
) -> Tensor:
    """The loss of facts against copies with head or tail replaced by a uniformly drawn node."""
    if settings.shared_negatives:
        scored = scores_with_shared_negatives(
            model, batch, settings.num_negatives, generator=generator
        )
    elif settings.separate_masks:
        nodes, places = corrupted_ends(
            batch, model.num_nodes, settings.num_negatives, generator=generator
        )
        scored = facts_and_negatives(score_ends(model, batch.relations, nodes, places))
    else:
        scored = scores_with_own_negatives(
            model, batch, settings.num_negatives, generator=generator
        )
    return sampled_loss(*scored, batch, loss, settings)


def sampled_loss(
    positive: Tensor, negative: Tensor, batch: FactBatch, loss: str, settings: SampledSettings
) -> Tensor:
    """positive (batch_size,), negative (batch_size, num_negatives) -> (); loss: a name."""
    return SAMPLED_LOSSES[loss](
        positive.float(),
        negative.float(),
        batch.sample_weight,
        margin=settings.margin,
        temperature=settings.temperature,
    )


def scores_with_own_negatives(
    model: FactScorer, batch: FactBatch, num_negatives: int, *, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Scores of facts, (batch_size,), and of separate negatives of each, half tails, half heads."""
    batch_size = len(batch.heads)
    device = batch.heads.device

    def draw(rows: int) -> Tensor:
        shape = (rows, num_negatives)
        return torch.randint(model.num_nodes, shape, generator=generator, device=device)

    drawn = current_processes().own_rows(batch_size, draw)
    nodes = torch.cat([batch.heads, batch.tails, drawn.flatten()])
    vectors = model.vectors_of(nodes)  # encoded together: (batch_size * (2 + num_negatives), dim)
    head, tail, negative = torch.split(vectors, [batch_size, batch_size, drawn.numel()])
    head, tail, negative = head[:, None], tail[:, None], negative.view(*drawn.shape, -1)
    relation = model.relation_vectors().index_select(0, batch.relations)[:, None]
    # One call for the fact and all its negatives: on a GPU the number of kernels decides the time.
    num_tails = (num_negatives + 1) // 2
    heads = torch.cat([head.expand(-1, 1 + num_tails, -1), negative[:, num_tails:]], dim=1)
    unchanged = tail.expand(-1, num_negatives - num_tails, -1)
    tails = torch.cat([tail, negative[:, :num_tails], unchanged], dim=1)
    return facts_and_negatives(model.decoder.score(heads, relation, tails))


def facts_and_negatives(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The first column and the others; the gradient of a split is one copy, of slices several."""
    positive, negative = torch.split(scores, [1, scores.shape[1] - 1], dim=1)
    return positive.squeeze(dim=1), negative


def corrupted_ends(
    batch: FactBatch, num_nodes: int, num_negatives: int, *, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Heads, tails and drawn nodes, and where the ends of facts and negatives are among them.

    (batch_size * (2 + num_negatives),) and (2, batch_size, 1 + num_negatives), heads and then
    tails; the first column has the ends of the fact, the others those of its negatives, of which
    half have another tail and half another head.
    """
    batch_size, device = len(batch.heads), batch.heads.device

    def draw(rows: int) -> Tensor:
        return torch.randint(num_nodes, (rows, num_negatives), generator=generator, device=device)

    drawn = current_processes().own_rows(batch_size, draw)
    position = torch.arange(batch_size * (2 + num_negatives), device=device)
    heads, tails, of_drawn = torch.split(position, [batch_size, batch_size, drawn.numel()])
    of_drawn, shape = of_drawn.view(drawn.shape), (-1, num_negatives)
    heads, tails = heads[:, None], tails[:, None]
    num_tails = (num_negatives + 1) // 2
    ends = (
        [heads, heads.expand(shape)[:, :num_tails], of_drawn[:, num_tails:]],
        [tails, of_drawn[:, :num_tails], tails.expand(shape)[:, num_tails:]],
    )
    places = torch.stack([torch.cat(columns, dim=1) for columns in ends])
    return torch.cat([batch.heads, batch.tails, drawn.flatten()]), places


def score_ends(model: FactScorer, relations: Tensor, nodes: Tensor, places: Tensor) -> Tensor:
    """Scores of facts, each end with dropout masks of its own: (batch_size, n).

    relations: (batch_size,); nodes, places: as in `corrupted_ends`, (2, batch_size, n) places.
    """
    head, tail = model.vectors_at(nodes, places)
    relation = model.relation_vectors().index_select(0, relations)[:, None]
    return model.decoder.score(head, relation, tail)


def scores_with_shared_negatives(
    model: FactScorer, batch: FactBatch, num_negatives: int, *, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Scores of facts, (batch_size,), and of one set of negative tails for the whole batch.

    Heads get negatives too, as a batch contains inverse facts, whose tails they are. Few nodes are
    encoded, and the scores are a matrix product.
    """
    batch_size = len(batch.heads)
    drawn = torch.randint(
        model.num_nodes, (num_negatives,), generator=generator, device=batch.heads.device
    )
    vectors = model.vectors_of(torch.cat([batch.heads, batch.tails, drawn]))
    head, tail, negative = torch.split(vectors, [batch_size, batch_size, num_negatives])
    relation = model.relation_vectors().index_select(0, batch.relations)
    positive = model.decoder.score(head, relation, tail)
    return positive, model.decoder.score_all_tails(head, relation, negative)
