"""Writing that leaves the old or the new, and never a part of either."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nodepiece import files, locks
from nodepiece.errors import InputError
from nodepiece.files import (
    atomic_file,
    atomic_folder,
    read_whole,
    temporary_sibling,
    write_bytes,
)
from nodepiece.locks import has_writer, sole_writer

MARKER = "ours.json"
pytestmark = pytest.mark.filterwarnings(  # of Python 3.12 and later, wherever threads are about
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)


def write_folder(target: Path, text: str) -> None:
    with atomic_folder(target, marker=MARKER) as partial:
        (partial / MARKER).write_text(text)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_whole_with_the_folders_above_it(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "file.txt"
    with atomic_file(target) as partial:
        partial.write_text("half")
        assert not target.exists()
        partial.write_text("whole")
    assert target.read_text() == "whole"
    assert names_in(target.parent) == ["file.txt"]


def test_a_failure_keeps_the_earlier_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    target.write_text("earlier")
    with pytest.raises(KeyboardInterrupt), atomic_file(target) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt
    assert target.read_text() == "earlier"
    assert names_in(tmp_path) == ["file.txt"]


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "a" / "folder"
    with atomic_folder(target, marker=MARKER) as partial:
        (partial / "inner").mkdir()
        (partial / "inner" / "file").write_text("text")
        assert not target.exists()
    assert (target / "inner" / "file").read_text() == "text"
    assert names_in(target.parent) == ["folder"]


def test_an_earlier_folder_of_ours_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    write_folder(target, "first")
    (target / "leftover").write_text("of the first")
    write_folder(target, "second")
    assert names_in(target) == [MARKER]
    assert (target / MARKER).read_text() == "second"
    assert names_in(tmp_path) == ["folder"]


def test_a_failure_keeps_the_earlier_folder_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    write_folder(target, "first")
    with pytest.raises(KeyboardInterrupt), atomic_folder(target, marker=MARKER) as partial:
        (partial / MARKER).write_text("second")
        raise KeyboardInterrupt
    assert (target / MARKER).read_text() == "first"
    assert names_in(tmp_path) == ["folder"]


def test_a_folder_that_cannot_be_put_in_place_gives_way_to_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "folder"
    write_folder(target, "first")
    rename = Path.rename
    monkeypatch.setattr("nodepiece.files.exchange", lambda one, other: False)

    def rename_unless_onto_target(path: Path, onto: Path) -> Path:
        if onto == target and (path / MARKER).read_text() == "second":
            raise PermissionError("no")
        return rename(path, onto)

    monkeypatch.setattr(Path, "rename", rename_unless_onto_target)
    with pytest.raises(PermissionError):
        write_folder(target, "second")
    assert (target / MARKER).read_text() == "first"
    assert names_in(tmp_path) == ["folder"]


def test_a_file_system_that_cannot_exchange_folders_gets_the_new_one_in_two_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.files.exchange", lambda one, other: False)
    write_folder(tmp_path / "folder", "first")
    write_folder(tmp_path / "folder", "second")
    assert (tmp_path / "folder" / MARKER).read_text() == "second"
    assert names_in(tmp_path) == ["folder"]


@pytest.mark.skipif(sys.platform != "linux", reason="folders change places at once on Linux only")
def test_a_reader_finds_a_folder_at_any_time_while_it_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    write_folder(target, "first")
    is_done = threading.Event()
    missing: list[Path] = []

    def look() -> None:
        while not is_done.is_set():
            try:
                os.stat(target)  # noqa: PTH116
            except FileNotFoundError:
                missing.append(target)

    reader = threading.Thread(target=look)
    reader.start()
    for n in range(50):
        write_folder(target, str(n))
    is_done.set()
    reader.join()
    assert not missing


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    found: list[str] = []
    write_folder(target, "first")

    def read() -> list[str]:
        parts = [(target / MARKER).read_text()]
        if not found:
            write_folder(target, "second")
        found.append((target / MARKER).read_text())
        return [*parts, found[-1]]

    assert read_whole(target, read) == ["second", "second"]


def test_a_second_writer_of_a_folder_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    with atomic_folder(target, marker=MARKER) as partial:
        (partial / MARKER).write_text("first")
        with pytest.raises(InputError, match=r"another process is writing .*folder; wait until"):
            write_folder(target, "second")
    assert (target / MARKER).read_text() == "first"
    write_folder(target, "third")
    assert names_in(tmp_path) == ["folder"]


def test_the_lock_of_a_killed_writer_holds_nobody_up(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from nodepiece.locks import sole_writer\n"
        "with sole_writer(Path(sys.argv[1])):\n    os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "folder")], check=False)
    assert names_in(tmp_path) == [".folder.lock"]
    assert not has_writer(tmp_path / "folder")
    write_folder(tmp_path / "folder", "text")
    assert names_in(tmp_path) == ["folder"]


def test_one_writer_of_many_that_come_at_once_has_the_lock(tmp_path: Path) -> None:
    inside, most, refused = [0], [0], [0]
    counting = threading.Lock()

    def write() -> None:
        for _ in range(50):
            try:
                with sole_writer(tmp_path / "folder"):
                    with counting:
                        inside[0] += 1
                        most[0] = max(most[0], inside[0])
                    time.sleep(0)
                    with counting:
                        inside[0] -= 1
            except InputError:
                refused[0] += 1

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert most == [1] and refused[0] < 200
    assert names_in(tmp_path) == []


def test_a_probe_of_the_lock_refuses_no_writer(tmp_path: Path) -> None:
    path = tmp_path / ".folder.lock"
    probe = os.open(path, os.O_RDONLY | os.O_CREAT)
    fcntl.flock(probe, fcntl.LOCK_SH)  # as has_writer holds it, for an instant
    threading.Timer(0.05, os.close, (probe,)).start()
    with sole_writer(tmp_path / "folder"):
        assert has_writer(tmp_path / "folder")


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    started, start = os.pipe()
    with sole_writer(tmp_path / "folder"):
        child = os.fork()
        if not child:
            os.write(start, b"!")
            time.sleep(60)
            os._exit(0)
        os.read(started, 1)
    try:
        assert not has_writer(tmp_path / "folder")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_forked_child_that_leaves_the_block_takes_the_lock_from_nobody(tmp_path: Path) -> None:
    child = 0
    try:
        with sole_writer(tmp_path / "folder"):
            child = os.fork()
            if child:
                assert os.waitpid(child, 0)[1] == 0
                assert names_in(tmp_path) == [".folder.lock"] and has_writer(tmp_path / "folder")
    finally:
        if not child:
            os._exit(0)


def test_a_folder_is_locked_where_no_file_can_be_made_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    monkeypatch.setattr(locks, "_acquire", refuse_to_write)
    with sole_writer(target):
        assert has_writer(target)
        with pytest.raises(InputError, match="another process is writing"), sole_writer(target):
            pass
    assert not has_writer(target)


def refuse_to_write(path: Path) -> int | None:
    raise PermissionError(errno.EACCES, "Permission denied", str(path))


def test_a_mount_point_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "mount_points", lambda: {str(tmp_path)})
    with pytest.raises(InputError, match="is a mount point, which cannot be replaced; choose"):
        write_folder(tmp_path, "text")
    write_folder(tmp_path / "inside", "text")
    assert names_in(tmp_path) == ["inside"]


def test_an_empty_folder_is_ours_to_fill(tmp_path: Path) -> None:
    write_folder(tmp_path, "first")
    assert names_in(tmp_path) == [MARKER]


def test_a_folder_of_somebody_else_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.jpg").write_text("precious")
    with pytest.raises(InputError, match=r"photos exists and is not a folder .* no ours\.json"):
        write_folder(tmp_path / "photos", "text")
    assert names_in(tmp_path / "photos") == ["one.jpg"]
    assert names_in(tmp_path) == ["photos"]


def test_a_file_in_place_of_the_folder_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(InputError, match="file exists and is not a folder"):
        write_folder(tmp_path / "file", "text")
    assert (tmp_path / "file").read_text() == "precious"


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "folder")
    write_folder(tmp_path / "link", "first")
    write_folder(tmp_path / "link", "second")
    assert (tmp_path / "link").is_symlink()
    assert names_in(tmp_path / "disk") == ["folder"]
    assert (tmp_path / "disk" / "folder" / MARKER).read_text() == "second"
    (tmp_path / "file-link").symlink_to(tmp_path / "disk" / "file")
    with atomic_file(tmp_path / "file-link") as partial:
        partial.write_text("text")
    assert (tmp_path / "file-link").is_symlink()
    assert (tmp_path / "disk" / "file").read_text() == "text"


def test_the_present_folder_can_be_written_by_its_short_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    write_folder(Path(), "text")
    assert (tmp_path / "here" / MARKER).read_text() == "text"
    monkeypatch.chdir(tmp_path)  # the folder that was here before is gone


def leave_behind(target: Path, pid: int) -> Path:
    """What a process with this id would be writing to, had it been killed."""
    name = temporary_sibling(target).name
    leftover = target.with_name(name.replace(f"-{os.getpid()}-", f"-{pid}-"))
    leftover.mkdir()
    (leftover / MARKER).write_text("half")
    return leftover


def pid_of_the_dead() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_what_a_killed_process_left_goes_with_the_next_success(tmp_path: Path) -> None:
    leftover = leave_behind(tmp_path / "folder", pid_of_the_dead())
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "folder", marker=MARKER):
        raise KeyboardInterrupt
    assert leftover.exists()  # it may be the earlier folder: wait for the new one
    write_folder(tmp_path / "folder", "text")
    assert names_in(tmp_path) == ["folder"]


def test_what_a_killed_process_left_of_a_file_goes_too(tmp_path: Path) -> None:
    leave_behind(tmp_path / "file", pid_of_the_dead())
    with atomic_file(tmp_path / "file") as partial:
        partial.write_text("whole")
    assert names_in(tmp_path) == ["file"]


def test_what_a_living_process_writes_stays(tmp_path: Path) -> None:
    other = leave_behind(tmp_path / "folder", os.getppid())
    write_folder(tmp_path / "folder", "mine")
    assert names_in(tmp_path) == sorted(["folder", other.name])


def test_what_was_written_elsewhere_or_for_another_target_stays(tmp_path: Path) -> None:
    pid = pid_of_the_dead()
    elsewhere = tmp_path / f".folder.partial-0123abcd-{pid}-0123abcd"
    elsewhere.mkdir()
    other = leave_behind(tmp_path / "folder2", pid)
    write_folder(tmp_path / "folder", "text")
    assert names_in(tmp_path) == sorted([elsewhere.name, other.name, "folder"])


def test_what_was_renamed_and_then_the_rename_are_forced_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[tuple[Path, bool]] = []  # what, and whether the target was there
    for name in ("file", "folder"):
        target = tmp_path / name

        def note(path: Path, target: Path = target) -> None:
            forced.append((path, target.exists()))

        monkeypatch.setattr("nodepiece.files.sync", note)
        if name == "file":
            with atomic_file(target) as partial:
                partial.write_text("whole")
        else:
            write_folder(target, "text")
            partial = forced[0][0]
        assert forced[0] == (partial, False) and forced[-1] == (tmp_path, True)
        forced.clear()


def test_bytes_are_forced_to_disk_before_their_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, steps = tmp_path / "file", []
    real = os.fsync

    def note(descriptor: int) -> None:
        steps.append((Path(f"/proc/self/fd/{descriptor}").readlink().is_dir(), target.exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    write_bytes(target, b"whole")
    assert steps == [(False, False), (True, True)]
    assert target.read_bytes() == b"whole" and names_in(tmp_path) == ["file"]


def test_bytes_that_cannot_be_written_leave_the_earlier_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bytes(tmp_path / "file", b"before")

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_bytes(tmp_path / "file", b"after")
    assert (tmp_path / "file").read_bytes() == b"before" and names_in(tmp_path) == ["file"]


def test_bytes_replace_a_file_and_what_a_killed_process_left_of_it(tmp_path: Path) -> None:
    leave_behind(tmp_path / "file", pid_of_the_dead())
    write_bytes(tmp_path / "file", b"one")
    write_bytes(tmp_path / "file", b"two")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "file").read_bytes() == b"two"
    assert names_in(tmp_path) == ["file", "plain"]
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_can_be_read_by_whom_other_files_can(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("text")
    with atomic_file(tmp_path / "file") as partial:
        partial.unlink()
        partial.touch(mode=0o600)  # as some libraries do
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_system_that_cannot_lock_is_written_to_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(descriptor: int, kind: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with atomic_folder(tmp_path / "folder", marker="file") as folder:
        (folder / "file").write_text("content")
    assert (tmp_path / "folder" / "file").read_text() == "content"
    assert "cannot lock files" in caplog.text
