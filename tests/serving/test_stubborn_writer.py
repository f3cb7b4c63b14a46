"""The writer and the followers go on after errors, wait for others, and end in order."""

from collections.abc import Sequence
from concurrent.futures import Future
from multiprocessing import get_context
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest
from tests.serving.live_server import client_of

from nodepiece.inference.graph_updates import UpdateUnderWay, write_lock
from nodepiece.inference.links import LinkRun
from nodepiece.inference.update_groups import Committed, GraphUpdate
from nodepiece.serving import writer as writers
from nodepiece.serving.follower import Follower
from nodepiece.serving.settings import ServeSettings
from nodepiece.serving.workers import stop, wait_until_ready
from nodepiece.serving.writer import GraphWriter


def adding(name: str) -> GraphUpdate:
    return GraphUpdate(add=((name, "lives in", "town 1"),))


def test_an_error_of_the_program_fails_one_update_and_not_those_after_it(
    own_run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("a bug")

    writer = GraphWriter(own_run, capacity=4, on_commit=lambda *_: None)
    try:
        for place in ("groups_of", "commit_group"):
            with monkeypatch.context() as patch:
                patch.setattr(writers, place, fail)
                with pytest.raises(RuntimeError, match="a bug"):
                    writer.submit(adding("Ida")).result(20)
        assert writer.submit(adding("Jo")).result(20).version == 1
    finally:
        writer.close()
    assert own_run.known(head="Jo", relation="lives in") == ["town 1"]


def test_an_error_while_updates_of_others_are_read_does_not_end_the_writer(
    own_run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = Event()

    def fail(*_: Any) -> Any:
        failed.set()
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(writers, "last_number", fail)
        writer = GraphWriter(own_run, capacity=4, on_commit=lambda *_: None)
        assert failed.wait(20)
    try:
        assert writer.submit(adding("Ida")).result(20).version == 1
    finally:
        writer.close()


def test_a_group_waits_once_for_a_process_that_updates_the_run(
    own_run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def refuse(run: LinkRun, updates: Sequence[GraphUpdate]) -> Any:
        sizes.append(len(updates))
        raise UpdateUnderWay("another update is under way")

    monkeypatch.setattr(writers, "commit_group", refuse)
    monkeypatch.setattr(writers, "LOCK_SECONDS", 0.0)
    writer = GraphWriter(own_run, capacity=4, on_commit=lambda *_: None)
    try:
        results: list[Future[Committed]] = [Future(), Future()]
        writer._commit([adding("Ida"), adding("Jo")], results)
        for each in results:
            with pytest.raises(UpdateUnderWay):
                each.result(20)
    finally:
        writer.close()
    assert set(sizes) == {2}


def test_a_run_that_another_process_updates_is_a_problem_without_its_folder(
    own_run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "LOCK_SECONDS", 0.0)
    settings = ServeSettings(writable=True)
    with client_of(own_run, settings=settings) as client, write_lock(own_run.folder):
        body = {"add": [["Ida", "lives in", "town 1"]]}
        answer = client.post("/v1/runs/couples/update", json=body)
    assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
    assert "another update of couples is under way" in answer.json()["detail"]


def test_a_follower_reads_a_second_change_within_one_tick_of_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder has the time of the first change after the second one too."""
    monkeypatch.setattr("nodepiece.serving.follower.TICK", 10**15)
    (tmp_path / "live").mkdir()
    read = Event()
    follower = Follower(read.set, tmp_path)
    try:
        for _ in range(2):
            assert read.wait(20)
            read.clear()
    finally:
        follower.close()


def test_a_follower_goes_on_after_an_error(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    outcomes = iter([RuntimeError("a bug"), None])
    read = Event()

    def refresh() -> None:
        if error := next(outcomes, None):
            raise error
        read.set()

    follower = Follower(refresh, tmp_path)
    try:
        assert read.wait(20)
    finally:
        follower.close()


def test_workers_that_pass_updates_on_end_before_the_one_that_commits_them() -> None:
    events: list[str] = []

    class Process:
        def __init__(self, name: str) -> None:
            self.name = name

        def is_alive(self) -> bool:
            return True

        def terminate(self) -> None:
            events.append(f"terminate {self.name}")

        def join(self) -> None:
            events.append(f"join {self.name}")

    processes: Any = [Process("writer"), Process("reader")]
    stop(processes)
    assert events == ["terminate reader", "join reader", "terminate writer", "join writer"]


def test_a_server_that_is_stopped_while_its_workers_start_does_not_wait_for_them() -> None:
    class Process:
        def is_alive(self) -> bool:
            return True

    is_stopped, processes = Event(), cast(Any, [Process()])
    is_stopped.set()
    wait_until_ready(processes, get_context("spawn").SimpleQueue(), is_stopped)
