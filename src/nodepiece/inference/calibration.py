"""From scores to probabilities: the calibration that is stored with a run.

RUN/calibration.json has one calibration of heads and tails, by relation and direction, one for
queries whose node arrived after training, and one of relations, for queries that ask for these. It
belongs to the weights of the run.
"""

import json
import logging
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodepiece.errors import InputError
from nodepiece.evaluation.calibration import MIN_FACTS, Calibration, calibrate, random_parts
from nodepiece.evaluation.ranking import Progress
from nodepiece.files import write_json
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray
from nodepiece.graph.names import Names
from nodepiece.inference.arriving_nodes import score_arrivals
from nodepiece.inference.bulk import Scoring
from nodepiece.inference.facts import FactRun, fact_run
from nodepiece.inference.labelled_facts import (
    FACTS_WITH_PATHS,
    Given,
    LabelledFacts,
    both_ways_round,
    drawn_relations,
    follows_paths_on_cpu,
    labelled_facts,
    relation_scores,
    tail_scores,
)
from nodepiece.inference.node_features import FEATURES, node_features
from nodepiece.inference.opened_run import Run

log = logging.getLogger("nodepiece")

FILE = "calibration.json"
FORMAT_VERSION = 1
SEED = 0


@dataclass(frozen=True, eq=False)
class RunCalibration:
    """The calibration of a run, and what it was fitted to."""

    of_nodes: Calibration  # groups are relations, then inverses
    of_new_nodes: Calibration | None  # with a head that arrived after training; None: as others
    of_relations: Calibration | None  # one group; None: there are too few relations
    relations: tuple[str, ...]  # names of the groups of `of_nodes`
    negatives: str  # where the false facts come from, in words
    num_true: int
    num_false: int
    model_hash: str
    num_given: int  # true facts that there were, of which `num_true` were drawn

    def __post_init__(self) -> None:
        every = len(self.relations)
        for found, num_groups in (
            (self.of_nodes, every),
            (self.of_new_nodes, every),
            (self.of_relations, 1),
        ):
            if found is not None and (
                len(found.slopes) != num_groups + 1 or len(found.features) != len(FEATURES)
            ):
                raise InputError("it has other relations or features than it names")

    def __repr__(self) -> str:
        return (
            f"RunCalibration({self.of_nodes.kind}, from {self.num_true:,} true and "
            f"{self.num_false:,} false facts, {self.negatives})"
        )

    def to_json(self) -> dict[str, Any]:
        of_new_nodes, of_relations = (
            None if found is None else found.to_json()
            for found in (self.of_new_nodes, self.of_relations)
        )
        return {
            "format_version": FORMAT_VERSION,
            "model_sha256": self.model_hash,
            "negatives": self.negatives,
            "num_true": self.num_true,
            "num_false": self.num_false,
            "num_given": self.num_given,
            "features": list(FEATURES),
            "relations": list(self.relations),
            "of_nodes": self.of_nodes.to_json(),
            "of_new_nodes": of_new_nodes,
            "of_relations": of_relations,
        }

    @staticmethod
    def from_json(content: dict[str, Any]) -> "RunCalibration":
        of_new_nodes, of_relations = (
            None if content[name] is None else Calibration.from_json(content[name])
            for name in ("of_new_nodes", "of_relations")
        )
        return RunCalibration(
            Calibration.from_json(content["of_nodes"]),
            of_new_nodes,
            of_relations,
            tuple(content["relations"]),
            str(content["negatives"]),
            int(content["num_true"]),
            int(content["num_false"]),
            str(content["model_sha256"]),
            int(content.get("num_given", content["num_true"])),
        )

    def probabilities(
        self,
        snapshot: Scoring,
        triples: IntArray,
        scores: FloatArray,
        *,
        num_trained: int,  # nodes with larger ids arrived after training
        by_relation: bool = True,
    ) -> FloatArray:
        """The probability that each fact is true: (num_facts,); see the function of this name."""
        features = node_features(snapshot, triples[:, 0].astype(np.int64))
        groups = np.full(len(triples), -1)
        if by_relation:
            groups = self._groups(snapshot.dataset.names)[triples[:, 1]]
            result = self.of_nodes.probabilities(scores, groups, features)
            is_new = triples[:, 0] >= num_trained
            if self.of_new_nodes is not None and is_new.any():
                result[is_new] = self.of_new_nodes.probabilities(
                    scores[is_new], groups[is_new], features[is_new]
                )
            return result
        found = self.of_nodes if self.of_relations is None else self.of_relations
        return found.probabilities(scores, groups, features)

    def _groups(self, names: Names) -> LongArray:
        """The group of each relation and inverse of a graph; -1: it has none."""
        group_of = {name: group for group, name in enumerate(self.relations)}
        labels = (names.relation(relation) for relation in range(2 * len(names.relations)))
        return np.array([group_of.get(label, -1) for label in labels], np.int64)


