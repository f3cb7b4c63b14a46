"""Tests in forked processes, as `make mutants` runs them; a small script stands for the tests."""

import os
import signal
import time
from pathlib import Path

import pytest
from scripts.mutant_processes import Start, TestProcess, other_paths, side_by_side

pytestmark = pytest.mark.filterwarnings(  # of Python 3.12 and later, wherever threads are about
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)


class Child(TestProcess):
    """A forked process that sleeps and ends with a status, instead of running tests."""

    def __init__(self, tree: Path, seconds: float, status: int) -> None:
        self.tree, self.log = tree, tree / "log.txt"
        self.start = time.monotonic()
        self.pid = os.fork()
        if not self.pid:
            os.setsid()
            time.sleep(seconds)
            os._exit(status)


def child(seconds: float, status: int = 0) -> Start:
    return lambda tree: Child(tree, seconds, status)


def test_every_process_ends_with_its_number_and_status(tmp_path: Path) -> None:
    starts = [child(0.2, 1), child(0, 0), child(0, 3)]
    ended = list(side_by_side(starts, [tmp_path / "a", tmp_path / "b"], wall_seconds=10))
    statuses = {number: os.waitstatus_to_exitcode(status) for number, _, status, _ in ended}
    assert statuses == {0: 1, 1: 0, 2: 3}


def test_two_processes_never_share_a_tree(tmp_path: Path) -> None:
    trees, free = [tmp_path / "a", tmp_path / "b"], {tmp_path / "a", tmp_path / "b"}

    def start(tree: Path) -> TestProcess:
        free.remove(tree)  # fails if it is in use
        return Child(tree, 0, 0)

    for _, process, _, _ in side_by_side([start] * 6, trees, wall_seconds=10):
        free.add(process.tree)


def test_at_the_time_limit_running_processes_are_waited_for_and_none_is_started(
    tmp_path: Path,
) -> None:
    until = time.monotonic() + 0.1
    starts = [child(0.3, 7), child(0)]
    ended = list(side_by_side(starts, [tmp_path], wall_seconds=10, until=until))
    assert [(number, os.waitstatus_to_exitcode(status)) for number, _, status, _ in ended] == [
        (0, 7)
    ]


def test_a_process_without_end_is_killed(tmp_path: Path) -> None:
    ((_, _, status, _),) = side_by_side([child(60)], [tmp_path], wall_seconds=0.1)
    assert os.WTERMSIG(status) == signal.SIGKILL


def test_whoever_stops_early_leaves_no_process_behind(tmp_path: Path) -> None:
    ended = side_by_side([child(0), child(60)], [tmp_path / "a", tmp_path / "b"], wall_seconds=90)
    next(ended)
    ended.close()  # type: ignore[attr-defined]
    _, status = os.wait()
    assert os.WTERMSIG(status) == signal.SIGKILL


def test_tests_that_fail_without_a_fault_are_named(tmp_path: Path) -> None:
    process = Child(tmp_path, 0, 1)
    os.waitpid(process.pid, 0)
    process.log.write_text(
        "F.E\nFAILED tests/test_a.py::test_b[x y] - assert 0\nERROR tests/c.py\n"
    )
    assert process.failed() == ["tests/test_a.py::test_b[x", "tests/c.py"]  # --deselect: prefixes


def test_processes_that_tests_start_find_the_other_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = Path(__file__).parents[1]
    monkeypatch.chdir(root)
    monkeypatch.setenv("PYTHONPATH", "src:.:more/site")
    assert other_paths() == [str(root / "more/site")]
