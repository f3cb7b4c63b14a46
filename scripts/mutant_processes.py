"""Tests in forked processes: of the source as it is, and with one fault planted.

Every process works in a tree of its own, a copy of the source with links to the rest, and is forked
from one that has loaded PyTorch and Numba, and not nodepiece. Compiled code is cached by the file
it is in and not by what it calls, so a fault in a file with compiled functions, or in one that
these import, starts with an empty cache.
"""

import os
import resource
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

OPTIONS = ("-q", "-m", "not gpu and not data", "--hypothesis-seed=0", "--tb=line", "-rfE")
QUIET = ("-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist")
LINKED = ("tests", "benchmarks", "examples", "scripts", "docs", "results", "README.md")


def make_tree(folder: Path, root: Path) -> Path:
    """A copy of what tests need, for one process to plant faults into."""
    ignore = shutil.ignore_patterns("*.egg-info")
    shutil.copytree(root / "src", folder / "src", ignore=ignore)  # with what is compiled
    for name in (*LINKED, "pyproject.toml"):
        (folder / name).symlink_to((root / name).resolve())
    return folder


class TestProcess:
    """Tests that run in a tree, in a forked process."""

    __test__ = False  # not a test itself

    def __init__(
        self,
        tree: Path,
        arguments: Iterable[str],
        log: Path,
        *,
        cpu_seconds: int,
        compile_again: bool = False,
    ) -> None:
        self.tree, self.log = tree, log
        self.start = time.monotonic()
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            run_tests(tree, list(arguments), log, cpu_seconds, compile_again=compile_again)

    def stop(self) -> None:
        """Kill it with all processes that its tests started."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(self.pid, signal.SIGKILL)  # it has no group of its own yet

    def failed(self) -> list[str]:
        """The tests that failed, by what pytest wrote."""
        words = (line.split() for line in self.log.read_text(errors="replace").splitlines())
        return [line[1] for line in words if line[:1] in (["FAILED"], ["ERROR"]) and line[1:]]


def run_tests(
    tree: Path, arguments: list[str], log: Path, cpu_seconds: int, *, compile_again: bool
) -> None:
    """In a forked process: run pytest and end with its exit status."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    status = 99
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
        output = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(tree)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(tree / "src"), *other_paths()])
        if compile_again:
            import numba

            os.environ["NUMBA_CACHE_DIR"] = str(tree / "compiled")
            numba.config.reload_config()  # type: ignore[no-untyped-call]
        sys.path[:0] = [str(tree / "src"), str(tree)]
        sys.dont_write_bytecode = True
        import pytest

        status = int(pytest.main([*OPTIONS, *QUIET, *arguments]))
        sys.stdout.flush()
    finally:
        os._exit(status)


def other_paths() -> list[str]:
    """What PYTHONPATH has besides this repository, for processes that tests start."""
    root = Path(__file__).parents[1]
    paths = [Path(each).resolve() for each in os.environ.get("PYTHONPATH", "").split(":") if each]
    return [str(each) for each in paths if each not in (root.resolve(), (root / "src").resolve())]


Start = Callable[[Path], TestProcess]  # in this tree


def side_by_side(
    starts: Iterable[Start], trees: list[Path], *, wall_seconds: float, until: float = float("inf")
) -> Iterator[tuple[int, TestProcess, int, float]]:
    """As many processes at once as there are trees; each with its number, exit status and CPU time.

    None is started after `until` (of the monotonic clock); those that run are waited for, so that
    the slow ones are not left out. One that takes longer than `wall_seconds` is killed.
    """
    waiting, free, running = deque(enumerate(starts)), deque(trees), dict[int, TestProcess]()
    numbers = dict[int, int]()
    try:
        while running or (waiting and time.monotonic() < until):
            while waiting and free and time.monotonic() < until:
                number, start = waiting.popleft()
                process = start(free.popleft())
                running[process.pid], numbers[process.pid] = process, number
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if not pid:
                for process in running.values():
                    if time.monotonic() - process.start > wall_seconds:
                        process.stop()
                time.sleep(0.05)
                continue
            process = running.pop(pid)
            free.append(process.tree)
            yield numbers.pop(pid), process, status, usage.ru_utime + usage.ru_stime
    finally:
        for process in running.values():
            process.stop()
