"""Why a run scores a fact as it does: paths, pieces, necessary facts and similar facts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.inference.answer_rank import RankedAnswer
from nodepiece.inference.bulk import Calibrated, Scoring
from nodepiece.inference.explain_paths import explain_paths
from nodepiece.inference.explain_pieces import carrying_pieces, one_row, shared_pieces
from nodepiece.inference.explained import Explainable
from nodepiece.inference.explanation import CarryingPiece, Explanation, SharedPiece
from nodepiece.inference.inductive import EncodedSnapshot
from nodepiece.inference.inductive_pieces import InductivePieces
from nodepiece.inference.local_vectors import LocalVectors
from nodepiece.inference.necessary_facts import Necessity
from nodepiece.inference.removal_estimates import VectorEstimates
from nodepiece.inference.score_facts import fact_probabilities
from nodepiece.inference.similar_facts import similar_facts, similar_limits
from nodepiece.inference.snapshot import Snapshot
from nodepiece.tokenizer.changing_tokens import NO_FACTS
from nodepiece.tokenizer.token_rows import TokenRows


@dataclass(frozen=True)
class ExplainSettings:
    """How many reasons of each kind an explanation has at most."""

    paths: int = 5
    pieces: int = 8
    facts: int = 4  # necessary ones
    similar: int = 5

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if number < 0:
                raise InputError(f"{name} must be 0 or more, got {number}")


def explain_fact(
    snapshot: Scoring,
    head: str,
    relation: str,
    tail: str,
    settings: ExplainSettings,
    calibrated: Calibrated | None = None,
) -> Explanation:
    """The explanation of a fact by name, which may be known or not; the run does not change."""
    explained = cast(Explainable, snapshot)  # every snapshot that scores facts is one
    names, graph = explained.dataset.names, explained.dataset.train
    ids = names.node_id(head), names.relation_id(relation), names.node_id(tail)
    for node, name in ((ids[0], head), (ids[2], tail)):
        if not explained.candidates.is_present[node]:
            raise InputError(f"node {name!r} was removed from the graph; choose another one")
    inverse = (ids[1] + graph.num_relations) % (2 * graph.num_relations)
    answer = RankedAnswer.of(explained, *ids)
    back = RankedAnswer.of(explained, ids[2], inverse, ids[0])
    both = explained.score_tails(torch.tensor([ids[0], ids[2]]), torch.tensor([ids[1], inverse]))
    scores, of_heads = both.float().cpu()
    before = answer.outcome_of(scores)
    estimates = (
        VectorEstimates(explained, answer, scores) if isinstance(explained, Snapshot) else None
    )

    def exact_losses(removals: Sequence[IntArray]) -> list[float]:
        return [
            before.score - answer.outcome(explained.without(removed)).score for removed in removals
        ]

    paths = explain_paths(
        explained,
        *ids,
        top=settings.paths,
        losses=exact_losses if estimates is None else estimates.losses,
    )
    shared, carrying = explain_pieces(explained, answer, scores, settings.pieces)
    search = Necessity(explained, answer, before, paths.losses, estimates)
    necessary, after = search.find(settings.facts)
    limits = search.limits() if settings.facts else ()
    limits += similar_limits(explained, ids[1]) if settings.similar else ()
    chances: tuple[float | None, float | None, float | None] = (None, None, None)
    if calibrated is not None:
        both_scores = np.array([before.score]), np.array([float(of_heads[ids[0]])])
        triple = np.array([ids], np.int64)
        found = fact_probabilities(explained, triple, both_scores, calibrated)
        chances = float(found.tail[0]), float(found.head[0]), float(found.both[0])
    return Explanation(
        head,
        relation,
        tail,
        before.score,
        *chances,
        before.rank,
        back.outcome_of(of_heads).rank,
        bool(explained.candidates.known_tails.contains(np.array([ids]))[0]),
        paths.paths,
        paths.by,
        paths.total,
        shared,
        carrying,
        necessary,
        None if after is None else after.rank,
        None if after is None else after.score,
        similar_facts(explained, *ids, top=settings.similar),
        limits,
    )


def explain_pieces(
    snapshot: Explainable, answer: RankedAnswer, scores: Tensor, top: int
) -> tuple[tuple[SharedPiece, ...], tuple[CarryingPiece, ...]]:
    """What head and tail share, and the pieces that carry the score; nothing without pieces."""
    names, ends = snapshot.dataset.names, [answer.head, answer.tail]
    score = float(scores[answer.tail])
    if isinstance(snapshot, EncodedSnapshot):
        pieces = InductivePieces(snapshot, answer)
        rows = {node: pieces.row_of(node) for node in ends}
        vocabulary, names, score_rows = pieces.vocabulary, pieces.names, pieces.score_rows
    elif isinstance(snapshot, Snapshot) and snapshot.model.nodes.has_pieces:
        nodes = np.unique(np.array(ends, np.int32))
        (both,) = snapshot.rows_without(nodes, [NO_FACTS])
        rows = {node: one_row(both, node) for node in ends}
        vocabulary, score_rows = snapshot.table.vocabulary, LinkPieces(snapshot, answer, scores)
    else:
        return (), ()
    shared = shared_pieces(rows[answer.head], rows[answer.tail], vocabulary, names)
    carrying = carrying_pieces(rows, vocabulary, names, score=score, score_rows=score_rows, top=top)
    return shared, carrying


@dataclass(frozen=True, eq=False)
class LinkPieces:
    """Scores of a fact with other tokens for one of its nodes, in a run on a known graph."""

    snapshot: Snapshot
    answer: RankedAnswer
    scores: Tensor  # (num_nodes,) of all candidates

    def __call__(self, node: int, rows: TokenRows) -> Tensor:
        """(num_rows,) on the CPU."""
        estimates = VectorEstimates(self.snapshot, self.answer, self.scores)
        changed = LocalVectors(self.snapshot, node).with_rows(rows)
        ends = torch.tensor([self.answer.head, self.answer.tail])
        head, tail = (
            vector.expand(len(changed), -1) for vector in self.snapshot.patched.rows(ends)
        )
        if node == self.answer.head:
            head = changed
        if node == self.answer.tail:
            tail = changed
        return estimates.tail_scores(head, tail) + estimates.path_scores[0]
