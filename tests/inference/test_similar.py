"""The nodes with the most similar vectors, by all cosines."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.golden.write import STORED_RUNS
from tests.inference.test_with_facts import NEW, trained
from tests.tasks.couples import experiment

from nodepiece.errors import InputError
from nodepiece.inference import similar
from nodepiece.inference.links import LinkRun
from nodepiece.inference.opened_run import Run
from nodepiece.inference.run import load
from nodepiece.inference.update import update_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> LinkRun:
    return trained(tmp_path_factory.mktemp("runs") / "run", experiment(epochs=3))


def check(run: Run, node: str, top: int) -> None:
    names, vectors = run.node_names(), run.embed()
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = dict(zip(names, directions @ directions[names.index(node)], strict=True))
    del cosines[node]

    rows = run.similar(node, top=top).to_pylist()

    assert [row["rank"] for row in rows] == list(range(1, min(top, len(names) - 1) + 1))
    assert {row["node"] for row in rows} == {node}
    found = [row["similarity"] for row in rows]
    np.testing.assert_allclose(found, sorted(cosines.values(), reverse=True)[:top], atol=1e-5)
    near = {row["neighbour"]: row["similarity"] for row in rows}
    assert near == pytest.approx({name: cosines[name] for name in near}, abs=1e-5)


@pytest.mark.parametrize("top", [1, 7, 100])
def test_the_nearest_are_those_of_all_cosines(run: LinkRun, top: int) -> None:
    check(run, "person 3", top)


@pytest.mark.parametrize("name", ["classes", "inductive", "out-of-sample", "walks", "updated"])
def test_runs_of_every_task_have_similar_nodes(name: str) -> None:
    run = load(STORED_RUNS / name)

    check(run, run.node_names()[2], 5)


def test_all_nodes_are_compared_in_blocks(run: LinkRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similar, "MAX_ROWS", 7)

    table = run.similar(top=3)

    assert table["node"].to_pylist() == [name for name in run.node_names() for _ in range(3)]
    alone = run.similar(["person 9", "town 1"], top=3)
    rows = [row for row in table.to_pylist() if row["node"] in ("person 9", "town 1")]
    assert [row["neighbour"] for row in rows] == alone["neighbour"].to_pylist()


def test_the_graph_is_the_current_one(run: LinkRun, tmp_path: Path) -> None:
    check(run.with_facts(NEW), "person 40", 5)
    changed = load(shutil.copytree(run.folder, tmp_path / "run"))
    update_run(changed, add=NEW, remove_nodes=["person 1"])

    check(changed, "person 0", 100)
    with pytest.raises(InputError, match="node 'person 1' was removed from the graph"):
        changed.similar("person 1")


def test_wrong_names_and_numbers_are_refused(run: LinkRun) -> None:
    with pytest.raises(InputError, match="unknown node 'town 9'; did you mean 'town"):
        run.similar("town 9")
    with pytest.raises(InputError, match="top must be at least 1, got 0"):
        run.similar("town 1", top=0)


def found(run: Run, *, exact: bool) -> list[tuple[str, str]]:
    table = run.similar(top=5, exact=exact)
    return list(zip(table["node"].to_pylist(), table["neighbour"].to_pylist(), strict=True))


def agree(run: Run) -> None:
    """An index finds most of the nearest, and nothing nearer; equal vectors may change places."""
    pytest.importorskip("usearch")
    exact, approximate = run.similar(top=5, exact=True), run.similar(top=5, exact=False)
    assert exact["node"].to_pylist() == approximate["node"].to_pylist()
    found_by_index, nearest = (table["similarity"].to_numpy() for table in (approximate, exact))
    assert (found_by_index <= nearest + 1e-4).all()
    assert np.isclose(found_by_index, nearest, atol=1e-4).mean() > 0.8
    assert all(node != neighbour for node, neighbour in found(run, exact=False))


def test_an_index_is_stored_and_finds_the_same(run: LinkRun, tmp_path: Path) -> None:
    copied = load(shutil.copytree(run.folder, tmp_path / "run"))

    agree(copied)

    (path,) = (tmp_path / "run" / "index").glob("*.usearch")
    before = path.stat().st_mtime_ns
    agree(load(tmp_path / "run"))
    assert path.stat().st_mtime_ns == before  # it was not built again


def test_an_index_stays_right_after_updates(run: LinkRun, tmp_path: Path) -> None:
    pytest.importorskip("usearch")
    changed = load(shutil.copytree(run.folder, tmp_path / "run"))
    changed.similar(top=1, exact=False)
    for facts in (NEW[:1], NEW[1:]):
        update_run(changed, add=facts)
        agree(changed)
    update_run(changed, remove_nodes=["person 1"])

    agree(changed)
    agree(changed.with_facts([("person 50", "lives in", "town 1")]))
    assert "person 1" not in {name for pair in found(changed, exact=False) for name in pair}
    assert len(list((tmp_path / "run" / "index").glob("*.usearch"))) == 1  # others are removed


def test_a_damaged_index_is_built_again(run: LinkRun, tmp_path: Path) -> None:
    pytest.importorskip("usearch")
    copied = load(shutil.copytree(run.folder, tmp_path / "run"))
    copied.similar(top=1, exact=False)
    (path,) = (tmp_path / "run" / "index").glob("*.usearch")
    path.write_bytes(path.read_bytes()[:-100] + bytes(100))

    agree(load(tmp_path / "run"))


def test_an_index_that_cannot_be_stored_is_used_all_the_same(
    run: LinkRun, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copied = load(shutil.copytree(run.folder, tmp_path / "run"))
    (tmp_path / "run" / "index").write_text("not a folder")

    agree(copied)

    assert "was not stored" in caplog.text and "will be built again" in caplog.text


def test_without_the_library_of_the_index_the_sentence_says_what_to_do(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    monkeypatch.setattr(similar, "MAX_PAIRS", 100)

    with pytest.raises(InputError, match=r"pip install 'nodepiece\[index\]', .*or ask for exact"):
        run.similar()
