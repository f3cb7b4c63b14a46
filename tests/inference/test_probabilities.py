"""Probabilities of a run: fitted, stored, monotone, and evaluated by triple classification.

Forty people in a ring: each is a friend of the next one and a colleague of the one after that.
"""

import json
import logging
import shutil
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.golden.write import STORED_RUNS

import nodepiece
from nodepiece.data.verified_negatives import verified_negatives
from nodepiece.errors import InputError
from nodepiece.evaluation.calibration import both_ways
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray
from nodepiece.inference import calibration
from nodepiece.inference.bulk import Scoring
from nodepiece.inference.calibration import (
    FILE,
    calibrate_run,
    probabilities,
    stored_calibration,
)
from nodepiece.inference.classify_triples import BY_THRESHOLD, classify_triples
from nodepiece.inference.facts import FactRun, fact_run
from nodepiece.inference.labelled_facts import (
    DRAWN,
    drawn_negatives,
    drawn_relations,
    labelled_facts,
    tail_scores,
)
from nodepiece.inference.node_features import MAX_HOPS, node_features
from nodepiece.inference.opened_run import Run

FACTS = [
    (f"person {each}", relation, f"person {(each + step) % 40}")
    for each in range(40)
    for relation, step in (("friend of", 1), ("colleague of", 2))
]
VALID, TEST = FACTS[::5], FACTS[1::10]
TRAIN = [fact for fact in FACTS if fact not in VALID + TEST]
FALSE = [(f"person {each}", "friend of", f"person {(each + 20) % 40}") for each in range(20)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    few = ["training.epochs=8", "encoder.dim=16", "encoder.hidden_dim=16"]
    nodepiece.train(TRAIN, folder, valid=VALID, test=TEST, overrides=few, device="cpu")
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> FactRun:
    return fact_run(nodepiece.load(shutil.copytree(trained, tmp_path / "run")))


@pytest.fixture(scope="module")
def calibrated(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> FactRun:
    folder = shutil.copytree(trained, tmp_path_factory.mktemp("calibrated") / "run")
    run = nodepiece.load(folder)
    calibrate_run(run)
    return fact_run(run)


def ids(run: FactRun, fact: tuple[str, str, str]) -> IntArray:
    names = run.dataset.names
    return np.array([[names.node_id(fact[0]), names.relation_id(fact[1]), names.node_id(fact[2])]])


def test_a_run_has_no_probabilities_before_it_is_calibrated(run: FactRun) -> None:
    assert probabilities(run, np.zeros((2, 3), np.int32), np.zeros(2)) is None
    assert "probability" not in run.predict_many([("person 0", "friend of", "?")]).column_names
    (answer,) = run.predict(head="person 0", relation="friend of", top=1)
    assert answer.probability is None and "probability" not in answer.to_json()


def test_answers_have_probabilities_that_fall_with_their_rank(calibrated: FactRun) -> None:
    queries = [(f"person {each}", "friend of", "?") for each in range(5)]
    queries += [("?", "colleague of", "person 3"), ("person 1", "?", "person 2")]

    table = calibrated.predict_many(queries, top=30, include_known=True).to_pandas()

    assert table["probability"].between(0, 1).all()
    for _, answers in table.groupby("query"):
        assert answers["probability"].is_monotonic_decreasing


@pytest.mark.parametrize(
    "query",
    [
        ("person 1", "friend of", None),
        (None, "friend of", "person 1"),
        ("person 1", None, "person 2"),
    ],
)
def test_one_query_has_the_probabilities_of_many(
    calibrated: FactRun, query: tuple[str | None, str | None, str | None]
) -> None:
    head, relation, tail = query

    answers = calibrated.predict(head=head, relation=relation, tail=tail, top=4)
    table = calibrated.predict_many([tuple(part or "?" for part in query)], top=4)

    said = [answer.probability for answer in answers]
    assert said == pytest.approx(table["probability"].to_pylist(), abs=1e-6)
    assert answers[0].to_json()["probability"] == said[0]


@pytest.mark.parametrize(
    "ask",
    [
        lambda run: run.predict(head="person 3", relation="friend of"),
        lambda run: run.predict_many([("person 3", "friend of", "?")]),
        lambda run: run.score(TEST[:1]),
        lambda run: run.discover(top=3),
    ],
    ids=["predict", "predict_many", "score", "discover"],
)
def test_scores_and_probabilities_are_of_one_state_when_an_update_comes_between(
    calibrated: FactRun, ask: Callable[[FactRun], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copy(calibrated)
    before, fact = run.snapshot, ("stranger", "friend of", "person 3")
    after = fact_run(run.with_facts([fact])).snapshot
    used: list[Scoring] = []

    def after_an_update(run: Run, triples: IntArray, *rest: Any, **options: Any) -> Any:
        if len(triples):
            monkeypatch.setattr(run, "_snapshot", after)
        return probabilities(run, triples, *rest, **options)

    def features(snapshot: Scoring, nodes: LongArray) -> FloatArray:
        if len(nodes):
            used.append(snapshot)
        return node_features(snapshot, nodes)

    monkeypatch.setattr(calibration, "probabilities", after_an_update)
    monkeypatch.setattr(calibration, "node_features", features)
    ask(run)

    assert run.snapshot is after
    assert set(used) == {before}


def test_scored_facts_have_probabilities(calibrated: FactRun) -> None:
    table = calibrated.score(TEST)

    triples = np.concatenate([ids(calibrated, fact) for fact in TEST])
    num_relations = calibrated.dataset.train.num_relations
    inverse = triples[:, ::-1] + [0, num_relations, 0]
    both = [
        probabilities(calibrated, way, tail_scores(calibrated.snapshot, way))
        for way in (triples, inverse)
    ]
    odds = [each / (1 - each) for each in both if each is not None]
    expected = np.sqrt(odds[0] * odds[1])
    found = np.array(table["probability"])
    np.testing.assert_allclose(found / (1 - found), expected, rtol=1e-4)


def test_a_fact_and_its_inverse_are_as_probable(calibrated: FactRun) -> None:
    one, other = FACTS[3], (FACTS[3][2], "inverse of " + FACTS[3][1], FACTS[3][0])
    table = calibrated.score([one, other])
    assert table["probability"][0].as_py() == pytest.approx(table["probability"][1].as_py())


def test_an_explanation_has_the_probabilities_of_the_scored_fact(calibrated: FactRun) -> None:
    head, relation, tail = TEST[0]
    found = calibrated.explain(head=head, relation=relation, tail=tail, facts=0, paths=0)
    (row,) = calibrated.score([TEST[0]]).to_pylist()
    for name in ("tail_probability", "head_probability", "probability"):
        assert getattr(found, name) == pytest.approx(row[name])
    assert f"{found.tail_probability:.3f} by the query for the tail" in " ".join(str(found).split())


def test_a_scored_fact_has_the_probabilities_of_both_predictions(calibrated: FactRun) -> None:
    head, relation, tail = TEST[0]
    (row,) = calibrated.score([TEST[0]]).to_pylist()

    tails = calibrated.predict(head=head, relation=relation, top=40, include_known=True)
    heads = calibrated.predict(relation=relation, tail=tail, top=40, include_known=True)

    predicted = {"tail_probability": (tails, tail), "head_probability": (heads, head)}
    for name, (answers, wanted) in predicted.items():
        (found,) = [answer.probability for answer in answers if answer.name == wanted]
        assert row[name] == pytest.approx(found, abs=1e-5)


def test_the_probability_of_both_queries_has_the_mean_of_their_logits() -> None:
    found = both_ways(np.array([0.8, 0.5, 1.0]), np.array([0.8, 0.9, 0.0]))
    np.testing.assert_allclose(found, [0.8, 0.75, 0.5])


def test_the_file_is_json_and_says_what_it_was_fitted_to(calibrated: FactRun) -> None:
    content = json.loads((calibrated.folder / FILE).read_text())

    assert content["num_true"] == 16 and content["negatives"] == DRAWN
    assert content["relations"][2] == "inverse of friend of"
    assert "from 16 true and 16 false facts, drawn" in repr(stored_calibration(calibrated))


def test_calibrating_twice_gives_the_same(run: FactRun) -> None:
    assert calibrate_run(run).to_json() == calibrate_run(run).to_json()


def test_a_calibration_of_other_weights_is_not_used(
    run: FactRun, caplog: pytest.LogCaptureFixture
) -> None:
    calibrate_run(run)
    path = run.folder / FILE
    path.write_text(path.read_text().replace(run.opened.files.model_hash, "another"))

    with caplog.at_level(logging.WARNING, logger="nodepiece"):
        assert stored_calibration(run) is None
    assert "belongs to other weights" in caplog.text


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:100], "is damaged"),
        (lambda text: "[]", "is damaged"),
        (lambda text: text.replace('"spread": ', '"spread": -'), "would change the order"),
        (lambda text: text.replace('"friend of",', ""), "other relations or features"),
        (lambda text: text.replace('"format_version": 1', '"format_version": 9'), "newer"),
    ],
)
def test_a_damaged_calibration_is_refused(
    run: FactRun, damage: Callable[[str], str], message: str
) -> None:
    calibrate_run(run)
    path = run.folder / FILE
    path.write_text(damage(path.read_text()))

    with pytest.raises(InputError, match=message):
        stored_calibration(run)


