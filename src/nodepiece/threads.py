"""Make the threads of OpenMP sleep, not spin, while they wait for each other.

GNU OpenMP, which PyTorch includes, spins for some milliseconds by default. Next to other busy
processes the spinning threads block the working ones: a step of training took seventy times as
long. It reads OMP_WAIT_POLICY once, when it is loaded, so `import nodepiece` sets that variable; if
PyTorch was imported before, `stop_spinning` is needed.
"""

import os
import sys
from threading import Event, Thread

_CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # variables that the user may have set
_was_too_late: list[bool] = []


def prefer_sleep() -> None:
    """Make waiting threads sleep, unless the user chose otherwise, in libraries not yet loaded."""
    if not any(name in os.environ for name in _CHOICES):
        os.environ["OMP_WAIT_POLICY"] = "passive"
        if "torch" in sys.modules:
            _was_too_late.append(True)


def stop_spinning() -> None:
    """Make the threads of PyTorch sleep, if it was imported before nodepiece.

    GNU OpenMP hardly spins while it has more threads than there are processors. So that many
    threads are started once, and stay idle.
    """
    if not _was_too_late:
        return
    _was_too_late.clear()
    import torch

    num_workers = torch.get_num_threads() - 1  # of each thread that computes
    if num_workers and hasattr(os, "sched_getaffinity"):
        for _ in range(-(-len(os.sched_getaffinity(0)) // num_workers)):
            is_started = Event()
            Thread(target=_keep_workers, args=(is_started,), daemon=True).start()
            is_started.wait()


def start_kernel_threads() -> None:
    """Start the threads of numba without changing the number of PyTorch's threads.

    Otherwise the first kernel sets that number to all cores. Sums of many numbers have other digits
    then, so that a training that tokenizes would differ from the same one resumed.
    """
    import numba
    import torch

    number = torch.get_num_threads()
    numba.get_num_threads()  # starts them
    torch.set_num_threads(number)


def _keep_workers(is_started: Event) -> None:
    import torch

    torch.ones(1 << 20).add_(1.0)  # large enough to use several threads
    is_started.set()
    Event().wait()
