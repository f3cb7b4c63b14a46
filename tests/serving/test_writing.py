"""Updates are durable when they are acknowledged, and answers state the version they are from."""

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import httpx
import pytest
from tests.inference.fresh_vectors import facts_of
from tests.serving.live_server import client_of, served
from tests.serving.test_reading import RUN, got

from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load_links
from nodepiece.inference.update import update_run
from nodepiece.inference.update_groups import Committed, GraphUpdate, commit_group
from nodepiece.serving import writer as writers
from nodepiece.serving.name_search import NameSearch
from nodepiece.serving.problems import Problem
from nodepiece.serving.settings import Limits, ServeSettings
from nodepiece.serving.writer import GraphWriter

IDA = ["Ida", "lives in", "town 1"]
JO = ["Jo", "lives in", "town 2"]
HOME = ["person 1", "lives in", "town 1"]


def update(client: httpx.Client, status: int = 200, **changes: Any) -> dict[str, Any]:
    return got(client.post(f"{RUN}/update", json=changes), status)


def known_towns(client: httpx.Client, name: str, **headers: str) -> tuple[int, list[str]]:
    found = got(client.get(f"{RUN}/node", params={"name": name}, headers=headers))
    return found["version"], [fact[2] for fact in found["facts"]]


def test_an_update_is_on_disk_and_in_answers_when_it_is_acknowledged(
    writing: httpx.Client, own_run: LinkRun
) -> None:
    assert update(writing, add=[IDA, JO]) == {
        "version": 1,
        "added": 2,
        "removed": 0,
        "new_nodes": 2,
        "added_facts": [IDA, JO],
        "new_node_names": ["Ida", "Jo"],
    }
    assert known_towns(writing, "Ida") == (1, ["town 1"])
    assert tuple(IDA) in facts_of(load_links(own_run.folder))
    assert update(writing, remove=[IDA], remove_nodes=["Jo"])["removed"] == 2
    assert (
        got(writing.get(f"{RUN}/predict", params={"head": "Ida", "relation": "lives in"}))[
            "version"
        ]
        == 2
    )
    got(writing.get(f"{RUN}/node", params={"name": "Jo"}), 404)


def test_a_node_that_was_added_is_found_by_a_search(writing: httpx.Client) -> None:
    update(writing, add=[["Inga Ida", "lives in", "town 1"]])
    for text in ("inga", "ga I"):
        found = got(writing.get(f"{RUN}/nodes", params={"search": text}))
        assert found == {"version": 1, "nodes": [{"name": "Inga Ida", "facts": 1}]}
    update(writing, remove_nodes=["Inga Ida"])
    assert got(writing.get(f"{RUN}/nodes", params={"search": "inga"}))["nodes"] == []


