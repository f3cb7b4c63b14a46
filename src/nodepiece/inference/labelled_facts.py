"""True and false facts to calibrate on and to evaluate classification with."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nodepiece.data.any_graph import graph, with_names
from nodepiece.data.encode import encode_like
from nodepiece.data.verified_negatives import verified_negatives
from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray
from nodepiece.inference.bulk import Scoring
from nodepiece.inference.facts import FactRun

log = logging.getLogger("nodepiece")

ATTEMPTS = 20  # to draw a node that makes no known fact
CELLS_AT_ONCE = 2**25  # scores in memory
QUERIES_AT_ONCE = 256  # of a model with path scorers, so that progress is reported often
FACTS_WITH_PATHS = 2000  # true ones to calibrate with, where queries follow paths on a CPU
VERIFIED = "verified: "
DRAWN = "drawn: one for each fact, head or tail replaced by a node that the relation has there"
Given = Any  # whatever `nodepiece.graph` reads


@dataclass(frozen=True, eq=False)
class LabelledFacts:
    """Facts by ids, true ones first, and where the false ones come from."""

    triples: IntArray  # (num_facts, 3)
    is_true: NDArray[np.bool_]  # (num_facts,)
    negatives: str  # in words
    num_given: int  # true facts that there were, of which `num_true` were drawn

    @property
    def num_true(self) -> int:
        return int(self.is_true.sum())

    @property
    def num_false(self) -> int:
        return int((~self.is_true).sum())


def labelled_facts(
    run: FactRun,
    split: str,
    *,
    facts: Given = None,
    negatives: Given = None,
    data: Path | None = None,
    num_facts: int = 0,  # true ones at most, drawn at random; 0: all
    rng: np.random.Generator,
) -> LabelledFacts:
    """The facts of a split, or given ones, and false ones.

    False facts are those given, else those that come verified with the dataset, else drawn ones. Of
    given and verified ones, the same share is drawn as of the true ones.
    """
    if num_facts < 0:
        raise InputError(f"the number of facts must be 0, for all, or more, got {num_facts}")
    true = run.dataset.part(split) if facts is None else encoded(run, facts, "facts")
    if not len(true):
        raise InputError(f"{run.folder} has no {split} facts; give some with --facts FILE")
    num_given = len(true)
    true = some_of(true, num_facts or num_given, rng=rng)
    source = None
    if negatives is None and facts is None:
        source = verified_negatives(run.experiment.dataset, split, data=data)
        negatives = source
    if negatives is None:
        false, words = drawn_negatives(run.snapshot, true, rng=rng), DRAWN
    else:
        false = encoded(run, negatives, "negatives")
        false = some_of(false, max(1, len(false) * len(true) // num_given), rng=rng)
        words = VERIFIED + (source.name if source is not None else "given")
    is_true = np.arange(len(true) + len(false)) < len(true)
    return LabelledFacts(np.concatenate([true, false]), is_true, words, num_given)


def some_of(facts: IntArray, number: int, *, rng: np.random.Generator) -> IntArray:
    """At most so many facts, drawn at random, in their order."""
    if number >= len(facts):
        return facts
    return facts[np.sort(rng.choice(len(facts), number, replace=False))]


def follows_paths_on_cpu(run: FactRun) -> bool:
    """Whether each query takes long: it is scored by walks or propagation, without a GPU."""
    snapshot = run.snapshot
    return bool(snapshot.scorers) and snapshot.device.type == "cpu"


def encoded(run: FactRun, facts: Given, what: str) -> IntArray:
    """Facts by the ids of the run; those that name something unknown are left out and logged."""
    triples, num_unknown = encode_like(with_names(graph(facts)), run.dataset.names)
    if num_unknown:
        log.warning("left out %s of the %s that name what the run lacks", f"{num_unknown:,}", what)
    if not len(triples):
        raise InputError(f"all {num_unknown:,} {what} name nodes or relations that the run lacks")
    return triples


def drawn_negatives(snapshot: Scoring, facts: IntArray, *, rng: np.random.Generator) -> IntArray:
    """A false fact for each fact: every second one has another tail, the others another head.

    The node is drawn from those that the graph has at that end of the relation. Known facts are
    drawn again; a fact of which only known ones were drawn is left out.
    """
    candidates = snapshot.candidates
    negatives = facts.copy()
    ends = np.where(rng.permutation(len(facts)) % 2 == 0, 2, 0)
    left = np.arange(len(facts))
    for _ in range(ATTEMPTS):
        for place in left.tolist():
            relation, end = int(facts[place, 1]), int(ends[place])
            seen = candidates.seen_tails(relation) if end == 2 else candidates.seen_heads(relation)
            if len(seen):
                negatives[place, end] = seen[rng.integers(len(seen))]
        left = left[candidates.known_tails.contains(negatives[left])]
        if not len(left):
            break
    return np.delete(negatives, left, axis=0)


def drawn_relations(snapshot: Scoring, facts: IntArray, *, rng: np.random.Generator) -> IntArray:
    """For each fact one with another relation, or an inverse, that is not known of the pair."""
    num_relations = snapshot.dataset.train.num_relations
    negatives, left = facts.copy(), np.arange(len(facts))
    for _ in range(ATTEMPTS):
        negatives[left, 1] = rng.integers(2 * num_relations, size=len(left))
        left = left[snapshot.candidates.known_tails.contains(negatives[left])]
        if not len(left):
            break
    return np.delete(negatives, left, axis=0)


def both_ways_round(triples: IntArray, num_relations: int) -> IntArray:
    """Facts, and then their inverses: (num_facts, 3) -> (2 * num_facts, 3)."""
    inverse = triples[:, ::-1] + np.array([0, num_relations, 0], triples.dtype)
    return np.concatenate([triples, inverse])


def tail_scores(
    snapshot: Scoring, triples: IntArray, progress: Progress | None = None
) -> FloatArray:
    """The score of each tail, given head and relation, maybe an inverse: (num_facts,).

    `progress` gets the numbers of queries done and of all.
    """
    at_once = max(1, CELLS_AT_ONCE // snapshot.dataset.num_nodes)
    if snapshot.scorers:
        at_once = min(at_once, QUERIES_AT_ONCE)
    pairs, place = distinct_pairs(triples[:, :2])
    result = np.empty(len(triples))
    for start, rows in batches(place, len(pairs), at_once):
        some = torch.from_numpy(pairs[start])
        scores = snapshot.score_tails(some[:, 0], some[:, 1])
        tails = torch.from_numpy(triples[rows, 2].astype(np.int64)).to(scores.device)
        lines = torch.from_numpy(place[rows] - start.start).to(scores.device)
        result[rows] = scores[lines, tails].double().cpu().numpy()
        if progress is not None:
            progress(min(start.stop, len(pairs)), len(pairs))
    return result


def relation_scores(snapshot: Scoring, triples: IntArray) -> FloatArray:
    """The score of each relation, given head and tail: (num_facts,)."""
    heads, relations, tails = (torch.from_numpy(part.astype(np.int64)) for part in triples.T)
    parts = [np.empty(0)]
    for start in range(0, len(triples), 4096):
        some = slice(start, start + 4096)
        scores = snapshot.score_relations(heads[some], tails[some])
        found = scores.gather(1, relations[some, None].to(scores.device))[:, 0]
        parts.append(found.double().cpu().numpy())
    return np.concatenate(parts)


def distinct_pairs(pairs: IntArray) -> tuple[LongArray, LongArray]:
    """The different rows, (num_distinct, 2), and which of them each row is."""
    distinct, place = np.unique(pairs.astype(np.int64), axis=0, return_inverse=True)
    return distinct, place.reshape(-1)


def batches(place: LongArray, num_distinct: int, size: int) -> Iterable[tuple[slice, LongArray]]:
    """Slices of the distinct pairs, and the facts that each has."""
    order = np.argsort(place, kind="stable")
    for start in range(0, num_distinct, size):
        first, last = np.searchsorted(place[order], [start, start + size])
        yield slice(start, start + size), order[first:last]
