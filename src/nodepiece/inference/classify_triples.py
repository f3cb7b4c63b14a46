"""Triple classification: whether facts are true, by calibrated probabilities and by thresholds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodepiece.errors import InputError
from nodepiece.evaluation.calibration import both_ways
from nodepiece.evaluation.ranking import Progress
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
from nodepiece.inference.labelled_facts import (
    Given,
    LabelledFacts,
    both_ways_round,
    labelled_facts,
    tail_scores,
)
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
    num_facts: int = 0,
    seed: int = SEED,
    progress: Progress | None = None,
) -> TripleClassification:
    """Classify the facts of a split, or given ones, and false facts.

    A fact is true if its probability is above 0.5: that of both queries, for its tail and for its
    head. The probabilities are those of the stored calibration, else of one that is fitted to the
    validation facts and not stored. As a part of the report, the same with a threshold of the score
    for each relation, chosen on the validation facts, as published, if there are some. False facts
    are those given, else those that come verified with the dataset, else drawn ones. `num_facts`:
    at most so many true facts of each split, drawn at random; 0: all. `progress` gets the numbers
    of queries done and of all, of one group of facts after the other.
    """
    chosen = fact_run(run)
    rng = np.random.default_rng(seed)
    snapshot, num_relations = chosen.snapshot, chosen.snapshot.dataset.train.num_relations
    calibration = stored = stored_calibration(run)
    valid: tuple[LabelledFacts, FloatArray] | None = None  # and the scores of their tails
    if len(chosen.dataset.valid):
        facts_of_valid = labelled_facts(chosen, "valid", data=data, num_facts=num_facts, rng=rng)
        directed = facts_of_valid.triples
        if stored is None:
            directed = both_ways_round(directed, num_relations)
        valid = facts_of_valid, tail_scores(snapshot, directed, progress)
        if stored is None:
            calibration = fit(chosen, *valid, rng=rng, progress=progress)
    if calibration is None:
        raise InputError(
            f"{run.folder} has no validation facts to fit probabilities to; run nodepiece "
            "calibrate with --facts FILE first"
        )
    wanted = labelled_facts(
        chosen,
        split,
        facts=facts,
        negatives=negatives,
        data=data,
        num_facts=num_facts,
        rng=rng,
    )
    both = both_ways_round(wanted.triples, num_relations)
    scores = tail_scores(snapshot, both, progress)
    num_trained = chosen.num_trained
    likely = calibration.probabilities(snapshot, both, scores, num_trained=num_trained)
    found = both_ways(*np.split(likely, 2))
    parts = {}
    if valid is not None:
        accepted = by_thresholds(chosen, valid, (wanted, scores))
        parts = {BY_THRESHOLD: decision_scores(accepted, wanted.is_true)}
    report = Report(
        probability_scores(found, wanted.is_true),
        parts,
        {"relations": by_relation(chosen, wanted.triples, found, wanted.is_true)},
    )
    bins = reliability(found, wanted.is_true)
    return TripleClassification(
        report, bins, wanted.negatives, calibration, is_stored=stored is not None
    )


def by_thresholds(
    run: FactRun,
    valid: tuple[LabelledFacts, FloatArray],
    wanted: tuple[LabelledFacts, FloatArray],
) -> NDArray[np.bool_]:
    """Which facts are accepted by the best threshold of their relation in validation.

    Both are facts and the scores of their tails; further scores are not read.
    """
    (known, of_known), (asked, of_asked) = valid, wanted
    thresholds = thresholds_by_group(
        of_known[: len(known.triples)],
        known.triples[:, 1].astype(np.int64),
        known.is_true,
        run.dataset.train.num_relations,
    )
    return of_asked[: len(asked.triples)] > thresholds[asked.triples[:, 1]]


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
