"""A disk that is full soon."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, free: int) -> Iterator[Path]:
    """A file system of 4 MB, of which `free` bytes are left; only root can mount one."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        (place / "rest").write_bytes(bytes((4 << 20) - free))
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)  # Java has files open
