"""Filtered ranks of the true tail, head or relation among all candidates.

One definition for every task, the realistic rank: 1 + better candidates + half of those that tie. A
model that scores everything alike gets a rank in the middle, and one that has diverged is refused.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.evaluation.known_answers import KnownAnswers
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray, read_only
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses

ScoreAll = Callable[[Tensor, Tensor], Tensor]  # two ids a query, (batch,) each -> (batch, all)
Progress = Callable[[int, int], None]  # queries ranked so far, queries in all
OnScores = Callable[[Tensor, Tensor], None]  # places of queries (batch,), scores (batch, all)

BYTES_PER_SCORE = 16  # scores, their differences, and as much again inside the scoring function
BYTES_PER_ANSWER = 64  # a known answer as row, column, position and score
CACHE_BYTES = 2**23  # of scores, which a CPU reads several times; its last cache holds these
CACHE_ROWS = 64  # but with fewer rows than this a matrix product is no longer efficient


@dataclass(frozen=True, eq=False)
class LinkRanks:
    """Two ranks for every fact: of its head and of its tail, each given the other parts."""

    head: FloatArray  # (num_triples,)
    tail: FloatArray  # (num_triples,)
    relation: IntArray  # (num_triples,) of each fact

    def __post_init__(self) -> None:
        for name in ("head", "tail", "relation"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def both(self) -> FloatArray:
        """(2 * num_triples,) of the heads, then of the tails."""
        return np.concatenate([self.head, self.tail])


def rank_links(
    score_tails: ScoreAll,
    triples: IntArray,
    known: KnownAnswers,
    *,
    memory_budget: int,
    device: torch.device | str,
    progress: Progress | None = None,
    on_scores: OnScores | None = None,
) -> LinkRanks:
    """Rank the tail and the head of every fact among all nodes; `known` is from `known_tails`.

    `score_tails` takes heads and relations, (batch,) each, on `device`, and gives (batch,
    num_nodes). A head is ranked as the tail of the inverse relation. Batches are as large as
    `memory_budget` bytes for scores allow, one query at least; the ranks do not depend on it.
    Queries are ranked in the order of their heads and relations, so that those with several answers
    are scored once. `on_scores` is called with the scores of every batch, and with the places of
    its queries: facts by their tails first, then facts by their heads.
    """
    _check_kind(known, "tails")
    graph = KnowledgeGraph(triples, known.num_nodes, known.num_relations)
    ranks = _rank(
        score_tails,
        with_inverses(graph),
        known,
        memory_budget=memory_budget,
        device=torch.device(device),
        progress=progress,
        on_scores=on_scores,
    )
    tail, head = np.split(ranks, 2)
    return LinkRanks(head, tail, graph.triples[:, 1])


def rank_relations(
    score_relations: ScoreAll,
    triples: IntArray,
    known: KnownAnswers,
    *,
    memory_budget: int,
    device: torch.device | str,
    progress: Progress | None = None,
) -> FloatArray:
    """Rank the relation of every fact: (num_triples,); `known` is from `known_relations`.

    `score_relations` takes heads and tails and gives a score for every relation, direct ones
    first. Candidates are those of `known`: all 2 * num_relations, or the direct ones only.
    """
    _check_kind(known, "relations", "direct relations")
    graph = KnowledgeGraph(triples, known.num_nodes, known.num_relations)
    return _rank(
        score_relations,
        graph.triples[:, [0, 2, 1]],
        known,
        memory_budget=memory_budget,
        device=torch.device(device),
        progress=progress,
    )


def rank_queries(
    score_tails: ScoreAll,
    queries: IntArray,
    known: KnownAnswers,
    *,
    memory_budget: int,
    device: torch.device | str,
    progress: Progress | None = None,
) -> FloatArray:
    """Rank the answer of every query among all nodes: (num_queries,).

    queries: (num_queries, 3) of the id by which `known` finds its answers, which need not be a
    node; the relation, maybe an inverse; the answer. `known` is from `known_tails_of`.
    `score_tails` takes positions of queries instead of heads, as each may have a separate vector.
    """
    _check_kind(known, "tails")
    return _rank(
        score_tails,
        queries,
        known,
        memory_budget=memory_budget,
        device=torch.device(device),
        progress=progress,
        by_position=True,
    )


def filtered_ranks(scores: Tensor, target: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """The rank of each target among the candidates that are not other known answers.

    scores (batch, num_candidates); target (batch,); row and column (num_known,) are the positions
    of known answers, each once, with or without the target. Returns (batch,) in float64, NaN for
    a row that contains NaN.

    With c candidates, 1 + better + ties / 2 = (c + 1 + better - worse) / 2. So one sum of signs
    over the scores is enough, less those of known answers; that of the target itself is 0.
    """
    target_score = scores.gather(1, target[:, None])  # (batch, 1)
    exact = torch.float32 if scores.shape[1] <= 2**24 else torch.float64
    lead = (scores - target_score).sign_().sum(dim=1, dtype=exact).double()  # better - worse
    known_lead = (scores[row, column] - target_score[row, 0]).sign_().double()
    is_other = (column != target[row]).double()
    doubled = scores.shape[1] + 1 + lead.index_add_(0, row, -known_lead - is_other)
    return (doubled / 2).masked_fill(scores.amax(dim=1).isnan(), torch.nan)


def _check_kind(known: KnownAnswers, *kinds: str) -> None:
    if known.kind not in kinds:
        raise InputError(f"the known answers are {known.kind}, but {kinds[0]} are to be ranked")


def _rank(
    score_all: ScoreAll,
    queries: IntArray,  # (num_queries, 3): two ids of the query, and the answer
    known: KnownAnswers,
    *,
    memory_budget: int,
    device: torch.device,
    progress: Progress | None,
    on_scores: OnScores | None = None,
    by_position: bool = False,  # score by the positions of queries in place of their first ids
) -> FloatArray:
    """Rank all queries; indices are moved to the device once, and ranks back at the end."""
    if not len(queries):
        raise InputError("there are no facts to rank; give at least one")
    order = np.lexsort((queries[:, 1], queries[:, 0]))  # equal queries next to each other
    queries = queries[order]
    start, num_known = known.find(queries[:, 0], queries[:, 1])
    place = torch.tensor(order, device=device)
    first, second, target = torch.tensor(queries.T, dtype=torch.int64, device=device)
    if by_position:
        first = place
    start, answers_of_queries = known.only_of(start, num_known)
    known_start, known_count, answers = (
        torch.tensor(array, device=device) for array in (start, num_known, answers_of_queries)
    )
    ids = order[:, None] if by_position else queries[:, :2]
    ranks = torch.empty(len(queries), dtype=torch.float64, device=device)
    with torch.no_grad():
        for batch in query_batches(num_known, known.num_candidates, memory_budget, device):
            asked, row_of_query = distinct_rows(ids[batch])
            asked += batch.start
            scores = score_all(first[asked], second[asked])[:, : known.num_candidates]
            if scores.shape[1] < known.num_candidates:
                raise InputError(
                    f"the model scores {scores.shape[1]} of {known.num_candidates} candidates; "
                    "rank with the graph it was trained on"
                )
            if len(asked) < len(row_of_query):
                scores = scores[row_of_query]
            total = int(num_known[batch].sum())
            row, position = expand_runs(known_start[batch], known_count[batch], total)
            found = filtered_ranks(scores, target[batch], row, answers[position].long())
            ranks[place[batch]] = found
            if on_scores is not None:
                on_scores(place[batch], scores)
            if progress is not None:
                progress(batch.stop, len(queries))
    result: FloatArray = ranks.cpu().numpy()
    if np.isnan(result).any():
        raise InputError(
            f"{np.isnan(result).sum()} of {len(result)} queries have scores that are not a number: "
            "training diverged; lower the learning rate"
        )
    return result


def distinct_rows(rows: IntArray | LongArray) -> tuple[LongArray, LongArray]:
    """Of sorted rows: the places of those that differ from the one before, and which each equals.

    (num_rows, width) -> (num_distinct,), (num_rows,).
    """
    is_new = np.ones(len(rows), dtype=bool)
    is_new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return np.flatnonzero(is_new), np.cumsum(is_new) - 1


def query_batches(
    num_known: LongArray, num_candidates: int, memory_budget: int, device: torch.device
) -> Iterator[slice]:
    """Cut the queries, in order, into batches that fit the budget; one query at least."""
    needed = np.cumsum(num_candidates * BYTES_PER_SCORE + num_known * BYTES_PER_ANSWER)
    most = len(num_known)
    if device.type == "cpu":
        most = max(CACHE_ROWS, CACHE_BYTES // (4 * max(1, num_candidates)))
    start, used = 0, 0
    while start < len(num_known):
        fitting = int(np.searchsorted(needed, used + memory_budget, side="right"))
        stop = min(max(start + 1, fitting), start + most)
        yield slice(start, stop)
        start, used = stop, int(needed[stop - 1])


def expand_runs(start: Tensor, count: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """Runs of `count` positions from `start` on: the row of each, and the position; (total,)."""
    row = torch.arange(len(count), device=count.device)
    row = row.repeat_interleave(count, output_size=total)
    shift = start - (count.cumsum(dim=0) - count)
    return row, torch.arange(total, device=count.device) + shift[row]
