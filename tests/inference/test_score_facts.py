"""Scores and ranks of given facts: those of evaluation and prediction."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.golden.write import STORED_RUNS
from tests.inference.test_with_facts import trained
from tests.tasks.couples import experiment

from nodepiece.errors import InputError
from nodepiece.inference import queries
from nodepiece.inference.facts import FactRun, fact_run
from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load
from nodepiece.inference.update import update_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> LinkRun:
    return trained(tmp_path_factory.mktemp("runs") / "run", experiment(epochs=3))


def facts_of(run: FactRun, split: str) -> list[tuple[str, str, str]]:
    names = run.dataset.names
    triples = run.dataset.part(split).tolist()
    return [(names.node(h), names.relation(r), names.node(t)) for h, r, t in triples]


@pytest.mark.parametrize("name", ["", "walks"])
def test_the_ranks_are_those_of_evaluation(run: LinkRun, name: str) -> None:
    opened = fact_run(load(STORED_RUNS / name)) if name else run

    table = opened.score(facts_of(opened, "test"))

    ranks = np.concatenate([table["tail_rank"], table["head_rank"]])
    assert (1 / ranks).mean() == pytest.approx(opened.evaluate("test").scores["mrr"])
    assert table["known"].to_pylist() == [True] * len(table)


def test_the_score_is_that_of_the_tail_among_the_answers(run: LinkRun) -> None:
    (row,) = run.score([("person 0", "lives in", "town 0")]).to_pylist()

    answers = run.predict(head="person 0", relation="lives in", top=50, include_known=True)
    (score,) = (answer.score for answer in answers if answer.name == "town 0")
    assert row["score"] == pytest.approx(score, abs=1e-5)
    assert not row["known"]


def test_the_inverse_of_a_fact_exchanges_its_ranks(run: LinkRun) -> None:
    direct, inverse = run.score(
        [("person 0", "lives in", "town 0"), ("town 0", "inverse of lives in", "person 0")]
    ).to_pylist()

    assert (direct["head_rank"], direct["tail_rank"]) == (
        inverse["tail_rank"],
        inverse["head_rank"],
    )
    answers = run.predict(relation="lives in", tail="town 0", top=50, include_known=True)
    (score,) = (answer.score for answer in answers if answer.name == "person 0")
    assert inverse["score"] == pytest.approx(score, abs=1e-5)


def test_many_facts_are_scored_in_chunks(run: LinkRun, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = facts_of(run, "train")
    expected = run.score(facts)
    monkeypatch.setattr(queries, "ROWS_AT_ONCE", 7)

    table = run.score(facts)

    assert table["fact"].to_pylist() == list(range(len(facts)))
    assert table["tail_rank"].to_pylist() == expected["tail_rank"].to_pylist()


def test_a_fact_that_asks_or_names_what_is_unknown_is_refused(run: LinkRun) -> None:
    with pytest.raises(InputError, match="fact 0: it asks for a part; give head, relation"):
        run.score([("person 0", "lives in", "?")])
    with pytest.raises(InputError, match="fact 0: unknown node 'town 9'; did you mean"):
        run.score([("person 0", "lives in", "town 9")])
    assert len(run.score([("person 0", "lives in", "town 9")], skip_unknown=True)) == 0


def test_a_fact_with_a_removed_node_is_refused(run: LinkRun, tmp_path: Path) -> None:
    changed = load(shutil.copytree(run.folder, tmp_path / "run"))
    update_run(changed, remove_nodes=["person 1"])

    table = changed.score(
        [("person 0", "married to", "person 1"), ("person 2", "lives in", "town 1")],
        skip_unknown=True,
    )

    assert table["fact"].to_pylist() == [1]
    with pytest.raises(InputError, match="fact 0: a node of it was removed from the graph"):
        changed.score([("person 0", "married to", "person 1")])
