"""Processes that a sweep started end with it, also where it is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest

STARTS_A_CHILD = """
import os, subprocess, sys
program = "import os, sys, time; from nodepiece.tasks.child import end_with; " \\
    "end_with(int(sys.argv[1])); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", program, str(os.getpid())])
print(child.pid, flush=True)
child.wait()
"""
SWEEP = "nodepiece sweep countries --anchors 10 --anchors-per-node 4 --device cpu"
ENDLESS = "--set training.epochs=1000000 --set training.validate_every=0"


def is_running(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end
        sleep(0.1)


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")


@needs_proc
def test_a_process_ends_when_its_parent_is_killed() -> None:
    command = [sys.executable, "-c", STARTS_A_CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
        wait_for(lambda: not is_running(child))


@needs_proc
def test_the_runs_of_a_sweep_that_is_killed_save_and_end(tmp_path: Path) -> None:
    command = [sys.executable, "-m", *SWEEP.split(), *ENDLESS.split(), "-o", str(tmp_path)]
    log = tmp_path / "10-4.log"
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as sweep:
        try:
            wait_for(lambda: log.exists() and "epoch" in log.read_text())
            children = Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children").read_text().split()
        finally:
            os.kill(sweep.pid, signal.SIGKILL)
    (child,) = map(int, children)
    try:
        wait_for(lambda: not is_running(child))
    finally:
        if is_running(child):
            os.kill(child, signal.SIGKILL)

    assert (tmp_path / "10-4" / "checkpoint.safetensors").exists()
    assert "resume" in log.read_text()
