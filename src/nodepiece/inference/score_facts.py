"""Facts scored and ranked, whether they are known or not."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.data.query_rows import NumberedParts
from nodepiece.evaluation.calibration import both_ways
from nodepiece.evaluation.ranking import Progress, rank_links
from nodepiece.graph.arrays import FloatArray, LongArray
from nodepiece.inference.bulk import Calibrated, OnRefused, Scoring, named_triples
from nodepiece.inference.queries import Refused, chunks, encode_triples

PROBABILITIES = ("tail_probability", "head_probability", "probability")


def score_schema(calibrated: Calibrated | None) -> pa.Schema:
    """The columns of a table of scored facts."""
    return pa.schema(
        [
            ("fact", pa.int64()),
            ("head", pa.string()),
            ("relation", pa.string()),
            ("tail", pa.string()),
            ("score", pa.float32()),
            ("tail_rank", pa.float64()),
            ("head_rank", pa.float64()),
            *([(name, pa.float64()) for name in PROBABILITIES] if calibrated is not None else []),
            ("known", pa.bool_()),
        ]
    )


def score_in_batches(
    snapshot: Scoring,
    rows: Iterable[NumberedParts],
    *,
    memory_budget: int,
    on_refused: OnRefused,
    calibrated: Calibrated | None = None,
    progress: Progress | None = None,
) -> Iterator[pa.Table]:
    """Tables of `score_schema`, in the order of the facts; `fact` is the number of the row.

    Facts that cannot be scored are passed to `on_refused`. `progress` gets the number of facts
    done, and 0.
    """
    names = snapshot.dataset.names
    num_done, num_refused = 0, 0
    for chunk in chunks(rows):
        numbers, triples, refused = encode_triples(names, chunk, num_refused)
        is_gone = ~snapshot.candidates.is_present[triples[:, [0, 2]]].all(axis=1)
        refused += [
            Refused(number, "a node of it was removed from the graph", True)
            for number in numbers[is_gone].tolist()
        ]
        num_refused += len(refused)
        for each in sorted(refused):
            on_refused(each)
        if not is_gone.all():
            found = score_facts(snapshot, triples[~is_gone], memory_budget)
            yield as_table(snapshot, numbers[~is_gone], triples[~is_gone], found, calibrated)
        num_done += len(chunk)
        if progress is not None:
            progress(num_done, 0)


class ScoredFacts(NamedTuple):
    """Scores and ranks of facts, (num_facts,) each."""

    score: NDArray[np.float32]  # of the tail, given head and relation
    head_score: NDArray[np.float32]  # of the head, given relation and tail
    tail_rank: FloatArray
    head_rank: FloatArray
    is_known: NDArray[np.bool_]


def score_facts(snapshot: Scoring, triples: LongArray, memory_budget: int) -> ScoredFacts:
    """Scores and ranks of facts by ids, (num_facts, 3).

    A fact with an inverse relation is ranked as the fact that it is the inverse of, with head and
    tail exchanged.
    """
    num_relations = snapshot.dataset.train.num_relations
    is_inverse = triples[:, 1] >= num_relations
    direct = np.where(is_inverse[:, None], triples[:, ::-1], triples)
    direct[:, 1] %= num_relations
    targets = np.concatenate([direct[:, 2], direct[:, 0]])
    scores = np.empty(len(targets), np.float32)  # of tails, then of heads

    def keep_scores(queries: Tensor, found: Tensor) -> None:
        places = queries.cpu().numpy()
        target = torch.from_numpy(targets[places])
        scores[places] = found[torch.arange(len(target)), target].float().cpu().numpy()

    known = snapshot.candidates.known_tails
    ranks = rank_links(
        snapshot.score_tails,
        direct.astype(np.int32),
        known,
        memory_budget=memory_budget,
        device=snapshot.device,
        on_scores=keep_scores,
    )
    of_tails, of_heads = np.split(scores, 2)
    return ScoredFacts(
        np.where(is_inverse, of_heads, of_tails),
        np.where(is_inverse, of_tails, of_heads),
        np.where(is_inverse, ranks.head, ranks.tail),
        np.where(is_inverse, ranks.tail, ranks.head),
        known.contains(direct),
    )


def as_table(
    snapshot: Scoring,
    numbers: LongArray,
    triples: LongArray,
    found: ScoredFacts,
    calibrated: Calibrated | None,
) -> pa.Table:
    columns = {"fact": pa.array(numbers)}
    columns |= named_triples(snapshot.dataset.names, *triples.T)
    columns |= {
        "score": pa.array(found.score),
        "tail_rank": pa.array(found.tail_rank),
        "head_rank": pa.array(found.head_rank),
        "known": pa.array(found.is_known),
    }
    if calibrated is not None:
        probabilities = fact_probabilities(
            snapshot, triples, (found.score, found.head_score), calibrated
        )
        columns |= {
            name: pa.array(each) for name, each in zip(PROBABILITIES, probabilities, strict=True)
        }
    schema = score_schema(calibrated)
    return pa.table([columns[name] for name in schema.names], schema=schema)


class FactProbabilities(NamedTuple):
    """The probabilities of facts, (num_facts,) each, in the order of PROBABILITIES."""

    tail: FloatArray  # by the query for the tail: that of `predict`, given head and relation
    head: FloatArray  # by the query for the head: that of `predict`, given relation and tail
    both: FloatArray  # by both queries, which is more accurate


def fact_probabilities(
    snapshot: Scoring,
    triples: LongArray,
    scores: tuple[NDArray[np.floating], NDArray[np.floating]],
    calibrated: Calibrated,
) -> FactProbabilities:
    """The probabilities of facts, from the scores of their tails and of their heads."""
    num_relations = snapshot.dataset.train.num_relations
    heads, relations, tails = triples.T
    inverse = np.stack([tails, (relations + num_relations) % (2 * num_relations), heads], axis=1)
    of_tails, of_heads = (
        calibrated(snapshot, way, each.astype(np.float64), True)
        for way, each in zip((triples, inverse), scores, strict=True)
    )
    return FactProbabilities(of_tails, of_heads, both_ways(of_tails, of_heads))
