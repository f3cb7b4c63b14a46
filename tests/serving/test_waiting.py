"""A request that waits for a version is woken when the version is there."""

import asyncio
import threading
from pathlib import Path
from time import monotonic

import pytest

from nodepiece.serving.folder_watch import FolderWatch
from nodepiece.serving.versions import Versions


def test_a_request_is_woken_by_the_version_it_waits_for() -> None:
    current = [0]
    versions = Versions(lambda: current[0])

    async def wait() -> tuple[bool, bool]:
        waiting = asyncio.create_task(versions.wait_for(2, 20))
        await asyncio.sleep(0)

        def publish() -> None:
            for version in (1, 2):
                current[0] = version
                versions.published()

        thread = threading.Thread(target=publish)
        thread.start()
        found = await waiting
        thread.join()
        return found, await versions.wait_for(1, 0)

    start = monotonic()
    assert asyncio.run(wait()) == (True, True)
    assert monotonic() - start < 10
    assert not versions._waiting


def test_a_version_that_does_not_come_is_given_up() -> None:
    versions = Versions(lambda: 1)
    assert not asyncio.run(versions.wait_for(2, 0.01))
    assert not versions._waiting


def test_a_version_that_is_published_while_a_request_begins_to_wait_wakes_it() -> None:
    current, publishers = [0], list[threading.Thread]()

    def publish() -> None:
        current[0] = 1
        versions.published()

    def read() -> int:
        number = current[0]
        if not publishers:  # the version is published between this look at it and the wait
            publishers.append(threading.Thread(target=publish))
            publishers[0].start()
            publishers[0].join(0.2)
        return number

    versions = Versions(read)
    assert asyncio.run(versions.wait_for(1, 5))
    publishers[0].join()


def watch_and_rename(folder: Path) -> float:
    """Seconds until a watch of a folder returns after a file was renamed into it."""
    watch = FolderWatch(folder)
    watch.wait(0)  # which begins to watch
    ready = threading.Event()
    ended: list[float] = []

    def wait() -> None:
        ready.set()
        watch.wait(20)
        ended.append(monotonic())

    thread = threading.Thread(target=wait)
    thread.start()
    assert ready.wait(20)
    (folder / ".partial").write_text("a batch")
    start = monotonic()
    (folder / ".partial").replace(folder / "000001")
    thread.join()
    watch.close()
    return ended[0] - start


def test_a_watch_returns_when_a_file_is_renamed_into_the_folder(tmp_path: Path) -> None:
    assert watch_and_rename(tmp_path) < 10


def test_a_watch_without_notifications_looks_at_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.serving.folder_watch.watched", lambda folder: -1)
    assert watch_and_rename(tmp_path) < 10


def test_a_watch_of_a_folder_that_is_not_there_yet_returns(tmp_path: Path) -> None:
    watch = FolderWatch(tmp_path / "live")
    start = monotonic()
    watch.wait(20)
    (tmp_path / "live").mkdir()
    watch.wait(0)
    (tmp_path / "live").rmdir()
    watch.wait(20)  # the folder is gone
    watch.wait(20)
    assert monotonic() - start < 10
    watch.close()


def test_a_watch_is_stopped_by_another_thread(tmp_path: Path) -> None:
    watch = FolderWatch(tmp_path)
    thread = threading.Thread(target=watch.wait, args=(20,))
    start = monotonic()
    thread.start()
    watch.stop()
    thread.join()
    watch.close()
    assert monotonic() - start < 10
