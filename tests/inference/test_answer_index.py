"""Answers from an index are the exact ones, with few exceptions, also after updates."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import sleep

import numpy as np
import pyarrow as pa
import pytest
import torch
from tests.tasks.couples import couples, experiment

from nodepiece.data.query_rows import numbered
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.errors import InputError
from nodepiece.graph.arrays import LongArray
from nodepiece.inference.answer_index import ApproximateAnswers, open_answer_index
from nodepiece.inference.links import LinkRun
from nodepiece.inference.neighbour_index import NeighbourIndex
from nodepiece.inference.run import load_links
from nodepiece.inference.update import compact, update_run
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment

pytest.importorskip("usearch")

Parts = tuple[str | None, str, str | None]
QUERIES: list[Parts] = [
    (f"person {number}", relation, None)
    for number in range(6)
    for relation in ("lives in", "married to")
] + [(None, "lives in", f"town {number}") for number in range(3)]


@pytest.fixture(scope="module", params=["rotate", "distmult"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    settings = experiment(epochs=1)
    settings = replace(settings, decoder=replace(settings.decoder, kind=request.param))
    run_experiment(LinkPrediction(settings, couples()), RunOptions(folder, torch.device("cpu")))
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> LinkRun:
    return load_links(shutil.copytree(trained, tmp_path / "run"))


@pytest.fixture
def index(run: LinkRun) -> ApproximateAnswers:
    return opened(run)


def opened(run: LinkRun) -> ApproximateAnswers:
    place = run.node_table().place
    assert place is not None
    return open_answer_index(run.snapshot, place.for_answers())


def moved_since(index: ApproximateAnswers, run: LinkRun) -> LongArray:
    """Wait until another thread has compared the stored vectors with those of the index."""
    while (moved := index.index.moved_since(run.snapshot)) is None:
        sleep(0.001)
    return moved


def answers(
    run: LinkRun,
    index: ApproximateAnswers | None,
    queries: Sequence[Parts] = QUERIES,
    top: int = 5,
    **options: bool,
) -> pa.Table:
    settings = replace(run.answer_settings(top, **options), approximate=index)
    rows = numbered(queries)
    tables = run.answer_many(rows, settings, on_refused=lambda refused: pytest.fail(refused.reason))
    return pa.concat_tables(tables)


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    for name in ("query", "head", "relation", "tail", "rank"):
        assert found[name].to_pylist() == expected[name].to_pylist(), name
    np.testing.assert_allclose(found["score"], expected["score"], atol=1e-3)


def test_answers_of_a_small_graph_are_the_exact_ones(
    run: LinkRun, index: ApproximateAnswers
) -> None:
    assert_same(answers(run, index), answers(run, None))
    known = answers(run, index, include_known=True)
    assert_same(known, answers(run, None, include_known=True))
    assert any(known["known"].to_pylist())


def test_the_recall_is_measured(index: ApproximateAnswers) -> None:
    stated = index.to_json()
    assert stated["recall_at_10"] == 1.0 and stated["queries"] > 50


def test_every_vector_of_a_small_index_is_found_however_often_it_is_built() -> None:
    vectors = torch.randn(200, 8, generator=torch.Generator().manual_seed(0))
    for _ in range(20):
        index = NeighbourIndex(vectors, None)
        index.prepare()
        keys, _ = index.search(vectors[:1], 200)
        assert set(keys[0].tolist()) == set(range(200))


def test_answers_follow_updates_and_a_new_base(run: LinkRun, index: ApproximateAnswers) -> None:
    update_run(run, add=[("Ida", "lives in", "town 1"), ("person 1", "lives in", "town 2")])
    moved_since(index, run)
    assert_same(answers(run, index), answers(run, None))
    update_run(run, remove_nodes=["person 9"])
    assert_same(answers(run, index), answers(run, None))
    compact(run)
    moved = moved_since(index, run)
    assert run.snapshot.names.node_id("Ida") in moved
    assert_same(answers(run, index), answers(run, None))


def test_removed_nodes_do_not_take_the_places_of_others(
    run: LinkRun, index: ApproximateAnswers
) -> None:
    query = QUERIES[1:2]
    best = answers(run, None, query, top=30)["tail"].to_pylist()
    gone = run.snapshot.names.node_ids(best)
    run.snapshot.__dict__["absent"] = np.sort(gone)  # as if no other node had changed
    found = answers(run, index, query)
    assert found.num_rows == 5
    assert_same(found, answers(run, None, query))


def test_nodes_that_the_index_does_not_reach_are_no_answers() -> None:
    vectors = torch.tensor(np.repeat(np.random.default_rng(0).normal(size=(20, 16)), 200, axis=0))
    neighbours = NeighbourIndex(vectors.float(), None)
    neighbours.prepare()
    keys, _ = neighbours.search(vectors[:5].float(), len(vectors))  # equal vectors are not linked
    for row in keys:
        found = row[row >= 0]
        assert len(set(found.tolist())) == len(found)


def test_while_vectors_are_compared_answers_are_exact(
    run: LinkRun, index: ApproximateAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index.index, "moved_since", lambda snapshot: None)
    monkeypatch.setattr(index.index, "search", lambda *_: pytest.fail("the index was used"))
    assert_same(answers(run, index), answers(run, None))


def test_assumed_facts_are_in_approximate_answers(run: LinkRun, index: ApproximateAnswers) -> None:
    assumed = run.with_facts([("Ida", "lives in", "town 1")])
    assert_same(answers(assumed, index), answers(assumed, None))


def test_an_index_is_stored_and_used_again(run: LinkRun, index: ApproximateAnswers) -> None:
    (stored,) = (run.folder / "index").glob("answers-*.usearch")
    before = stored.stat().st_mtime_ns
    assert_same(answers(run, opened(run)), answers(run, None))
    assert stored.stat().st_mtime_ns == before


def test_a_run_whose_scores_are_no_distances_is_refused(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = replace(run.model.decoder, tail_query=None)
    monkeypatch.setattr(type(run.model), "decoder", decoder)
    with pytest.raises(InputError, match="leave out --approximate"):
        opened(run)


def test_assumed_facts_that_change_all_vectors_leave_the_index_to_others(tmp_path: Path) -> None:
    settings = replace(experiment(epochs=1), graph=GraphLayerSettings(layers=1))
    task = LinkPrediction(settings, couples())
    run_experiment(task, RunOptions(tmp_path / "run", torch.device("cpu")))
    run = load_links(tmp_path / "run")
    index = opened(run)
    assumed = run.with_facts([("Ida", "lives in", "town 1")])
    assert assumed.snapshot.patched.base is not run.snapshot.patched.base
    assert_same(answers(assumed, index), answers(assumed, None))
    assert not index.index._comparing and index.index.moved_since(run.snapshot) is not None
