"""Several processes that train one model together, started by torchrun.

Each process has the whole model and draws different facts. After the backward pass the gradients
are averaged over all processes, so every process takes the same step. DistributedDataParallel does
that too, but by hooks in the backward pass, and a step that is replayed as a CUDA graph runs no
hooks. The hooks would gain little: a model of pieces is small (27 MB for 6.9 million parameters).
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count

import numpy as np
import torch
from torch import Tensor, distributed

from nodepiece.errors import InputError
from nodepiece.graph.arrays import FloatArray, IntArray

TIMEOUT = timedelta(hours=4)  # long, as all processes wait while the first one tokenizes


@dataclass(frozen=True)
class Processes:
    """The processes that train together; this one is number `rank` of `count`."""

    rank: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which writes files and logs."""
        return self.rank == 0

    def share(self, batch_size: int) -> int:
        """The batch size of this process."""
        if batch_size % self.count:
            raise InputError(
                f"training.batch_size = {batch_size} is shared by {self.count} processes; "
                f"make it a multiple of {self.count}"
            )
        return batch_size // self.count

    def seed(self, seed: int, epoch: int) -> int:
        """The random seed of dropout of this process in an epoch, different for each process."""
        state = np.random.SeedSequence([seed, epoch, self.rank]).generate_state(1, np.uint64)
        return int(state[0] >> 1)  # a torch generator takes 63 bits and a sign

    def own_rows(self, num_rows: int, draw: Callable[[int], Tensor]) -> Tensor:
        """The rows of this process of what all processes draw alike: `draw(rows of all)`.

        So the draws of several processes are those of one process with their batches together.
        """
        start = self.rank * num_rows
        return draw(self.count * num_rows)[start : start + num_rows]

    def average(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its mean over all processes."""
        if self.count > 1:
            for tensor in tensors:
                distributed.all_reduce(tensor)
                tensor.div_(self.count)

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        if self.count > 1:
            for tensor in tensors:
                distributed.broadcast(tensor, src=0)

    def any(self, flag: bool) -> bool:
        """Whether the flag is true in any of the processes."""
        number = torch.tensor(float(flag))
        self.average([number])
        return bool(number > 0)

    def wait(self) -> None:
        """Wait until all processes have called this (a barrier)."""
        self.any(False)

    def part(self, facts: IntArray) -> IntArray:
        """Every `count`-th fact: the part of this process. `collect` merges the results."""
        return facts[self.rank :: self.count]

    def collect(self, results: FloatArray, total: int) -> FloatArray:
        """The results of all processes for their parts of `total` facts, in the order of facts."""
        if self.count == 1:
            return results
        mine = torch.zeros(-(-total // self.count), dtype=torch.float64)
        mine[: len(results)] = torch.from_numpy(results)
        everyone = [torch.empty_like(mine) for _ in range(self.count)]
        distributed.all_gather(everyone, mine)
        collected: FloatArray = torch.stack(everyone, dim=1).flatten()[:total].numpy()
        return collected


def current_processes() -> Processes:
    """The processes of the current group, or this one alone."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return Processes()
    return Processes(distributed.get_rank(), distributed.get_world_size())


def limit_threads() -> None:
    """Use OMP_NUM_THREADS threads; torchrun sets it to 1 unless the user sets it.

    Kernels compiled by numba raise the number to that of all cores when they first run.
    """
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted):
        torch.set_num_threads(int(wanted))


def torchrun_rank() -> int:
    """The rank of this process under torchrun; 0 without torchrun."""
    return int(os.environ["RANK"]) if is_under_torchrun() else 0


def is_under_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def own_gpu(device: torch.device) -> int:
    """The GPU of this process: its local rank."""
    number, num_gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if number >= num_gpus:
        raise InputError(
            f"torchrun started more processes than this machine has GPUs ({num_gpus}); use "
            f"--nproc-per-node {num_gpus}"
        )
    if device.index is not None:
        raise InputError(
            f"each process has a separate GPU under torchrun, but the device is {device}; use "
            "--device cuda"
        )
    return number


@contextmanager
def process_group(device: torch.device) -> Iterator[Processes]:
    """Join the processes that torchrun started, for the block; without torchrun, this one alone.

    Tensors on the host use gloo, those on a GPU NCCL; the GPU of a process is its local rank. A
    nested block has no effect. At the end all processes leave together; after an error a process
    leaves without waiting for the others, which torchrun then ends.
    """
    if not is_under_torchrun() or distributed.is_initialized():
        yield current_processes()
        return
    join(device)
    try:
        yield current_processes()
        current_processes().wait()
    finally:
        distributed.destroy_process_group()


_rendezvous_numbers = count()  # the same in all processes, as they run the same program


def join(device: torch.device) -> None:
    # PyTorch imports this with its first optimizer. If it were imported after the group is joined,
    # its functions would have the group as a default argument and keep it alive: gloo's threads
    # would outlive the interpreter, which sometimes aborts the process.
    from torch.distributed import nn  # noqa: F401
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    backend = "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(own_gpu(device))
        backend = "cpu:gloo,cuda:nccl"
    store, rank, size = next(rendezvous("env://", timeout=TIMEOUT))
    # torchrun keeps the store, so a process that joins again must not find old addresses there.
    fresh = PrefixStore(f"meeting {next(_rendezvous_numbers)}", store)
    distributed.init_process_group(
        backend, store=fresh, rank=rank, world_size=size, timeout=TIMEOUT
    )
