"""Are probabilities right for nodes that arrive after training? On CoDEx-S.

200 nodes are taken out with all their facts. A model is trained on the rest and calibrated. Each
node then arrives with 1 to 5 of its facts, and up to 10 of its others are asked for, with the node
given, next to as many false facts with another node that the relation has there.

    python -m benchmarks.arriving_nodes EXPERIMENT RUN

EXPERIMENT is a TOML file or a name; its dataset is not used. If there is a run in RUN already, that
one is evaluated.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

import nodepiece
from nodepiece.evaluation.triple_classification import probability_scores
from nodepiece.graph.arrays import IntArray
from nodepiece.inference.calibration import RunCalibration, calibrate_run
from nodepiece.inference.facts import FactRun, fact_run
from nodepiece.inference.labelled_facts import ATTEMPTS, tail_scores
from nodepiece.tokenizer.changing_graph import NamedFact

NUM_NODES, MAX_GIVEN, MAX_ASKED = 200, 5, 10


def named(dataset: nodepiece.Dataset, split: str) -> list[NamedFact]:
    names = dataset.names
    return [
        (names.node(head), names.relation(relation), names.node(tail))
        for head, relation, tail in dataset.part(split).tolist()
    ]


def arrivals(
    facts: list[NamedFact], late: set[str], known: set[str], *, rng: np.random.Generator
) -> tuple[list[NamedFact], list[NamedFact]]:
    """Facts that nodes arrive with, and others to ask for; each has one late and one known node."""
    own: dict[str, list[NamedFact]] = {}
    for fact in facts:
        ends = {fact[0], fact[2]}
        if len(ends & late) == 1 and len(ends & known) == 1:
            own.setdefault((ends & late).pop(), []).append(fact)
    given, asked = [], []
    for theirs in own.values():
        shuffled = [theirs[place] for place in rng.permutation(len(theirs))]
        number = min(int(rng.integers(1, MAX_GIVEN + 1)), max(1, len(theirs) - 1))
        given += shuffled[:number]
        asked += shuffled[number : number + MAX_ASKED]
    return given, asked


def directed_facts(run: FactRun, asked: list[NamedFact], late: set[str]) -> IntArray:
    """By ids, with the late node as the head, of the inverse relation where it was the tail."""
    names, num_relations = run.dataset.names, run.dataset.train.num_relations
    rows = []
    for head, relation, tail in asked:
        ids = names.node_id(head), names.relation_id(relation), names.node_id(tail)
        rows.append(ids if head in late else (ids[2], ids[1] + num_relations, ids[0]))
    return np.array(rows, np.int32)


def false_facts(run: FactRun, true: IntArray, *, rng: np.random.Generator) -> IntArray:
    stated, false = set(map(tuple, true.tolist())), true.copy()
    known = run.snapshot.candidates.known_tails
    for row in false:
        seen = run.snapshot.candidates.seen_tails(int(row[1]))
        for _ in range(ATTEMPTS):
            row[2] = seen[rng.integers(len(seen))] if len(seen) else row[2]
            if tuple(row.tolist()) not in stated and not known.contains(row[None])[0]:
                break
    return false


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("experiment")
    parser.add_argument("run", type=Path)
    options = parser.parse_args()
    dataset, rng = nodepiece.open_dataset("codex-s"), np.random.default_rng(0)
    nodes = sorted(dataset.names.nodes.to_pylist())
    late = set(rng.choice(nodes, NUM_NODES, replace=False).tolist())
    parts = {split: named(dataset, split) for split in ("train", "valid", "test")}
    rest = {split: [f for f in facts if not late & {*f[::2]}] for split, facts in parts.items()}
    if (options.run / "model.safetensors").is_file():
        trained = fact_run(nodepiece.load(options.run))
    else:
        trained = fact_run(
            nodepiece.train(
                options.experiment,
                options.run,
                data=rest["train"],
                valid=rest["valid"],
                test=rest["test"],
            )
        )
    calibration = calibrate_run(trained)
    every = [fact for facts in parts.values() for fact in facts]
    given, asked = arrivals(every, late, set(trained.node_names()), rng=rng)
    run = fact_run(trained.with_facts(given))
    true = directed_facts(run, asked, late)
    facts = np.concatenate([true, false_facts(run, true, rng=rng)])
    is_true = np.arange(len(facts)) < len(true)
    snapshot, num_trained = run.snapshot, run.num_trained
    scores = tail_scores(snapshot, facts)

    def found(chosen: RunCalibration) -> dict[str, float]:
        likely = chosen.probabilities(snapshot, facts, scores, num_trained=num_trained)
        return probability_scores(likely, is_true)

    result = {
        "given": len(given),
        "asked": len(asked),
        "as nodes that arrived": found(calibration),
        "as trained nodes": found(replace(calibration, of_new_nodes=None)),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
