"""What the threads of OpenMP do while they wait for each other: sleep, or spin.

GNU OpenMP, which PyTorch comes with, spins for some milliseconds by default. Beside other busy
processes the spinning threads keep the others from their work: a step of training took seventy
times as long. It reads OMP_WAIT_POLICY once, when it is loaded, so `import nodepiece` sets that
variable; where PyTorch was imported before, something else is needed.
"""

import os
import sys
from threading import Event, Thread

_CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # what the user may have chosen
_was_too_late: list[bool] = []


def prefer_sleep() -> None:
    """Have waiting threads sleep, unless the user chose otherwise; for libraries not yet loaded."""
    if not any(name in os.environ for name in _CHOICES):
        os.environ["OMP_WAIT_POLICY"] = "passive"
        if "torch" in sys.modules:
            _was_too_late.append(True)


def stop_spinning() -> None:
    """Have the threads of PyTorch sleep, where it was imported before nodepiece.

    GNU OpenMP spins for an instant only while it has more threads than there are processors. So
    that many threads are started once, and wait for nothing ever after.
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


def _keep_workers(is_started: Event) -> None:
    import torch

    torch.ones(1 << 20).add_(1.0)  # large enough to be shared out
    is_started.set()
    Event().wait()
