"""Nodes that arrive after training have a calibration of their own, from simulated ones.

Forty people in a ring: each is a friend of the next one and a colleague of the one after that.
"""

from pathlib import Path

import numpy as np
import pytest

import nodepiece
from nodepiece.inference.arriving_nodes import MAX_FACTS, few_facts, score_arrivals
from nodepiece.inference.calibration import calibrate_run, fit_new_nodes, probabilities
from nodepiece.inference.facts import FactRun, fact_run
from nodepiece.inference.links import LinkRun
from nodepiece.inference.node_features import node_features

FACTS = [
    (f"person {each}", relation, f"person {(each + step) % 40}")
    for each in range(40)
    for relation, step in (("friend of", 1), ("colleague of", 2))
]
VALID = FACTS[::5]
TRAIN = [fact for fact in FACTS if fact not in VALID]
FEW = ["training.epochs=3", "encoder.dim=8"]


def trained(folder: Path, *overrides: str) -> FactRun:
    chosen = [*FEW, *overrides]
    return fact_run(nodepiece.train(TRAIN, folder, valid=VALID, overrides=chosen, device="cpu"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> FactRun:
    run = trained(tmp_path_factory.mktemp("runs") / "run", "encoder.hidden_dim=8")
    calibrate_run(run)
    return run


def test_a_copy_has_some_facts_of_its_node(run: FactRun) -> None:
    assert isinstance(run, LinkRun)
    nodes = run.dataset.names.node_ids(["person 3", "person 9"]).astype(np.int32)

    facts, copied = few_facts(run, nodes, rng=np.random.default_rng(0))

    assert copied.tolist() == nodes.tolist()
    originals = [tuple(part.removesuffix(" (arriving)") for part in fact) for fact in facts]
    assert set(originals) <= set(TRAIN) and len(set(originals)) == len(facts)
    assert all(sum("(arriving)" in part for part in fact) == 1 for fact in facts)


def test_scored_arrivals_are_the_facts_about_copies(run: FactRun) -> None:
    facts = run.dataset.valid
    is_true = np.arange(len(facts)) < 5

    found = score_arrivals(run, facts, is_true, rng=np.random.default_rng(0))

    assert found is not None and len(found.scores) == len(facts)
    assert found.relations.tolist() == facts[:, 1].tolist()
    assert found.is_true.tolist() == is_true.tolist()
    assert np.isfinite(found.scores).all()
    num_facts = np.expm1(found.features[:, 0]).round()
    assert num_facts.min() >= 1 and num_facts.max() <= MAX_FACTS


def test_a_node_that_arrived_later_is_calibrated_as_one(run: FactRun) -> None:
    assumed = fact_run(run.with_facts([("stranger", "friend of", "person 20")]))
    found = calibrate_run(run)
    triples, scores = np.array([[40, 0, 3], [40, 2, 5], [7, 0, 3]], np.int32), np.array([1.0, 2, 3])

    said = probabilities(assumed, triples, scores)

    features = node_features(assumed.snapshot, triples[:, 0].astype(np.int64))
    assert said is not None and found.of_new_nodes is not None
    of_new = found.of_new_nodes.probabilities(scores, triples[:, 1].astype(np.int64), features)
    of_trained = found.of_nodes.probabilities(scores, triples[:, 1].astype(np.int64), features)
    assert said.tolist() == [*of_new[:2].tolist(), of_trained[2]]


def test_the_simulation_leaves_the_run_as_it_was(run: FactRun) -> None:
    before = run.node_names(), run.embed()

    calibrate_run(run)

    assert run.node_names() == before[0] and np.array_equal(run.embed(), before[1])
    assert not (run.folder / "live").exists()


def test_a_model_without_pieces_has_no_arriving_nodes(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", "encoder.kind=lookup", "graph.layers=0")
    facts, is_true = run.dataset.valid, np.ones(len(run.dataset.valid), np.bool_)

    assert fit_new_nodes(run, facts, is_true, rng=np.random.default_rng(0)) is None
    assert calibrate_run(run).of_new_nodes is None
