"""Stored updates: by name, atomic, and visible when the run is opened again."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.inference.fresh_vectors import facts_of, fresh_vectors
from tests.tasks.couples import couples, experiment

from nodepiece.errors import InputError
from nodepiece.files import partial_prefix
from nodepiece.inference import graph_updates
from nodepiece.inference.graph_updates import UPDATES_FOLDER, write_lock
from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load_links
from nodepiece.inference.update import Updated, keep_vectors, update_run
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment

NEWCOMERS = [
    ("Ida", "lives in", "town 1"),
    ("Ida", "married to", "Jo"),
    ("Jo", "lives in", "town 1"),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    task = LinkPrediction(experiment(epochs=3), couples())
    run_experiment(task, RunOptions(folder, torch.device("cpu")))
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> LinkRun:
    return load_links(shutil.copytree(trained, tmp_path / "run"))


def assert_fresh(run: LinkRun) -> None:
    torch.testing.assert_close(run.node_vectors, fresh_vectors(run))


def test_an_update_lasts_and_changes_only_what_it_must(run: LinkRun) -> None:
    before = facts_of(run)
    vectors = run.node_vectors.clone()
    updated = update_run(run, add=NEWCOMERS)
    assert updated == Updated(3, 0, 2, 0, 0, 0, updated.num_tokens, updated.num_tokens)
    assert updated.num_tokens < 20
    opened = load_links(run.folder)
    for answering in (run, opened):
        assert facts_of(answering) == before | set(NEWCOMERS)
        assert_fresh(answering)
        assert answering.known(head="Ida", relation="married to") == ["Jo"]
    is_same = (opened.node_vectors[: len(vectors)] == vectors).all(dim=1)
    assert int((~is_same).sum()) <= updated.num_tokens - 2


def test_vectors_that_are_kept_are_not_computed_again(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert keep_vectors(run) == run.dataset.num_nodes
    assert keep_vectors(run) == 0
    opened = load_links(run.folder)
    monkeypatch.setattr(opened.model, "node_vectors", None)
    torch.testing.assert_close(opened.node_vectors, fresh_vectors(run))
    asked = {"head": "person 3", "relation": "lives in"}
    assert opened.predict(**asked) == run.predict(**asked)  # type: ignore[arg-type]
    update_run(opened, add=NEWCOMERS)
    assert_fresh(load_links(run.folder))


def test_updates_follow_each_other_from_any_process(run: LinkRun) -> None:
    other = load_links(run.folder)
    update_run(run, add=NEWCOMERS)
    update_run(other, remove=[("Ida", "married to", "Jo")], add=[("Kim", "lives in", "town 0")])
    update_run(run, add=[("Kim", "married to", "Ida"), ("person 3", "lives in", "town 2")])
    facts = facts_of(load_links(run.folder))
    assert ("Kim", "married to", "Ida") in facts and ("Ida", "married to", "Jo") not in facts
    assert facts_of(run) == facts
    assert_fresh(run)
    assert_fresh(load_links(run.folder))


def test_who_has_opened_a_run_keeps_what_was_opened(run: LinkRun) -> None:
    update_run(run, add=NEWCOMERS)
    reader = load_links(run.folder)
    before = reader.node_vectors.clone()
    update_run(run, remove_nodes=["Ida"], add=[("person 0", "lives in", "town 3")])
    assert reader.known(head="Ida", relation="lives in") == ["town 1"]
    assert torch.equal(reader.node_vectors, before)
    reader.refresh()
    assert reader.known(head="Ida", relation="lives in") == []


def test_a_removed_node_is_no_answer_and_comes_back_with_a_fact(run: LinkRun) -> None:
    update_run(run, remove_nodes=["person 1"])
    run = load_links(run.folder)
    names = {a.name for a in run.predict(relation="lives in", tail="town 0", top=99)}
    assert "person 1" not in names
    assert_fresh(run)
    update_run(run, add=[("person 1", "married to", "person 0")])
    names = {a.name for a in run.predict(relation="lives in", tail="town 0", top=99)}
    assert "person 1" in names
    assert_fresh(run)


def test_batches_are_folded_into_a_new_base_and_nothing_is_lost(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_updates, "COMPACT_AFTER", 3)
    reader = None
    for n in range(8):
        update_run(
            run, add=[(f"new {n}", "lives in", f"town {n % 4}")], remove_nodes=[f"person {n}"]
        )
        reader = reader or load_links(run.folder)
    assert reader is not None and reader.known(head="new 0", relation="lives in") == ["town 0"]
    opened = load_links(run.folder)
    assert opened.updates is not None
    assert opened.updates.state.number == 8 and len(opened.updates.state.batches) < 3
    assert facts_of(opened) == facts_of(run)
    assert np.count_nonzero(~opened.is_present) == 8
    assert_fresh(opened)
    assert len(list((run.folder / UPDATES_FOLDER).glob("base-*"))) == 1


def test_facts_may_be_assumed_on_top_of_an_update(run: LinkRun) -> None:
    update_run(run, add=NEWCOMERS)
    assumed = load_links(run.folder).with_facts([("Kim", "married to", "Ida")])
    assert_fresh(assumed)


def test_evaluation_is_of_the_run_as_it_was_trained(run: LinkRun) -> None:
    before = run.evaluate("test").scores
    update_run(run, remove_nodes=["town 0"])
    assert load_links(run.folder).evaluate("test").scores == before


def test_a_second_writer_is_refused(run: LinkRun) -> None:
    with write_lock(run.folder), pytest.raises(InputError, match=r"another update .* is under way"):
        update_run(run, add=NEWCOMERS)
    update_run(run, add=NEWCOMERS)


def test_a_refused_batch_changes_nothing(run: LinkRun) -> None:
    update_run(run, add=NEWCOMERS)
    with pytest.raises(InputError, match="not seen in training"):
        update_run(run, add=[("Kim", "knows", "Ida")])
    with pytest.raises(InputError, match="unknown node 'Kim'"):
        update_run(run, remove=[("Kim", "lives in", "town 1")])
    assert facts_of(load_links(run.folder)) == facts_of(run)
    assert_fresh(run)


def test_a_batch_that_cannot_be_written_did_not_happen(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    update_run(run, add=NEWCOMERS)
    before = facts_of(run)

    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("nodepiece.inference.graph_update.write_bytes", fail)
        with pytest.raises(OSError, match="no space"):
            update_run(run, add=[("Kim", "lives in", "town 1")])
    assert facts_of(run) == before
    update_run(run, add=[("Kim", "lives in", "town 2")])
    assert_fresh(run)


def test_a_batch_that_stops_half_way_in_memory_did_not_happen(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    update_run(run, add=NEWCOMERS)
    before = facts_of(run)

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("nodepiece.inference.update.changed_vectors", stop)
        with pytest.raises(KeyboardInterrupt):
            update_run(run, add=[("Kim", "lives in", "town 1")])
    assert facts_of(run) == before
    update_run(run, add=[("Lee", "lives in", "town 2")])
    assert facts_of(load_links(run.folder)) == before | {("Lee", "lives in", "town 2")}
    assert_fresh(run)


def test_a_batch_that_comes_to_nothing_leaves_no_trace(run: LinkRun) -> None:
    known = min(facts_of(run))
    updated = update_run(run, add=[known], remove=[("person 0", "married to", "town 0")])
    assert updated == Updated(0, 0, 0, 0, 1, 1, 0, 0)
    assert run.updates is None and not list((run.folder / UPDATES_FOLDER).glob("base-*"))


def test_a_node_without_facts_comes_goes_and_comes_back(run: LinkRun) -> None:
    update_run(run, add_nodes=["Ida"])
    update_run(run, remove_nodes=["Ida", "Ida"])
    assert "Ida" not in load_links(run.folder).node_names()
    update_run(run, add_nodes=["Ida"])
    assert load_links(run.folder).node_names()[-1] == "Ida"
    assert_fresh(run)


def test_a_run_with_assumed_facts_cannot_be_updated(run: LinkRun) -> None:
    with pytest.raises(InputError, match="update the run itself"):
        update_run(run.with_facts(NEWCOMERS), add=[("Kim", "lives in", "town 1")])
    assert not (run.folder / UPDATES_FOLDER).exists()


def test_whoever_removes_all_updates_starts_anew(run: LinkRun) -> None:
    before = facts_of(run)
    update_run(run, add=NEWCOMERS)
    shutil.rmtree(run.folder / UPDATES_FOLDER)
    update_run(run, add=[("Kim", "lives in", "town 1")])
    for answering in (run, load_links(run.folder)):
        assert facts_of(answering) == before | {("Kim", "lives in", "town 1")}
        assert_fresh(answering)


def test_files_of_a_killed_compaction_are_removed_by_the_next_one(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    update_run(run, add=NEWCOMERS)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    prefix = partial_prefix(run.folder / UPDATES_FOLDER / "base-000001")
    (run.folder / UPDATES_FOLDER / f"{prefix}{ended.pid}-0123abcd").mkdir()
    monkeypatch.setattr(graph_updates, "COMPACT_AFTER", 1)
    update_run(run, add=[("Kim", "lives in", "town 1")])
    left = sorted(path.name for path in (run.folder / UPDATES_FOLDER).iterdir())
    assert left == ["base-000002", "lock"]


def test_vectors_of_other_weights_are_refused(run: LinkRun) -> None:
    update_run(run, add=NEWCOMERS)
    (base,) = (run.folder / UPDATES_FOLDER).glob("base-*")
    header = json.loads((base / "live.json").read_text()) | {"model_sha256": "0" * 64}
    (base / "live.json").write_text(json.dumps(header))
    with pytest.raises(InputError, match="vectors of other weights"):
        run.refresh()


def test_a_missing_batch_is_named(run: LinkRun) -> None:
    for n in range(3):
        update_run(run, add=[(f"new {n}", "lives in", "town 1")])
    (run.folder / UPDATES_FOLDER / "000002.safetensors").unlink()
    with pytest.raises(InputError, match="lacks batch 2"):
        load_links(run.folder)


@pytest.mark.parametrize("name", ["vectors.npy", "facts.npy", "present.npy", "live.json"])
def test_a_damaged_base_is_named_and_what_to_do_is_said(run: LinkRun, name: str) -> None:
    update_run(run, add=NEWCOMERS)
    (base,) = (run.folder / UPDATES_FOLDER).glob("base-*")
    content = (base / name).read_bytes()
    for damage in (content[: len(content) // 2], b""):
        (base / name).write_bytes(damage)
        with pytest.raises(InputError, match=r"base-0000.* is damaged .* or remove"):
            load_links(run.folder)
    (base / name).unlink()
    with pytest.raises(InputError, match=r"base-0000.* is damaged .* or remove"):
        load_links(run.folder)
    (base / name).write_bytes(content)
    assert_fresh(load_links(run.folder))
