"""Ranking against a few randomly drawn nodes, several times (Teru et al., 2020).

The rank of a fact depends on the draw. So there are several draws, and the mean over them is
reported, with their standard deviation.
"""

import numpy as np
import torch
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.evaluation.known_answers import KnownAnswers
from nodepiece.evaluation.metrics import report_links
from nodepiece.evaluation.ranking import LinkRanks, Progress, ScoreAll, rank_links
from nodepiece.evaluation.report import Report, Scores
from nodepiece.evaluation.sampled_ranking import ranks_of_first
from nodepiece.graph.arrays import FloatArray, IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses

LEFT_OUT = -1  # in place of a negative that is a known answer


def sample_negatives(
    queries: IntArray,  # (num_queries, 3): head, relation and the answer, inverses included
    known: KnownAnswers,  # from `known_tails`: the answers are among them
    shape: tuple[int, int],  # num_draws, num_negatives
    *,
    rng: np.random.Generator,
) -> IntArray:
    """Uniformly drawn nodes that are not known answers: (num_queries, *shape)."""
    start, count = known.find(queries[:, 0], queries[:, 1])
    negatives = np.empty((len(queries), *shape), dtype=np.int32)
    for row, (first, number) in enumerate(zip(start, count, strict=True)):
        answers = known.answers[first : first + number]
        _refuse_if_full(queries[row], answers, known.num_nodes)
        negatives[row] = _draw_others(answers, known.num_nodes, shape, rng=rng)
    return negatives


def sample_with_known(
    queries: IntArray,
    known: KnownAnswers,
    in_graph: KnownAnswers,  # those of the inference graph alone
    shape: tuple[int, int],
    *,
    rng: np.random.Generator,
) -> IntArray:
    """Uniformly drawn nodes that are neither the answer nor answers in the graph, as published.

    Those that are known answers by other splits are then left out, so some queries have fewer.
    """
    start, count = in_graph.find(queries[:, 0], queries[:, 1])
    negatives = np.empty((len(queries), *shape), dtype=np.int32)
    for row, (first, number) in enumerate(zip(start, count, strict=True)):
        answers = np.union1d(in_graph.answers[first : first + number], queries[row, 2:])
        _refuse_if_full(queries[row], answers, known.num_nodes)
        negatives[row] = _draw_others(answers, known.num_nodes, shape, rng=rng)
    drawn = np.repeat(queries, shape[0] * shape[1], axis=0)
    drawn[:, 2] = negatives.reshape(-1)
    is_known = known.contains(drawn).reshape(negatives.shape)
    return np.where(is_known, np.int32(LEFT_OUT), negatives)


def _draw_others(
    answers: IntArray, num_nodes: int, shape: tuple[int, int], *, rng: np.random.Generator
) -> IntArray:
    """Nodes drawn uniformly from all but these, which are ascending and distinct."""
    place = rng.integers(num_nodes - len(answers), size=shape)
    # The j-th node that is not an answer comes after all answers that have at most j other nodes
    # before them.
    others: IntArray = place + np.searchsorted(answers - np.arange(len(answers)), place, "right")
    return others


def _refuse_if_full(query: IntArray, answers: IntArray, num_nodes: int) -> None:
    if len(answers) >= num_nodes:
        raise InputError(
            f"all nodes are known answers to {query[:2].tolist()}: there is nothing to draw; "
            "remove the facts of this node and relation from the split"
        )


def rank_among_sampled(
    score_tails: ScoreAll,
    triples: IntArray,
    # (2 * num_triples, num_draws, num_negatives): in place of tails, of heads; or LEFT_OUT
    negatives: IntArray,
    known: KnownAnswers,
    *,
    memory_budget: int,
    device: torch.device | str,
    progress: Progress | None = None,
) -> tuple[list[LinkRanks], LinkRanks]:
    """The ranks of tails and heads among the negatives of each draw, and among all nodes.

    All nodes are scored once for all draws, in batches that fit into `memory_budget` bytes.
    """
    graph = KnowledgeGraph(triples, known.num_nodes, known.num_relations)
    answers = torch.tensor(with_inverses(graph)[:, 2]).to(device).long()
    drawn = torch.tensor(negatives).to(device).long()
    found = torch.empty(drawn.shape[:2], dtype=torch.float64, device=device)

    def rank_batch(queries: Tensor, scores: Tensor) -> None:
        found[queries] = _rank_sampled(scores, answers[queries], drawn[queries])

    among_all = rank_links(
        score_tails,
        triples,
        known,
        memory_budget=memory_budget,
        device=device,
        progress=progress,
        on_scores=rank_batch,
    )
    ranks_of_draws = found.T.cpu().numpy()  # (num_draws, num_queries)
    return [_split(ranks, graph.triples[:, 1]) for ranks in ranks_of_draws], among_all


def _rank_sampled(scores: Tensor, answers: Tensor, drawn: Tensor) -> Tensor:
    """(batch, num_nodes), (batch,), (batch, num_draws, num_negatives) -> (batch, num_draws)."""
    candidates = torch.cat([answers[:, None, None].expand(-1, drawn.shape[1], 1), drawn], dim=2)
    places = candidates.flatten(start_dim=1).clamp_min(0)
    found = scores.gather(1, places).view(candidates.shape)
    found = found.masked_fill(candidates == LEFT_OUT, -torch.inf)
    return ranks_of_first(found.flatten(end_dim=1)).view(drawn.shape[:2])


def report_sampled(draws: list[LinkRanks]) -> Report:
    """Means over draws, for both sides and each side; "spread": the deviation between draws."""
    reports = [report_links(ranks) for ranks in draws]
    both = [report.both.to_json() for report in reports]
    sides = {
        side: _mean([report.sides[side].to_json() for report in reports])
        for side in reports[0].sides
    }
    return Report(_mean(both), {"spread": _deviation(both), **sides})


def _split(ranks: FloatArray, relation: IntArray) -> LinkRanks:
    tail, head = np.split(ranks, 2)
    return LinkRanks(head, tail, relation)


def _mean(scores: list[Scores]) -> Scores:
    means = {key: float(np.mean([each[key] for each in scores])) for key in scores[0]}
    return means | {"count": scores[0]["count"]}


def _deviation(scores: list[Scores]) -> Scores:
    """The sample standard deviation of each score over draws; 0 for a single draw."""
    return {
        key: float(np.std([each[key] for each in scores], ddof=min(1, len(scores) - 1)))
        for key in scores[0]
        if key != "count"
    }
