"""Processes that run a job and are killed before or after one of its file operations.

Numba's parallel kernels hang in a process forked from one that has run them, and importing PyTorch
takes seconds. So workers are forked from a server that has imported everything and run nothing.
"""

import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from time import perf_counter, sleep
from typing import Any

import numba
import torch
from tests.crash.jobs import Job

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.crash.jobs", "tests.crash.workers"])
MAX_SECONDS = 300.0  # for a job that takes one or two: the machine may be busy
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod")  # rename is replace too


class Wrong(Exception):
    """Something else than the old or the new state, or not the whole of it."""


@dataclass(frozen=True)
class Instant:
    """When a process is killed: before a file operation, or `seconds` after it began."""

    operation: int  # 0 is the first one of the job
    seconds: float

    def __str__(self) -> str:
        after = f"{self.seconds * 1000:.1f} ms after the start of" if self.seconds else "before"
        return f"{after} file operation {self.operation}"


@dataclass(frozen=True)
class Trace:
    """The file operations of a whole job."""

    names: list[str]
    times: list[float]  # at which each began, and of the end

    def commits(self) -> list[int]:
        """The operations with which something takes its place, and those right after them."""
        renames = [n for n, name in enumerate(self.names) if name in ("os.rename", "ctypes.dlsym")]
        return [n for rename in renames for n in (rename, rename + 1) if n < len(self.names)]


def run_whole(job: Job) -> Trace:
    process, channel = start(job, None)
    trace = answer(channel)
    process.join()
    assert trace is not None
    return trace


def run_and_kill(job: Job, instant: Instant) -> bool:
    """Whether the process was still at work when it was killed."""
    process, channel = start(job, instant)
    try:
        answer(channel)  # the operation has come, or the end before it
        sleep(instant.seconds)
    except EOFError:
        pass  # it has killed itself
    finally:
        process.kill()
        process.join()
        channel.close()
    return process.exitcode == -signal.SIGKILL


def start(job: Job, instant: Instant | None) -> tuple[Any, Connection]:
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=work, args=(job, instant, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def answer(channel: Connection) -> Trace | None:
    if not channel.poll(MAX_SECONDS):
        raise Wrong(f"the process did not finish within {MAX_SECONDS:.0f} s")
    message = channel.recv()
    if isinstance(message, str):
        raise Wrong(f"the process failed without being killed:\n{message}")
    return message


def work(job: Job, instant: Instant | None, channel: Connection) -> None:
    """Run the job; stop or send a message at its instant, and send the trace at its end."""
    # Locks that numba makes would outlive a killed process where they have names.
    multiprocessing.set_start_method("fork", force=True)
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    names: list[str] = []
    times: list[float] = []

    def begin_operation(name: str) -> None:
        names.append(name)
        times.append(perf_counter())
        if instant is not None and len(times) == instant.operation + 1:
            if not instant.seconds:
                os.kill(os.getpid(), signal.SIGKILL)
            channel.send(None)

    call_before_changes(begin_operation)
    try:
        job.run()
    except BaseException:
        channel.send(traceback.format_exc())
    else:
        channel.send(Trace(names, [*times, perf_counter()]))
    os._exit(0)


def call_before_changes(call: Callable[[str], None]) -> None:
    """Call before files are made, opened to be written or forced to disk, renamed or removed."""

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        if is_change(name, arguments):
            call(name)

    sys.addaudithook(hook)


def is_change(name: str, arguments: tuple[Any, ...]) -> bool:
    if name == "ctypes.dlsym":
        return arguments[1] == "renameat2"
    if name not in CHANGES and name != "open":
        return False
    if "__pycache__" in str(arguments[0]):  # compiled code
        return False
    # os.open has no mode: it opens locks, and what is forced to disk
    return name != "open" or arguments[1] is None or bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
