"""Approximate answers: the best tails of queries from an index, in place of all scores.

A score that is a distance of vectors, or a product of them, has a query vector for head and
relation, and its best tails are the nodes nearest to that. Products become distances by one more
number in each vector (Bachrach et al., 2014). What the index finds is scored exactly, and so are
the nodes that changed since it was built; an answer may be missing, but no score is approximate.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock, Thread
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.decoders.triple_scores import Decoder
from nodepiece.errors import InputError
from nodepiece.evaluation.known_answers import KnownAnswers
from nodepiece.evaluation.ranking import Progress
from nodepiece.evaluation.top_scores import TopScores, top_scores
from nodepiece.graph.arrays import LongArray
from nodepiece.inference.bulk import AnswerSettings, Scoring
from nodepiece.inference.neighbour_index import IndexPlace, NeighbourIndex, VectorIndexSettings
from nodepiece.inference.snapshot import HypotheticalSnapshot, Snapshot

log = logging.getLogger("nodepiece")

ROWS_AT_ONCE = 1 << 16
MAX_WANTED = 2_000  # answers of a query, known ones included, that are looked up in the index
MAX_MOVED = 20_000  # nodes that changed since the index was built, which are scored exactly
FEW_KNOWN = 32  # known answers; queries with more are looked up apart, as they need more
SPARE = 8  # more than wanted, as vectors in the index are rounded
EXPANSIONS = (64, 128, 256, 512, 1024)  # candidates while searching: the first with enough recall
RECALL = 0.99
NUM_SAMPLED = 100  # queries whose answers are compared with exact ones


@dataclass(frozen=True)
class MeasuredRecall:
    """How many of the exact ten best answers the index finds."""

    recall: float
    num_queries: int
    expansion: int


class AnswerIndex:
    """An index of the vectors of one base state of a run."""

    def __init__(self, snapshot: Snapshot, place: IndexPlace | None) -> None:
        self.decoder, self.tail_query = decoder_of(snapshot)
        self.vectors = snapshot.patched.base
        self.largest = 0.0 if self.decoder.is_distance else largest_length(self.vectors)
        settings = VectorIndexSettings("l2sq", "bf16", 0 if self.decoder.is_distance else 1)
        self.index = NeighbourIndex(self.vectors, place, settings, self.augmented)
        self._moved: tuple[Tensor, LongArray] = (self.vectors, np.empty(0, np.int64))
        self._is_outdated = False
        self._lock, self._comparing = Lock(), False

    def prepare(self, progress: Progress | None = None) -> None:
        """Open the index, or build and store it."""
        self.index.prepare(progress)

    def augmented(self, vectors: Tensor) -> NDArray[np.float32]:
        """Vectors as they are in the index: of products, with one more number."""
        if self.decoder.is_distance:
            return vectors.float().cpu().numpy()
        squared = torch.linalg.vector_norm(vectors.float(), dim=1).square()
        last = (self.largest**2 - squared).clamp_min(0).sqrt()
        return torch.cat([vectors.float(), last[:, None]], dim=1).cpu().numpy()

    def moved_since(self, snapshot: Snapshot) -> LongArray | None:
        """Nodes whose vectors are not those of the index, ascending.

        None while another thread compares the vectors of a new base with those of the index, and
        where assumed facts change all vectors: they are not compared for one request.
        """
        patched = snapshot.patched
        below = snapshot.base if isinstance(snapshot, HypotheticalSnapshot) else snapshot
        if patched.base is not below.patched.base:
            return None
        base, moved = self._moved
        if base is patched.base:
            return np.union1d(moved, patched.nodes.numpy())
        with self._lock:
            if not self._comparing:
                self._comparing = True
                Thread(target=self._compare, args=(patched.base,), daemon=True).start()
        return None

    def can_follow(self, snapshot: Scoring, num_moved: int) -> bool:
        """Whether so few nodes have changed that scoring them all is quick.

        Logged if not, unless facts are assumed, which one request has.
        """
        is_stored = not isinstance(snapshot, HypotheticalSnapshot)
        if num_moved > MAX_MOVED and is_stored and not self._is_outdated:
            self._is_outdated = True
            log.warning(
                "%s nodes have changed since the index was built, so all nodes are scored again; "
                "restart the server to build another index",
                f"{num_moved:,}",
            )
        return num_moved <= MAX_MOVED

    def _compare(self, base: Tensor) -> None:
        try:
            self._moved = (base, rows_that_differ(self.vectors, base))
        finally:
            self._comparing = False

    def search(
        self,
        snapshot: Snapshot,
        heads: LongArray,
        relations: LongArray,
        wanted: int,
        moved: LongArray,
    ) -> tuple[LongArray, NDArray[np.float32]]:
        """Candidates and their scores, (batch, any number) each; -inf: to be left out."""
        with torch.no_grad():
            head = snapshot.patched.rows(torch.from_numpy(heads))
            relation = snapshot.model.relation_vectors()[torch.from_numpy(relations)]
            keys, is_out = self._current(head, relation, wanted, np.union1d(moved, snapshot.absent))
            vectors = snapshot.patched.rows(torch.from_numpy(keys.ravel()))
            vectors = vectors.view(*keys.shape, -1)
            scores = self.decoder.score(head[:, None], relation[:, None], vectors)
            fresh = np.setdiff1d(moved, snapshot.absent)
            rows = snapshot.patched.rows(torch.from_numpy(fresh))
            more = self.decoder.score_all_tails(head, relation, rows)
        found = scores.float().cpu().numpy()
        found[is_out] = -np.inf
        candidates = np.concatenate([keys, np.tile(fresh, (len(keys), 1))], axis=1)
        return candidates, np.concatenate([found, more.float().cpu().numpy()], axis=1)

    def _current(
        self, head: Tensor, relation: Tensor, wanted: int, outdated: LongArray
    ) -> tuple[LongArray, NDArray[np.bool_]]:
        """The nearest nodes in the index, and which of them are to be left out.

        So many that `wanted` are current, if there are as many: a removed or moved node that the
        index still has does not take the place of another.
        """
        number = wanted + SPARE
        while True:
            keys = self._nearest(head, relation, number)
            is_out = np.isin(keys, outdated) | (keys < 0)
            has_enough = (~is_out).sum(axis=1) >= wanted
            if has_enough.all() or number >= len(self.vectors):
                return np.maximum(keys, 0), is_out
            number = min(4 * number, len(self.vectors))

    def _nearest(self, head: Tensor, relation: Tensor, number: int) -> LongArray:
        query = self.tail_query(head, relation).float()
        if not self.decoder.is_distance:
            query = torch.cat([query, query.new_zeros(len(query), 1)], dim=1)
        return self.index.search(query, number)[0]


@dataclass(frozen=True, eq=False)
class ApproximateAnswers:
    """An index that answers queries, and how well."""

    index: AnswerIndex
    measured: MeasuredRecall | None = None

    def find(
        self, snapshot: Scoring, heads: LongArray, relations: LongArray, settings: AnswerSettings
    ) -> tuple[NDArray[np.bool_], TopScores]:
        """Which queries the index answers, and their best tails."""
        nothing = np.empty(0, np.int32)
        none = TopScores(np.empty(0, np.int64), nothing, nothing, np.empty(0, np.float32))
        moved = None
        if isinstance(snapshot, Snapshot) and not settings.seen_candidates:
            moved = self.index.moved_since(snapshot)
        is_followed = moved is not None and self.index.can_follow(snapshot, len(moved))
        if moved is None or not isinstance(snapshot, Snapshot) or not is_followed:
            return np.zeros(len(heads), np.bool_), none
        known = snapshot.candidates.known_tails
        number = known.find(heads, relations)[1]
        is_found = self.can_answer(0 * number if settings.include_known else number, settings.top)
        place = np.cumsum(is_found) - 1  # of a query among those that are answered
        parts = [none]
        for few in (is_found & (number <= FEW_KNOWN), is_found & (number > FEW_KNOWN)):
            if not few.any():
                continue
            best = self.best(
                snapshot,
                known,
                heads[few],
                relations[few],
                top=settings.top,
                include_known=settings.include_known,
                moved=moved,
            )
            parts.append(best._replace(row=place[np.flatnonzero(few)][best.row]))
        return is_found, TopScores(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def to_json(self, snapshot: Snapshot | None = None) -> dict[str, Any]:
        """The measured recall, for those who use the answers.

        With a snapshot: also how many nodes changed since the index was built, None while that is
        being found out, and from how many on all nodes are scored.
        """
        changed: dict[str, Any] = {}
        if snapshot is not None:
            moved = self.index.moved_since(snapshot)
            number = None if moved is None else len(moved)
            changed = {"changed_nodes": number, "exact_from": MAX_MOVED + 1}
        if self.measured is None:
            return {"recall_at_10": None, "queries": 0} | changed
        found = self.measured
        return changed | {
            "recall_at_10": found.recall,
            "queries": found.num_queries,
            "expansion": found.expansion,
        }

    def can_answer(self, num_known: LongArray, top: int) -> NDArray[np.bool_]:
        """Whether each query has few enough answers to be looked up."""
        return num_known + top <= MAX_WANTED

    def best(
        self,
        snapshot: Snapshot,
        known: KnownAnswers,
        heads: LongArray,
        relations: LongArray,
        *,
        top: int,
        include_known: bool,
        moved: LongArray,
    ) -> TopScores:
        """The best tails of queries; candidates are node ids."""
        start, num_known = known.find(heads, relations)
        wanted = top + (0 if include_known else int(num_known.max(initial=0)))
        candidates, scores = self.index.search(snapshot, heads, relations, wanted + 1, moved)
        has_loops = snapshot.candidates.has_loops[relations]
        scores[(candidates == heads[:, None]) & ~has_loops[:, None]] = -np.inf
        if not include_known:
            for row, (first, number) in enumerate(zip(start, num_known, strict=True)):
                stated = known.answers_at(np.arange(first, first + number))
                scores[row, np.isin(candidates[row], stated)] = -np.inf
        order = np.argsort(candidates, axis=1, kind="stable")  # of equal scores, the smaller id
        candidates = np.take_along_axis(candidates, order, axis=1)
        scores = np.take_along_axis(scores, order, axis=1)
        best = top_scores(torch.from_numpy(np.ascontiguousarray(scores)), top)
        chosen = candidates[best.row, best.candidate].astype(np.int32)
        return best._replace(candidate=chosen)


def decoder_of(snapshot: Snapshot) -> tuple[Decoder, Callable[[Tensor, Tensor], Tensor]]:
    """The decoder of a run that an index can answer for, and its query vectors; others: refused."""
    decoder = snapshot.model.decoder
    if snapshot.model.scorers or decoder.tail_query is None:
        raise InputError(
            "approximate answers need scores that are products or distances of vectors, and those "
            "of this run are not; leave out --approximate"
        )
    return decoder, decoder.tail_query


def open_answer_index(
    snapshot: Snapshot, place: IndexPlace | None, progress: Progress | None = None
) -> ApproximateAnswers:
    """Open or build the index of a run, and measure its recall."""
    index = AnswerIndex(snapshot, place)
    index.prepare(progress)
    answers = ApproximateAnswers(index)
    return replace(answers, measured=measure_recall(answers, snapshot, EXPANSIONS))


def measure_recall(
    answers: ApproximateAnswers, snapshot: Snapshot, expansions: Sequence[int]
) -> MeasuredRecall | None:
    """Recall at 10 of queries of random facts, with as little work as gives RECALL; None: none.

    Known answers are left out, as in predictions.
    """
    graph, rng = snapshot.dataset.train, np.random.default_rng(0)
    if not graph.num_triples:
        return None
    facts = graph.triples[rng.integers(0, graph.num_triples, NUM_SAMPLED)].astype(np.int64)
    is_inverse = rng.random(len(facts)) < 0.5
    heads = np.where(is_inverse, facts[:, 2], facts[:, 0])
    relations = facts[:, 1] + graph.num_relations * is_inverse
    known = snapshot.candidates.known_tails
    kept = answers.can_answer(known.find(heads, relations)[1], 10)
    heads, relations = heads[kept], relations[kept]
    if not len(heads):
        return None
    exact = exact_best(snapshot, known, heads, relations)
    moved = answers.index.moved_since(snapshot)
    measured = None
    for expansion in expansions:
        answers.index.index.index.expansion_search = expansion
        found = answers.best(
            snapshot,
            known,
            heads,
            relations,
            top=10,
            include_known=False,
            moved=np.empty(0, np.int64) if moved is None else moved,
        )
        pairs = found.row * graph.num_nodes + found.candidate
        recall = float(np.isin(exact, pairs).mean()) if len(exact) else 1.0
        measured = MeasuredRecall(round(recall, 4), len(heads), expansion)
        if recall >= RECALL:
            break
    return measured


def exact_best(
    snapshot: Snapshot, known: KnownAnswers, heads: LongArray, relations: LongArray
) -> LongArray:
    """The ten best answers of each query, as numbers: query * num_nodes + node."""
    start, number = known.find(heads, relations)
    found = []
    for row, (head, relation) in enumerate(zip(heads.tolist(), relations.tolist(), strict=True)):
        scores = snapshot.score_tails(torch.tensor([head]), torch.tensor([relation]))
        stated = known.answers_at(np.arange(start[row], start[row] + number[row]))
        scores[0, torch.from_numpy(stated).long()] = -torch.inf
        if not snapshot.candidates.has_loops[relation]:
            scores[0, head] = -torch.inf
        best = top_scores(scores, 10).candidate.astype(np.int64)
        found.append(row * snapshot.dataset.num_nodes + best)
    return np.concatenate(found)


def largest_length(vectors: Tensor) -> float:
    parts = torch.split(vectors, ROWS_AT_ONCE)
    lengths = [float(torch.linalg.vector_norm(part.float(), dim=1).max()) for part in parts]
    return max(lengths, default=0.0)


def rows_that_differ(one: Tensor, other: Tensor) -> LongArray:
    """Rows of the second matrix that are new or different; compared part by part."""
    number = min(len(one), len(other))
    found = [
        start + np.flatnonzero((one[start:end] != other[start:end]).any(dim=1).numpy())
        for start, end in (
            (first, min(number, first + ROWS_AT_ONCE)) for first in range(0, number, ROWS_AT_ONCE)
        )
    ]
    return np.concatenate([*found, np.arange(number, len(other))]).astype(np.int64)