def test_drawn_negatives_are_no_known_facts_and_have_nodes_of_the_relation(run: FactRun) -> None:
    snapshot, facts = run.snapshot, run.dataset.valid

    false = drawn_negatives(snapshot, facts, rng=np.random.default_rng(0))

    known = set(map(tuple, run.dataset.all_triples().tolist()))
    assert len(false) == len(facts) and not known & set(map(tuple, false.tolist()))
    changed = (false != facts).sum(axis=0).tolist()
    assert changed[1] == 0 and changed[0] == changed[2] == 8


def test_drawn_relations_are_not_known_of_the_pair(run: FactRun) -> None:
    facts = run.dataset.valid

    false = drawn_relations(run.snapshot, facts, rng=np.random.default_rng(0))

    assert np.array_equal(false[:, ::2], facts[:, ::2])
    assert not run.snapshot.candidates.known_tails.contains(false).any()


def test_a_negative_that_would_always_be_known_is_left_out(tmp_path: Path) -> None:
    facts = [(a, "same as", b) for a in "abc" for b in "abc"]  # there is no false fact
    overrides = ["training.epochs=1", "encoder.dim=4", "encoder.hidden_dim=4"]
    run = fact_run(nodepiece.train(facts, tmp_path / "run", overrides=overrides, device="cpu"))

    rng = np.random.default_rng(0)
    assert not len(drawn_negatives(run.snapshot, run.dataset.train.triples, rng=rng))


