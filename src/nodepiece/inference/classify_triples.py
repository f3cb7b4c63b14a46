"""Triple classification: whether facts are true, by calibrated probabilities and by thresholds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodepiece.evaluation.calibration import both_ways
from nodepiece.evaluation.report import Report
from nodepiece.evaluation.triple_classification import (
    Reliability,
    decision_scores,
    probability_scores,
    reliability,
    thresholds_by_group,
)
from nodepiece.graph.arrays import FloatArray, IntArray
from nodepiece.inference.calibration import SEED, RunCalibration, fit, stored_calibration
from nodepiece.inference.facts import FactRun, fact_run
from nodepiece.inference.labelled_facts import Given, LabelledFacts, labelled_facts, tail_scores
from nodepiece.inference.opened_run import Run

BY_THRESHOLD = "threshold of relation"  # chosen on validation facts, as published


@dataclass(frozen=True, eq=False)
class TripleClassification:
    """How well a run separates true facts from false ones."""

    report: Report
    reliability: Reliability
    negatives: str  # where the false facts come from, in words
    calibration: RunCalibration
    is_stored: bool  # whether the calibration is that in the run folder

    def __repr__(self) -> str:
        return f"TripleClassification({self.report!r}; negatives {self.negatives})"

    def to_json(self) -> dict[str, Any]:
        bins = self.reliability
        return {
            **self.report.to_json(),
            "negatives": self.negatives,
            "calibration": "stored" if self.is_stored else "fitted to the validation facts",
            "calibration_kind": self.calibration.of_nodes.kind,
            "reliability": {
                "count": bins.count.tolist(),
                "probability": [None if value != value else value for value in bins.probability],
                "share_true": [None if value != value else value for value in bins.share_true],
            },
        }


def classify_triples(
    run: Run,
    *,
    split: str = "test",
    facts: Given = None,
    negatives: Given = None,
    data: Path | None = None,
    seed: int = SEED,
) -> TripleClassification:
    """Classify the facts of a split, or given ones, and false facts.

    A fact is true if its probability is above 0.5: that of both queries, for its tail and for its
    head. The probabilities are those of the stored calibration, else of one that is fitted to the
    validation facts and not stored. As a part of the report, the same with a threshold of the score
    for each relation, chosen on the validation facts, as published. False facts are those given,
    else those that come verified with the dataset, else drawn ones.
    """
    chosen = fact_run(run)
    rng = np.random.default_rng(seed)
    valid = labelled_facts(chosen, "valid", data=data, rng=rng)
    stored = stored_calibration(run)
    calibration = stored if stored is not None else fit(chosen, valid, rng=rng)
    wanted = labelled_facts(chosen, split, facts=facts, negatives=negatives, data=data, rng=rng)
    snapshot = chosen.snapshot
    scores = tail_scores(snapshot, wanted.triples)
    num_relations = snapshot.dataset.train.num_relations
    inverse = wanted.triples[:, ::-1] + np.array([0, num_relations, 0], wanted.triples.dtype)
    of_tails, of_heads = (
        calibration.probabilities(snapshot, way, each, num_trained=chosen.num_trained)
        for way, each in ((wanted.triples, scores), (inverse, tail_scores(snapshot, inverse)))
    )
    found = both_ways(of_tails, of_heads)
    accepted = by_thresholds(chosen, valid, wanted, scores)
    report = Report(
        probability_scores(found, wanted.is_true),
        {BY_THRESHOLD: decision_scores(accepted, wanted.is_true)},
        {"relations": by_relation(chosen, wanted.triples, found, wanted.is_true)},
    )
    bins = reliability(found, wanted.is_true)
    return TripleClassification(
        report, bins, wanted.negatives, calibration, is_stored=stored is not None
    )


def by_thresholds(
    run: FactRun, valid: LabelledFacts, wanted: LabelledFacts, scores: FloatArray
) -> NDArray[np.bool_]:
    """Which facts are accepted by the best threshold of their relation in validation."""
    thresholds = thresholds_by_group(
        tail_scores(run.snapshot, valid.triples),
        valid.triples[:, 1].astype(np.int64),
        valid.is_true,
        run.dataset.train.num_relations,
    )
    return scores > thresholds[wanted.triples[:, 1]]


def by_relation(
    run: FactRun, triples: IntArray, probabilities: FloatArray, is_true: NDArray[np.bool_]
) -> dict[str, dict[str, float]]:
    """Accuracy, F1 and the number of facts of each relation, by name."""
    found = {}
    for relation in np.unique(triples[:, 1]).tolist():
        mine = triples[:, 1] == relation
        scores = decision_scores(probabilities[mine] > 0.5, is_true[mine])
        found[run.dataset.names.relation(relation)] = {**scores, "count": int(mine.sum())}
    return found
