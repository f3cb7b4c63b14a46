"""The likeliest missing facts: those that scoring every possible fact finds."""

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from tests.golden.write import STORED_RUNS
from tests.inference.test_with_facts import NEW, trained
from tests.tasks.couples import experiment

from nodepiece.data.dataset import SPLITS
from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.errors import InputError
from nodepiece.inference import discover, fact_search
from nodepiece.inference.facts import FactRun, fact_run
from nodepiece.inference.pair_search import Best
from nodepiece.inference.run import load
from nodepiece.inference.snapshot import Snapshot
from nodepiece.inference.update import update_run

Fact = tuple[str, str, str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> FactRun:
    return trained(tmp_path_factory.mktemp("runs") / "run", experiment(epochs=3))


def every_fact(run: FactRun, *, any_candidate: bool = False) -> dict[Fact, float]:
    """The scores of all possible facts that are not known, one query after the other."""
    dataset, names = run.dataset, run.dataset.names
    known = {tuple(fact) for split in SPLITS for fact in dataset.part(split).tolist()}
    train = dataset.train.triples
    scores = {}
    for relation in range(dataset.train.num_relations):
        mine = train[train[:, 1] == relation]
        heads, tails = set(mine[:, 0].tolist()), set(mine[:, 2].tolist())
        for head in range(dataset.num_nodes) if any_candidate else sorted(heads):
            row = run.snapshot.score_tails(torch.tensor([head]), torch.tensor([relation]))[0]
            for tail in range(dataset.num_nodes) if any_candidate else sorted(tails):
                if (head, relation, tail) not in known and head != tail:
                    fact = names.node(head), names.relation(relation), names.node(tail)
                    scores[fact] = float(row[tail])
    return scores


def facts_of(table: pa.Table) -> list[Fact]:
    return [(row["head"], row["relation"], row["tail"]) for row in table.to_pylist()]


def check(table: pa.Table, scores: dict[Fact, float], top: int) -> None:
    """The table has the best of these facts; nearly equal ones may change places."""
    expected = sorted(scores.values(), reverse=True)[:top]
    np.testing.assert_allclose(table["score"].to_numpy(), expected, atol=1e-4)
    found = facts_of(table)
    assert len(set(found)) == len(found)
    np.testing.assert_allclose([scores[fact] for fact in found], expected, atol=1e-4)
    assert table["rank"].to_pylist() == list(range(1, len(found) + 1))


@pytest.mark.parametrize("top", [5, 200, 10_000])
@pytest.mark.parametrize("any_candidate", [False, True])
def test_they_are_those_of_all_scores(run: FactRun, top: int, any_candidate: bool) -> None:
    table = run.discover(top=top, any_candidate=any_candidate)

    check(table, every_fact(run, any_candidate=any_candidate), top)


@pytest.mark.parametrize("kind", ["transe", "complex", "rotate", "transe-l1"])
def test_any_decoder_will_do(kind: str, tmp_path: Path) -> None:
    settings = replace(experiment(epochs=1), decoder=DecoderSettings(kind))
    run = trained(tmp_path / "run", settings)

    check(run.discover(top=50), every_fact(run), 50)


def test_few_facts_are_in_memory_at_once(run: FactRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where scores are no products of vectors, as with path scorers."""
    monkeypatch.setattr(type(run.snapshot), "vector_scores", lambda snapshot: None)
    sizes = []
    add = Best.add

    def counted(best: Best, scores: Any, triples: Any) -> None:
        sizes.append(len(scores))
        add(best, scores, triples)

    monkeypatch.setattr(Best, "add", counted)
    monkeypatch.setattr(fact_search, "FACTS_AT_ONCE", 100)

    check(run.discover(top=20), every_fact(run), 20)
    assert sizes[0] <= 100  # then a fact has to exceed others


@pytest.mark.parametrize("name", ["walks", "inductive", "out-of-sample", "updated"])
def test_runs_of_every_task_with_facts_have_missing_facts(name: str) -> None:
    run = fact_run(load(STORED_RUNS / name))

    table = run.discover(top=20)

    scores = every_fact(run)
    check(table, {fact: score for fact, score in scores.items() if np.isfinite(score)}, 20)


def test_relations_heads_and_tails_limit_them(run: FactRun) -> None:
    table = run.discover(
        relations=["lives in"], heads=["person 0", "person 5"], tails=["town 0", "town 1"]
    )

    possible = [
        (head, "lives in", tail)
        for head in ("person 0", "person 5")
        for tail in ("town 0", "town 1")
        if tail not in run.known(head=head, relation="lives in")
    ]
    assert sorted(facts_of(table)) == possible


def test_facts_below_a_score_are_left_out(run: FactRun) -> None:
    scores = sorted(every_fact(run).values(), reverse=True)

    table = run.discover(top=1000, min_score=scores[7] - 1e-4)

    assert 8 <= len(table) < 20


@pytest.mark.parametrize("per_node", [1, 2])
@pytest.mark.parametrize("at_once", [4, 10_000])
def test_a_node_occurs_in_a_few_facts_at_most(
    run: FactRun, per_node: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discover, "ROUND_FACTS", at_once)
    number: Counter[str] = Counter()
    expected = []
    for (head, _, tail), score in sorted(every_fact(run).items(), key=lambda item: -item[1]):
        if number[head] < per_node and number[tail] < per_node:
            expected.append(score)
            number.update([head, tail])

    table = run.discover(top=12, per_node=per_node)

    np.testing.assert_allclose(table["score"].to_numpy(), expected[:12], atol=1e-4)
    ends = Counter(table["head"].to_pylist() + table["tail"].to_pylist())
    assert max(ends.values()) <= per_node


def test_the_search_ends_where_all_nodes_have_enough_facts(run: FactRun) -> None:
    table = run.discover(top=1000, per_node=1, relations=["lives in"])

    assert 0 < len(table) <= 4  # there are four towns


def test_without_candidates_there_are_no_facts(run: FactRun) -> None:
    assert len(run.discover(relations=["lives in"], heads=["town 0"])) == 0


def test_the_graph_is_the_current_one(run: FactRun, tmp_path: Path) -> None:
    assumed = run.with_facts(NEW)
    assert isinstance(assumed, FactRun)
    check(assumed.discover(top=40), every_fact(assumed), 40)
    changed = fact_run(load(shutil.copytree(run.folder, tmp_path / "run")))
    update_run(changed, add=NEW, remove_nodes=["person 2"])

    table = changed.discover(top=10_000)

    names = {*table["head"].to_pylist(), *table["tail"].to_pylist()}
    assert "person 40" in names and "person 2" not in names


def with_probabilities(
    run: Any, triples: Any, scores: Any, *, snapshot: Any = None, by_relation: bool = True
) -> np.ndarray[Any, Any]:
    """Relation 1 is likelier than relation 0 at any score."""
    return np.asarray(triples[:, 1] / 2 + 0.5 / (1 + np.exp(-scores)))


def test_with_a_calibration_they_come_by_probability(
    run: FactRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.inference.calibration.probabilities", with_probabilities)

    table = run.discover(top=30, min_probability=0.5)

    assert set(table["relation"].to_pylist()) == {"lives in"}
    assert table["probability"].to_pylist() == sorted(table["probability"].to_pylist())[::-1]
    many = run.predict_many([("person 0", "lives in", "?")], top=2)
    assert many["probability"][0].as_py() > 0.5
    assert run.score([("person 0", "lives in", "town 0")])["probability"][0].as_py() > 0.5


@pytest.mark.parametrize("at_once", [4, 10_000])
def test_with_a_calibration_a_node_occurs_in_a_few_facts_of_all_relations_together(
    run: FactRun, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.inference.calibration.probabilities", with_probabilities)
    monkeypatch.setattr(discover, "ROUND_FACTS", at_once)
    relations = run.dataset.names.relations.to_pylist()
    number: Counter[str] = Counter()
    expected = []
    by_probability = sorted(
        every_fact(run).items(), key=lambda item: (-relations.index(item[0][1]), -item[1])
    )
    for (head, _, tail), score in by_probability:
        if number[head] < 2 and number[tail] < 2:
            expected.append(score)
            number.update([head, tail])

    table = run.discover(top=25, per_node=2)

    assert len(set(table["relation"].to_pylist())) > 1
    np.testing.assert_allclose(table["score"].to_numpy(), expected[:25], atol=1e-4)
    ends = Counter(table["head"].to_pylist() + table["tail"].to_pylist())
    assert max(ends.values()) == 2


def test_a_removed_node_is_refused(run: FactRun, tmp_path: Path) -> None:
    changed = fact_run(load(shutil.copytree(run.folder, tmp_path / "run")))
    update_run(changed, remove_nodes=["person 2"])

    with pytest.raises(InputError, match="node 'person 2' was removed from the graph"):
        changed.discover(heads=["person 1", "person 2"])


def test_what_cannot_be_looked_for_is_refused(run: FactRun) -> None:
    with pytest.raises(InputError, match="unknown relation 'lives im'; did you mean 'lives in'"):
        run.discover(relations=["lives im"])
    with pytest.raises(InputError, match="the other direction; name that one"):
        run.discover(relations=["inverse of lives in"])
    with pytest.raises(InputError, match="unknown node 'town 9'; did you mean"):
        run.discover(tails=["town 9"])
    with pytest.raises(InputError, match="top and per_node must be at least 1, got 0"):
        run.discover(top=0)
    with pytest.raises(InputError, match="min_probability needs a run with calibrated"):
        run.discover(min_probability=0.5)
    with pytest.raises(InputError, match="it predicts no facts"):
        load(STORED_RUNS / "classes").discover()


def test_vectors_that_are_not_finite_are_refused(run: FactRun, tmp_path: Path) -> None:
    damaged = fact_run(load(shutil.copytree(run.folder, tmp_path / "run")))
    with torch.no_grad():
        for weights in damaged.model.parameters():
            weights.fill_(torch.nan)
    with pytest.raises(InputError, match="not finite, or too large"):
        damaged.discover(top=3)


def test_a_search_that_scores_many_queries_says_so(
    run: FactRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run.discover(top=1)
    assert not caplog.records  # vectors are searched, and not query by query
    monkeypatch.setattr(discover, "FEW_QUERIES", 3)
    monkeypatch.setattr(discover, "MANY_SECONDS", 0.0)
    monkeypatch.setattr(Snapshot, "vector_scores", lambda _: None)
    run.discover(top=1)
    facts = run.dataset.train.triples
    num_queries = len(np.unique(facts[:, :2], axis=0))
    said = f"all {num_queries} queries (head, relation, ?) are scored, in about "
    assert said in caplog.text


def test_a_stopped_search_has_the_best_facts_of_the_queries_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fact_search, "QUERIES_AT_ONCE", 4)
    walks = fact_run(load(STORED_RUNS / "walks"))
    seen: list[tuple[int, int]] = []

    table = walks.discover(
        top=5,
        progress=lambda *numbers: seen.append(numbers),
        should_stop=lambda: seen[-1][0] >= 4,
    )

    facts = walks.dataset.train.triples
    heads = np.unique(facts[facts[:, 1] == 0, 0])[:4].tolist()
    first = {walks.dataset.names.node(head) for head in heads}
    name = walks.dataset.names.relation(0)
    scores = {fact: s for fact, s in every_fact(walks).items() if fact[0] in first}
    check(table, {fact: score for fact, score in scores.items() if fact[1] == name}, 5)
    assert [done for done, _ in seen] == [0, 4]


def test_progress_counts_queries_where_every_one_is_scored(run: FactRun) -> None:
    walks = fact_run(load(STORED_RUNS / "walks"))
    seen: list[tuple[int, int]] = []

    walks.discover(top=3, progress=lambda *numbers: seen.append(numbers))

    facts = walks.dataset.train.triples
    num_queries = len(np.unique(facts[:, :2], axis=0))
    assert seen == sorted(seen) and seen[-1] == (num_queries, num_queries)
    run.discover(top=3, progress=lambda *numbers: seen.append(numbers))
    assert seen[-1] == (run.dataset.train.num_relations,) * 2  # vectors are searched