def test_scores_are_those_of_the_tails_of_their_queries(run: FactRun) -> None:
    triples = run.dataset.train.triples[:7]

    every = run.snapshot.score_tails(*torch.tensor(triples[:, :2].T.copy(), dtype=torch.int64))

    expected = every[range(7), triples[:, 2].tolist()].numpy()
    np.testing.assert_allclose(tail_scores(run.snapshot, triples), expected, rtol=1e-5)


def test_given_negatives_are_used_and_unknown_ones_left_out(
    run: FactRun, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="nodepiece"):
        found = calibrate_run(run, negatives=[*FALSE, ("nobody", "friend of", "person 1")])

    assert found.num_false == 20 and found.negatives == "verified: given"
    assert "left out 1 of the negatives" in caplog.text
    with pytest.raises(InputError, match="all 1 negatives name nodes or relations"):
        calibrate_run(run, negatives=[("nobody", "friend of", "person 1")])


def test_a_number_of_facts_limits_true_and_false_ones_alike(run: FactRun) -> None:
    found = calibrate_run(run, num_facts=8)
    given = calibrate_run(run, num_facts=8, negatives=FALSE)

    assert (found.num_true, found.num_false, found.num_given) == (8, 8, 16)
    assert (given.num_true, given.num_false) == (8, 10)  # of 16 and 20
    again = stored_calibration(run)
    assert again is not None and again.num_given == 16
    assert calibrate_run(run, num_facts=0).num_true == 16
    with pytest.raises(InputError, match="must be 0, for all, or more, got -1"):
        calibrate_run(run, num_facts=-1)


def test_on_a_cpu_a_run_with_walks_is_calibrated_with_a_bounded_number_of_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "FACTS_WITH_PATHS", 12)
    run = fact_run(nodepiece.load(shutil.copytree(STORED_RUNS / "walks", tmp_path / "run")))
    seen: list[tuple[int, int]] = []

    found = calibrate_run(run, facts=run.dataset.train, progress=lambda *n: seen.append(n))

    assert found.num_true == 12 < found.num_given == run.dataset.train.num_triples
    assert seen and all(done <= total for done, total in seen)


