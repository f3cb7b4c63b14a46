"""Where the code blocks of the documentation are run."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pages.command_server import write_client

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def page_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of shell blocks, in which `nodepiece` is a process that is ready."""
    folder = tmp_path_factory.mktemp("commands")
    programs = [str(folder), str(Path(sys.executable).parent)]
    environment = os.environ | {
        "PATH": os.pathsep.join([*programs, os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "COLUMNS": "80",
        "PYTHONIOENCODING": "utf-8",
        "MPLBACKEND": "agg",
    }
    write_client(folder / "nodepiece", folder / "socket")
    command = [sys.executable, "-m", "tests.pages.command_server", str(folder / "socket")]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        yield environment
        server.kill()
