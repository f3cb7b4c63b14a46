"""Processes that run inputs under limits, and a parent that notices how they end.

A worker reads numbers from its standard input and answers each with a line of JSON. One that
crashes or takes too long is ended, its input counts as failed, and another one takes its place.
"""

import json
import os
import resource
import selectors
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic

from tests.fuzz.cases import Outcome, kind_of, random_of, run_case

MEMORY = 10**9  # bytes that an input may take
CPU_SECONDS = 10.0
WALL_SECONDS = 120.0  # it may wait for other processes


@dataclass
class Worker:
    process: subprocess.Popen[str]
    number: int | None = None  # of the input under way
    started: float = 0.0  # time, and CPU time used before
    cpu_before: float = 0.0

    @classmethod
    def start(cls, seed: int, materials: Path) -> "Worker":
        command = [sys.executable, "-m", "tests.fuzz.workers", str(seed), str(materials)]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return cls(process)

    def give(self, number: int) -> None:
        self.number, self.started, self.cpu_before = number, monotonic(), self.cpu_time()
        assert self.process.stdin is not None
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()

    def cpu_time(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def is_late(self) -> bool:
        if monotonic() - self.started > WALL_SECONDS:
            return True
        return self.cpu_time() - self.cpu_before > CPU_SECONDS

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


def run_all(
    seed: int, numbers: Iterable[int], materials: Path, *, num_workers: int
) -> Iterator[Outcome]:
    """The outcome of every input, in the order in which they are done."""
    waiting = iter(numbers)
    selector = selectors.DefaultSelector()
    workers: list[Worker] = []

    def assign(worker: Worker) -> None:
        number = next(waiting, None)
        if number is None:
            worker.number = None
            workers.remove(worker)
            selector.unregister(worker.process.stdout)  # type: ignore[arg-type]
            worker.end()
        else:
            worker.give(number)

    def start() -> None:
        worker = Worker.start(seed, materials)
        workers.append(worker)
        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]
        ready = worker.process.stdout.readline()  # type: ignore[union-attr]
        if not ready:
            raise RuntimeError("a worker did not start; run one input with --only to see why")
        assign(worker)

    try:
        for _ in range(num_workers):
            start()
        while workers:
            for key, _ in selector.select(timeout=1.0):
                worker = key.data
                line = worker.process.stdout.readline()
                if line:
                    yield Outcome(**json.loads(line))
                    assign(worker)
                else:
                    yield _lost(worker, seed, f"the process ended with {worker.process.wait()}")
                    _drop(worker, workers, selector)
                    start()
            for worker in list(workers):
                if worker.process.poll() is None and worker.is_late:
                    yield _lost(worker, seed, f"more than {CPU_SECONDS:.0f} s")
                    _drop(worker, workers, selector)
                    start()
    finally:
        for worker in workers:
            worker.end()


def _drop(worker: Worker, workers: list[Worker], selector: selectors.BaseSelector) -> None:
    selector.unregister(worker.process.stdout)  # type: ignore[arg-type]
    workers.remove(worker)
    worker.end()


def _lost(worker: Worker, seed: int, detail: str) -> Outcome:
    assert worker.number is not None
    return Outcome(worker.number, kind_of(random_of(seed, worker.number)), "failed", detail)


def work(seed: int, materials: Path) -> None:
    """Run the inputs whose numbers come in."""
    prepare(materials)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(asdict(run_case(seed, int(line), materials))) + "\n")
        answers.flush()


def prepare(materials: Path) -> None:
    """One thread, no data folders, kernels compiled, and no more than MEMORY from here on."""
    import numba
    import torch

    import nodepiece

    os.environ.pop("NODEPIECE_DATA", None)
    os.environ["XDG_CACHE_HOME"] = str(materials / "cache")
    os.environ["COLUMNS"] = "200"
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    nodepiece.load(materials / "run-links").predict(head="n1", relation="likes")
    used = next(
        int(line.split()[1]) * 1024
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmData:")
    )
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, resource.RLIM_INFINITY))


if __name__ == "__main__":
    work(int(sys.argv[1]), Path(sys.argv[2]))
