"""Many queries at once: the answers of single queries, as a table."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.golden.write import STORED_RUNS
from tests.inference.test_with_facts import NEW, trained
from tests.tasks.couples import experiment

from nodepiece.data.query_rows import numbered
from nodepiece.errors import InputError
from nodepiece.inference import bulk
from nodepiece.inference.facts import FactRun, fact_run
from nodepiece.inference.links import LinkRun
from nodepiece.inference.queries import Refused
from nodepiece.inference.run import load
from nodepiece.inference.update import update_run

MIXED = [
    ("person 0", "married to", "?"),
    ("?", "lives in", "town 1"),
    ("person 0", "", "person 1"),
    ("town 1", "inverse of lives in", None),
    ("person 3", "married to", "?"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> LinkRun:
    return trained(tmp_path_factory.mktemp("runs") / "run", experiment(epochs=3))


def alone(run: FactRun, parts: tuple[str | None, ...], **options: Any) -> list[tuple[str, float]]:
    """The answers of `predict`, with scores."""
    head, relation, tail = (None if part in ("?", "") else part for part in parts)
    found = run.predict(head=head, relation=relation, tail=tail, **options)
    return [(answer.name, answer.score) for answer in found]


def in_bulk(table: pa.Table, query: int) -> list[tuple[str, float]]:
    rows = [row for row in table.to_pylist() if row["query"] == query]
    assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
    return [(row[row["asked"]], row["score"]) for row in rows]


def agree(run: FactRun, queries: Sequence[tuple[str | None, ...]], **options: Any) -> None:
    table = run.predict_many(queries, **options)
    for number, query in enumerate(queries):
        expected = alone(run, query, **options)
        found = in_bulk(table, number)
        scores = [score for _, score in found]  # nearly equal ones may change places
        np.testing.assert_allclose(scores, [score for _, score in expected], atol=1e-5)
        assert dict(found) == pytest.approx(dict(expected), abs=1e-5)


@pytest.mark.parametrize("include_known", [False, True])
@pytest.mark.parametrize("seen_candidates", [False, True])
def test_the_answers_are_those_of_single_queries(
    run: LinkRun, include_known: bool, seen_candidates: bool
) -> None:
    agree(run, MIXED, top=50, include_known=include_known, seen_candidates=seen_candidates)


def test_the_rows_come_in_the_order_of_the_queries_with_all_three_parts(run: LinkRun) -> None:
    table = run.predict_many(MIXED, top=2)

    assert table.column_names == ["query", "asked", "head", "relation", "tail", "score", "rank"]
    assert table["query"].to_pylist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert table["asked"].to_pylist()[::2] == ["tail", "head", "relation", "tail", "tail"]
    assert set(table["tail"].to_pylist()[2:4]) == {"town 1"}
    assert table["relation"].to_pylist()[6] == "inverse of lives in"


def test_memory_is_bounded_by_chunks_that_do_not_change_the_answers(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run.predict_many(MIXED * 5, top=4)
    monkeypatch.setattr(bulk, "ROWS_AT_ONCE", 8)
    settings = run.answer_settings(4)

    tables = list(run.answer_many(numbered(MIXED * 5), settings, on_refused=lambda each: None))

    assert max(map(len, tables)) == 8
    assert pa.concat_tables(tables).drop("score").equals(expected.drop("score"))


def test_known_answers_are_marked(run: LinkRun) -> None:
    table = run.predict_many(MIXED[:1], top=50, include_known=True)

    known = [row["tail"] for row in table.to_pylist() if row["known"]]
    assert known == run.known(head="person 0", relation="married to")


def test_only_nodes_seen_at_that_end_are_candidates(run: LinkRun) -> None:
    table = run.predict_many([("person 0", "lives in", "?")], top=50, seen_candidates=True)

    assert set(table["tail"].to_pylist()) < {f"town {number}" for number in range(4)}


def test_a_table_is_a_list_of_queries(run: LinkRun) -> None:
    queries = pa.table({"tail": ["?", None], "head": ["person 0", "person 2"], "n": [1, 2]})
    queries = queries.append_column("relation", pa.array(["married to"] * 2))

    expected = run.predict_many([("person 0", "married to", "?"), ("person 2", "married to", "?")])
    assert run.predict_many(queries).equals(expected)
    with pytest.raises(InputError, match="no column 'relation' but tail, head, n; rename"):
        run.predict_many(queries.drop("relation"))


def test_an_array_is_a_list_of_queries(run: LinkRun) -> None:
    queries = [("person 0", "married to", "?"), ("?", "lives in", "town 1")]

    assert run.predict_many(np.array(queries)).equals(run.predict_many(queries))


def test_a_query_that_cannot_be_answered_is_named_by_its_position(run: LinkRun) -> None:
    for wrong, sentence in (
        (("person 00", "married to", "?"), "query 1: unknown node 'person 00'; did you mean"),
        (("person 0", "wed to", "?"), "query 1: unknown relation 'wed to'"),
        (("person 0", "?", "?"), "query 1: 2 of its parts are asked for; write [?] for one"),
        (("person 0", "married to", "person 1"), "query 1: 0 of its parts are asked for"),
        (("person 0", "married to"), "query 1: expected head, relation and tail, got"),
        (("person 0", 7, "?"), "query 1: names are text, got 7"),
    ):
        with pytest.raises(InputError, match=sentence):
            run.predict_many([MIXED[0], wrong])


def test_unknown_names_can_be_skipped_and_malformed_queries_cannot(run: LinkRun) -> None:
    table = run.predict_many(
        [MIXED[0], ("nobody", "lives in", "?"), MIXED[1]], top=1, skip_unknown=True
    )

    assert table["query"].to_pylist() == [0, 2]
    with pytest.raises(InputError, match="3 of its parts"):
        run.predict_many([("", "", "")], skip_unknown=True)


def test_only_the_first_refused_queries_get_suggestions(run: LinkRun) -> None:
    refused: list[Refused] = []
    rows = numbered([("person 00", "lives in", "?")] * 25)

    assert list(run.answer_many(rows, run.answer_settings(1), on_refused=refused.append)) == []
    assert len(refused) == 25
    assert "did you mean" in refused[19].reason and "did you mean" not in refused[20].reason


def test_no_queries_have_no_answers(run: LinkRun) -> None:
    assert len(run.predict_many([])) == 0


def test_assumed_facts_and_updates_count(run: LinkRun, tmp_path: Path) -> None:
    new = ("person 40", "married to", "?")
    agree(run.with_facts(NEW), [*MIXED, new], top=50)
    changed = load(shutil.copytree(run.folder, tmp_path / "run"))
    update_run(changed, add=NEW, remove_nodes=["person 1"])

    left = [query for query in (*MIXED, new) if "person 1" not in query]
    agree(fact_run(changed), left, top=50)
    table = changed.predict_many(left, top=50)
    assert "person 41" in dict(in_bulk(table, 0))
    assert "person 1" not in dict(in_bulk(table, 0))  # it is gone


def test_all_answers_are_those_of_the_state_at_the_beginning(
    run: LinkRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "ROWS_AT_ONCE", 8)
    changing = fact_run(load(shutil.copytree(run.folder, tmp_path / "run")))
    expected = changing.predict_many(MIXED, top=4)
    rows, settings = numbered(MIXED), changing.answer_settings(4)

    tables = changing.answer_many(rows, settings, on_refused=lambda each: None)
    found = [next(tables)]
    update_run(changing, add=NEW, remove_nodes=["person 7", "person 8"])
    found += tables

    assert pa.concat_tables(found).equals(expected)


@pytest.mark.parametrize("name", ["inductive", "out-of-sample", "walks", "updated"])
def test_runs_of_every_task_with_facts_answer(name: str) -> None:
    run = fact_run(load(STORED_RUNS / name))
    names = run.dataset.names
    head, relation, tail = run.dataset.train.triples[0].tolist()
    fact = names.node(head), names.relation(relation), names.node(tail)

    agree(run, [(*fact[:2], "?"), ("?", *fact[1:]), (fact[0], "?", fact[2])], top=5)


def test_a_run_of_node_classification_is_refused() -> None:
    run = load(STORED_RUNS / "classes")

    with pytest.raises(InputError, match="it predicts no facts; ask for the classes of a node"):
        run.predict_many([("a", "b", "?")])
    with pytest.raises(InputError, match="it predicts no facts; ask for the classes of a node"):
        run.known(head="a", relation="b")
    with pytest.raises(InputError, match="it predicts no facts"):
        run.score([("a", "b", "c")])