def test_an_index_of_names_is_built_again_when_many_were_added(
    writing: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.serving.node_finder.MAX_ADDED", 3)
    built = threading.Event()
    build = NameSearch.of

    def build_and_report(*arguments: Any) -> NameSearch:
        built.set()
        return build(*arguments)

    monkeypatch.setattr(NameSearch, "of", staticmethod(build_and_report))
    update(writing, add=[[f"Inga {n}", "lives in", "town 1"] for n in range(5)])
    for _ in range(3):
        found = got(writing.get(f"{RUN}/nodes", params={"search": "inga"}))
        assert len(found["nodes"]) == 5
        assert built.wait(20)


def test_an_update_that_changes_nothing_has_the_current_version(writing: httpx.Client) -> None:
    update(writing, add=[IDA])
    unchanged: dict[str, Any] = {"version": 1, "added": 0, "removed": 0, "new_nodes": 0}
    unchanged |= {"added_facts": [], "new_node_names": []}
    assert update(writing, add=[IDA]) == unchanged
    assert update(writing) == unchanged


@pytest.mark.parametrize(
    "changes, status, words",
    [
        ({"add": [["Ida", "knows", "Jo"]]}, 422, "not seen in training"),
        ({"remove_nodes": ["Kim"]}, 404, "unknown node 'Kim'"),
        ({"add": [HOME], "remove": [HOME]}, 422, "added and removed at once"),
        ({"add": [["Ida", "lives in"]]}, 422, "add.0"),
        ({"insert": []}, 422, "insert"),
    ],
)
def test_an_update_that_is_wrong_is_refused_in_a_sentence(
    writing: httpx.Client, changes: dict[str, Any], status: int, words: str
) -> None:
    assert words in update(writing, status, **changes)["detail"]
    assert got(writing.get("/v1/runs"))["runs"][0]["version"] == 0


def test_updates_that_arrive_soon_after_each_other_are_one_batch(own_run: LinkRun) -> None:
    sizes: list[int] = []
    writer = GraphWriter(own_run, capacity=9, on_commit=lambda number, _: sizes.append(number))
    facts = [(f"new {n}", "lives in", "town 1") for n in range(5)]
    writer.submit(GraphUpdate((facts[0],))).result(20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writers, "GROUP_SECONDS", 1.0)
        later = [writer.submit(GraphUpdate((fact,))) for fact in facts[1:]]
        assert len({each.result(20).version for each in later}) == 1
    writer.close()
    assert sizes == [1, 4]


def test_a_server_is_read_only_unless_it_is_writable(client: httpx.Client) -> None:
    assert "--writable" in update(client, 403, add=[IDA])["detail"]


def test_a_client_reads_its_own_writes(writing: httpx.Client) -> None:
    for number in range(1, 6):
        name = f"new {number}"
        version = update(writing, add=[[name, "lives in", "town 1"]])["version"]
        headers = {"Nodepiece-Min-Version": str(version)}
        assert known_towns(writing, name, **headers) == (number, ["town 1"])


def test_a_version_that_does_not_come_is_a_problem(own_run: LinkRun) -> None:
    limits = Limits(version_seconds=0.1)
    with client_of(own_run, settings=ServeSettings(limits=limits)) as client:
        answer = client.get(f"{RUN}/relations", headers={"Nodepiece-Min-Version": "7"})
    assert "version 7 of couples is not here" in got(answer, 503)["detail"]
    assert answer.headers["retry-after"] == "1"


def test_a_reader_sees_updates_of_another_process_soon(own_run: LinkRun) -> None:
    other = load_links(own_run.folder)
    with client_of(own_run) as client:
        for number in range(1, 4):
            update_run(other, add=[(f"new {number}", "lives in", "town 1")])
            headers = {"Nodepiece-Min-Version": str(number)}
            assert known_towns(client, f"new {number}", **headers)[0] == number


def test_a_reader_keeps_no_batches_that_were_compacted(
    own_run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.inference.graph_updates.COMPACT_AFTER", 3)
    other = load_links(own_run.folder)
    with client_of(own_run) as client:
        for number in range(1, 12):
            update_run(other, add=[(f"new {number}", "lives in", "town 1")])
            headers = {"Nodepiece-Min-Version": str(number)}
            assert known_towns(client, f"new {number}", **headers)[0] == number
        for _ in range(200):
            state = own_run.updates.state if own_run.updates is not None else None
            if state is not None and state.base_number == 9:
                break
            sleep(0.02)
        assert state is not None and state.base_number == 9 and len(state.batches) == 2
    assert facts_of(own_run) == facts_of(other)


def test_a_writer_follows_updates_of_another_process(
    writing: httpx.Client, own_run: LinkRun
) -> None:
    update(writing, add=[IDA])
    update_run(load_links(own_run.folder), add=[("Kim", "lives in", "town 1")])
    headers = {"Nodepiece-Min-Version": "2"}
    assert known_towns(writing, "Kim", **headers) == (2, ["town 1"])
    assert update(writing, add=[JO])["version"] == 3


def test_every_answer_is_exact_for_the_version_that_it_states(writing: httpx.Client) -> None:
    """Update n adds "new n"; a reader finds as many new nodes as the version says."""
    stop = threading.Event()

    def read() -> int:
        number = 0
        with httpx.Client(base_url=writing.base_url, trust_env=False) as reader:
            while not stop.is_set() or not number:
                found = got(reader.get(f"{RUN}/nodes", params={"search": "new ", "limit": 100}))
                assert len(found["nodes"]) == found["version"]
                query = {"head": "town 1", "relation": "inverse of lives in"}
                body = {"queries": [query], "top": 100, "include_known": True}
                found = got(reader.post(f"{RUN}/predict", json=body))
                known = [a for a in found["results"][0]["answers"] if a["known"]]
                new = [a for a in known if a["name"].startswith("new ")]
                assert len(new) == found["version"]
                number += 1
        return number

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for number in range(20):
            update(writing, add=[[f"new {number}", "lives in", "town 1"]])
        stop.set()
        assert all(reader.result() for reader in readers)


@contextmanager
def stuck_writer(run: LinkRun, capacity: int) -> Iterator[tuple[GraphWriter, threading.Event]]:
    """A writer whose commits wait for an event."""
    free = threading.Event()
    commit = commit_group

    def wait_and_commit(*arguments: Any) -> Any:
        assert free.wait(20)
        return commit(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writers, "commit_group", wait_and_commit)
        writer = GraphWriter(run, capacity=capacity, on_commit=lambda *_: None)
        try:
            yield writer, free
        finally:
            free.set()
            writer.close()


def adding(number: int) -> GraphUpdate:
    return GraphUpdate(add=((f"new {number}", "lives in", "town 1"),))


def fill(writer: GraphWriter, number: int) -> "list[Future[Committed]]":
    """Submit updates until the queue is full; returns those that were accepted."""
    accepted = [writer.submit(adding(0))]
    while writer.num_waiting:  # until the thread has taken the first
        threading.Event().wait(0.005)
    return accepted + [writer.submit(adding(n)) for n in range(1, number + 1)]


def test_a_full_queue_refuses_updates_and_keeps_those_that_wait(own_run: LinkRun) -> None:
    with stuck_writer(own_run, 3) as (writer, free):
        accepted = fill(writer, 3)
        with pytest.raises(Problem) as caught:
            writer.submit(adding(9))
        assert caught.value.status == 503 and caught.value.headers["Retry-After"] == "1"
        free.set()
        versions = [each.result(20).version for each in accepted]
    assert versions == [1, 2, 2, 2]  # those that waited are one batch
    assert own_run.known(head="new 3", relation="lives in") == ["town 1"]


def test_a_writer_that_stops_commits_what_it_accepted_and_nothing_later(own_run: LinkRun) -> None:
    with stuck_writer(own_run, 8) as (writer, free):
        accepted = fill(writer, 5)
        closing = threading.Thread(target=writer.close)
        closing.start()
        while True:
            try:
                accepted.append(writer.submit(adding(len(accepted))))
            except Problem as problem:
                assert problem.status == 503
                break
        free.set()
        closing.join()
        assert all(each.done() for each in accepted)
    added = {fact for fact in facts_of(load_links(own_run.folder)) if fact[0].startswith("new ")}
    assert added == {(f"new {n}", "lives in", "town 1") for n in range(len(accepted))}


def test_a_server_that_stops_answers_the_updates_that_it_accepted(own_run: LinkRun) -> None:
    settings = ServeSettings(writable=True)
    commit = commit_group
    begun = threading.Event()

    def slowly(*arguments: Any) -> Any:
        begun.set()
        threading.Event().wait(0.3)
        return commit(*arguments)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr(writers, "commit_group", slowly)
        with served(own_run, settings=settings) as address:
            body = {"add": [IDA]}
            answer = pool.submit(
                httpx.post, f"{address}{RUN}/update", json=body, trust_env=False, timeout=20
            )
            assert begun.wait(20)
        assert got(answer.result())["version"] == 1
    assert tuple(IDA) in facts_of(load_links(own_run.folder))


def test_many_batches_are_compacted_while_updates_continue(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.inference.graph_updates.COMPACT_AFTER", 2)
    run = load_links(shutil.copytree(trained, tmp_path / "couples"))
    with client_of(run, settings=ServeSettings(writable=True)) as client:
        for number in range(1, 16):
            assert (
                update(client, add=[[f"new {number}", "lives in", "town 1"]])["version"] == number
            )
    found = load_links(run.folder)
    assert found.updates is not None and found.updates.state.base_number > 0
    assert len(found.known(relation="lives in", tail="town 1")) >= 15
    assert facts_of(found) == facts_of(run)
