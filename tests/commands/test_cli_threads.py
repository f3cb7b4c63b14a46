"""What threads do while they wait is decided before the libraries that start them are loaded."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from nodepiece.__main__ import main
sys.argv = ["nodepiece", "--version"]
try:
    main()
except SystemExit:
    print(os.environ["OMP_WAIT_POLICY"], "torch" in sys.modules or "numba" in sys.modules)
"""


@pytest.mark.parametrize(("wanted", "found"), [(None, "passive"), ("active", "active")])
def test_waiting_threads_sleep_unless_the_user_says_otherwise(
    wanted: str | None, found: str
) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    if wanted is not None:
        environment["OMP_WAIT_POLICY"] = wanted
    command = [sys.executable, "-c", PROGRAM]

    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == f"{found} False"
