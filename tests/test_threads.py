"""Threads sleep while they wait for each other, from the command line and in Python alike."""

import os
import subprocess
import sys

import pytest

COMMAND = """
import os, sys
from nodepiece.__main__ import main
sys.argv = ["nodepiece", "--version"]
try:
    main()
except SystemExit:
    print(os.environ["OMP_WAIT_POLICY"], "torch" in sys.modules or "numba" in sys.modules)
"""
LIBRARY = """
import os, sys
import nodepiece
print(os.environ["OMP_WAIT_POLICY"], "torch" in sys.modules or "numba" in sys.modules)
"""

# Prints the CPU time of all threads for a hundred operations and a rest after each of them.
RESTS = """
import time
{imports}
import torch
torch.set_num_threads(2)
{start}
values = torch.ones(1 << 16)
start = time.process_time()
for _ in range(100):
    values.add_(1.0)
    time.sleep(0.002)
print(time.process_time() - start)
"""


def run(program: str, **more: str) -> str:
    chosen = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in chosen}
    command = [sys.executable, "-c", program]
    ran = subprocess.run(
        command, env=environment | more, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()[-1]


@pytest.mark.parametrize("program", [COMMAND, LIBRARY], ids=["command", "library"])
def test_waiting_threads_sleep_unless_the_user_says_otherwise(program: str) -> None:
    assert run(program) == "passive False"
    assert run(program, OMP_WAIT_POLICY="active") == "active False"


@pytest.mark.skipif(sys.platform != "linux", reason="about GNU OpenMP")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core: nobody waits")
def test_no_thread_spins_where_torch_was_imported_first() -> None:
    stop = "from nodepiece.threads import stop_spinning\nstop_spinning()"
    spinning, sleeping = (
        float(run(RESTS.format(imports=imports, start=start)))
        for imports, start in (("", ""), ("import torch, nodepiece", stop))
    )
    assert sleeping < spinning / 2


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core: there is no other number")
def test_kernels_leave_the_number_of_threads_of_torch_as_it_was() -> None:
    program = """
import torch
from nodepiece.threads import start_kernel_threads
torch.set_num_threads(1)
torch.get_num_threads()  # which sets it once more, the first time
{start}
import numba
numba.get_num_threads()
print(torch.get_num_threads())
"""
    assert run(program.format(start="")) != "1"  # what numba does by itself
    assert run(program.format(start="start_kernel_threads()")) == "1"
