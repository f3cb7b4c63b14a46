"""Refusal of runs in forked processes: threads do not survive a fork."""

import os
from contextlib import suppress
from dataclasses import dataclass

import torch
from numba.np.ufunc.parallel import threading_layer

from nodepiece.errors import InputError


@dataclass
class Process:
    """Whether this process and its parent have used runs and threads."""

    has_used_runs: bool = False
    parent_used_runs: bool = False
    parent_layer: str = ""  # of numba's threads, where the parent had started them


_process = Process()


def _after_fork() -> None:
    _process.parent_used_runs |= _process.has_used_runs
    with suppress(ValueError):  # no parallel kernel has run yet: threads can be started here
        _process.parent_layer = threading_layer()  # type: ignore[no-untyped-call]


os.register_at_fork(after_in_child=_after_fork)


def refuse_after_fork() -> None:
    """Raise an InputError where OpenMP would otherwise end the process or wait forever.

    In a process that was forked after runs were used, numba's parallel kernels end the process,
    and PyTorch waits for threads that do not exist, unless it is limited to one thread.
    """
    _process.has_used_runs = True
    if not _process.parent_used_runs:
        return
    if _process.parent_layer == "omp" or torch.get_num_threads() > 1:
        raise InputError(
            "this process was forked from one that had used runs, and OpenMP's threads do not "
            'survive a fork; start workers with multiprocessing.get_context("spawn"), or fork '
            "before the first run is loaded"
        )