def probabilities(
    run: Run,
    triples: IntArray,
    scores: FloatArray,
    *,
    snapshot: Scoring | None = None,  # that the scores are from; None: the current one
    by_relation: bool = True,
) -> FloatArray | None:
    """The probability that each fact is true, (num_facts,); None: the run has no calibration.

    triples: (num_facts, 3) ids of the snapshot, in the direction in which they were scored:
    `scores[i]` is that of the tail `triples[i, 2]` in the query (head, relation, ?), and a relation
    from num_relations on is an inverse. Within a query a higher score never gets a lower
    probability. `by_relation=False` uses one calibration for all relations, so that this holds for
    queries for relations too.
    """
    found = stored_calibration(run)
    if found is None or not isinstance(run, FactRun):
        return None
    return found.probabilities(
        run.snapshot if snapshot is None else snapshot,
        triples,
        scores,
        num_trained=run.num_trained,
        by_relation=by_relation,
    )


def stored_calibration(run: Run) -> RunCalibration | None:
    """The calibration in the run folder; None if there is none for these weights."""
    path = run.folder / FILE
    try:
        stamp = path.stat()
    except OSError:
        return None
    found = _read(path, stamp.st_mtime_ns, stamp.st_ino)
    if found.model_hash != run.opened.files.model_hash:
        log.warning("%s belongs to other weights and is not used", path)
        return None
    return found


@lru_cache(maxsize=16)
def _read(path: Path, changed: int, inode: int) -> RunCalibration:
    """`changed` and `inode` are those of the file, which is read again after a change."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content["format_version"]
        if version > FORMAT_VERSION:
            raise InputError(
                f"{path} has the format version {version}, which is newer than this nodepiece"
            )
        return RunCalibration.from_json(content)
    except InputError as error:
        raise InputError(
            f"{path} cannot be used ({error}); run nodepiece calibrate again"
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is damaged ({type(error).__name__}: {error}); run nodepiece calibrate again"
        ) from error


def calibrate_run(
    run: Run,
    *,
    facts: Given = None,
    negatives: Given = None,
    data: Path | None = None,
    num_facts: int | None = None,
    seed: int = SEED,
    progress: Progress | None = None,
) -> RunCalibration:
    """Fit a calibration to validation facts and false ones, and store it with the run.

    `facts` and `negatives` are anything that `nodepiece.graph` reads. Without them, the validation
    facts of the run are taken, and the false facts that come verified with the dataset (`data` is
    searched before the usual places), or else drawn ones. A probability is then that among as many
    false facts as these. `num_facts`: at most so many true facts, drawn at random; 0: all of them;
    by default all, but 2,000 where walks or propagation score each query on a CPU. `progress` gets
    the numbers of queries done and of all.
    """
    chosen = fact_run(run)
    rng = np.random.default_rng(seed)
    if num_facts is None:
        num_facts = FACTS_WITH_PATHS if follows_paths_on_cpu(chosen) else 0
    labelled = labelled_facts(
        chosen,
        "valid",
        facts=facts,
        negatives=negatives,
        data=data,
        num_facts=num_facts,
        rng=rng,
    )
    found = fit(chosen, labelled, rng=rng, progress=progress)
    write_json(run.folder / FILE, found.to_json())
    return found


def fit(
    run: FactRun,
    labelled: LabelledFacts,
    scores: FloatArray | None = None,  # of `both_ways_round`; None: they are computed
    *,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> RunCalibration:
    """A calibration of heads and tails in both directions, and one of relations."""
    snapshot = run.snapshot
    num_relations = snapshot.dataset.train.num_relations
    direct, is_true = labelled.triples, labelled.is_true
    both = both_ways_round(direct, num_relations)
    of_nodes = calibrate(
        tail_scores(snapshot, both, progress) if scores is None else scores,
        both[:, 1].astype(np.int64),
        node_features(snapshot, both[:, 0].astype(np.int64)),
        np.concatenate([is_true, is_true]),
        num_groups=2 * num_relations,
        parts=np.tile(random_parts(len(direct), rng=rng), 2),
    )
    return RunCalibration(
        of_nodes,
        fit_new_nodes(run, both, np.concatenate([is_true, is_true]), rng=rng, progress=progress),
        fit_relations(run, direct[is_true], rng=rng),
        tuple(snapshot.dataset.names.relation(each) for each in range(2 * num_relations)),
        labelled.negatives,
        labelled.num_true,
        labelled.num_false,
        run.opened.files.model_hash,
        labelled.num_given,
    )


def fit_new_nodes(
    run: FactRun,
    directed: IntArray,
    is_true: NDArray[np.bool_],
    *,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> Calibration | None:
    """A calibration of facts whose head arrived after training, from simulated nodes."""
    found = score_arrivals(run, directed, is_true, rng=rng, progress=progress)
    if found is None or min(found.is_true.sum(), (~found.is_true).sum()) < MIN_FACTS:
        return None
    return calibrate(
        found.scores,
        found.relations,
        found.features,
        found.is_true,
        num_groups=2 * run.dataset.train.num_relations,
        parts=random_parts(len(found.scores), rng=rng),
    )


def fit_relations(run: FactRun, facts: IntArray, *, rng: np.random.Generator) -> Calibration | None:
    """A calibration of relations, given head and tail, against drawn ones."""
    snapshot = run.snapshot
    false = drawn_relations(snapshot, facts, rng=rng)
    if len(false) < MIN_FACTS:
        return None
    both = np.concatenate([facts, false])
    return calibrate(
        relation_scores(snapshot, both),
        np.zeros(len(both), np.int64),
        node_features(snapshot, both[:, 0].astype(np.int64)),
        np.arange(len(both)) < len(facts),
        num_groups=1,
        parts=random_parts(len(both), rng=rng),
    )