def test_verified_negatives_are_found_beside_the_facts(tmp_path: Path) -> None:
    (tmp_path / "valid_negatives.tsv.gz").touch()
    (tmp_path / "test.tsv").touch()

    assert verified_negatives(str(tmp_path), "valid") == tmp_path / "valid_negatives.tsv.gz"
    assert verified_negatives(str(tmp_path), "test") is None
    assert verified_negatives("no such dataset", "valid") is None


@pytest.mark.data
@pytest.mark.parametrize(("name", "number"), [("codex-s", 1_827), ("codex-m", 10_310)])
def test_codex_comes_with_verified_negatives(name: str, number: int) -> None:
    path = verified_negatives(name, "valid")

    assert path is not None and nodepiece.read_graph(path).num_triples == number


def test_nodes_are_described_by_their_facts_and_their_anchors(run: FactRun) -> None:
    node = run.dataset.names.node_id("person 20")
    assumed = run.with_facts([("stranger", "friend of", "person 20")])
    alone = run.with_facts([("one", "friend of", "other")])

    num_facts, hops = node_features(run.snapshot, np.array([node]))[0]
    stranger = node_features(fact_run(assumed).snapshot, np.array([40]))[0]

    assert num_facts == np.log1p(sum("person 20" in fact for fact in TRAIN))
    assert stranger.tolist() == [np.log1p(1), hops + 1]
    assert node_features(fact_run(alone).snapshot, np.array([40, 41]))[:, 1].max() == MAX_HOPS


def test_nodes_that_arrived_with_an_update_are_described_too(run: FactRun) -> None:
    before = fact_run(run.with_facts([("stranger", "friend of", "person 20")]))

    nodepiece.update_run(run, add=[("stranger", "friend of", "person 20")])

    after, assumed = (node_features(each.snapshot, np.array([40, 3])) for each in (run, before))
    np.testing.assert_array_equal(after, assumed)


def test_probabilities_follow_a_run_with_assumed_facts(calibrated: FactRun) -> None:
    assumed = calibrated.with_facts([("stranger", "friend of", "person 20")])

    table = assumed.predict_many([("stranger", "colleague of", "?")], top=3)

    assert all(0 < value < 1 for value in table["probability"].to_pylist())


def test_triple_classification_of_verified_negatives(run: FactRun) -> None:
    found = classify_triples(run, negatives=FALSE)

    assert not found.is_stored and not (run.folder / FILE).exists()
    assert found.report.scores["count"] == 8 + 20
    assert set(found.report.parts[BY_THRESHOLD]) == {"accuracy", "f1"}
    friends = sum("friend of" in fact for fact in TEST)
    assert found.report.details["relations"]["friend of"]["count"] == 20 + friends
    assert 0 <= found.report.scores["calibration_error"] <= 1
    assert found.reliability.count.sum() == 28
    assert json.dumps(found.to_json(), allow_nan=False)


def test_the_stored_calibration_is_the_one_that_is_evaluated(calibrated: FactRun) -> None:
    found = classify_triples(calibrated, split="valid")

    facts = labelled_facts(calibrated, "valid", rng=np.random.default_rng(0))
    said = probabilities(calibrated, facts.triples, tail_scores(calibrated.snapshot, facts.triples))
    assert found.is_stored and said is not None and len(said) == 32


def test_a_run_without_validation_facts_is_refused(tmp_path: Path) -> None:
    overrides = ["training.epochs=1", "encoder.dim=4", "encoder.hidden_dim=4"]
    run = nodepiece.train(FACTS, tmp_path / "run", overrides=overrides, device="cpu")

    with pytest.raises(InputError, match="has no valid facts; give some with --facts"):
        calibrate_run(run)
    with pytest.raises(InputError, match="run nodepiece calibrate with --facts FILE first"):
        classify_triples(run, facts=FACTS[20:40], negatives=FALSE)
    assert calibrate_run(run, facts=FACTS[:20], negatives=FALSE).num_true == 20
    found = classify_triples(run, facts=FACTS[20:40], negatives=FALSE)
    assert found.is_stored and found.report.scores["count"] == 40 and not found.report.parts


def test_a_run_of_another_task_is_refused(run: FactRun) -> None:
    other = object.__new__(Run)
    other.opened, other.task = run.opened, run.task

    with pytest.raises(InputError, match="it predicts no facts"):
        calibrate_run(other)
