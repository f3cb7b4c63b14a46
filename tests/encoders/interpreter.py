"""Triton's interpreter, which runs the kernels for GPUs on a CPU."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def check_interpreted(module: str) -> None:
    """Call `check_kernels` of a test module.

    In a process of its own, as Triton decides when a kernel is defined whether to interpret it.
    """
    program = f"from {module} import check_kernels; check_kernels()"
    environment = os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
