"""Other programs on the GPU: processes that multiply matrices until they are stopped.

A GPU shared with them runs the streams of a test in another order than an idle one.
"""

import subprocess
import sys
from contextlib import suppress
from select import select
from types import TracebackType

import torch

NUM_PROCESSES = 4
SIZE = 4096  # of square matrices
AT_ONCE = 20  # products before a process looks for another command
TIMEOUT = 60.0  # seconds that a process has to end


class OtherPrograms:
    """Started when the GPU is first to be busy; they end with the block, or with this process."""

    def __init__(self, device: str = "cuda", size: int = SIZE) -> None:
        self.command = [sys.executable, __file__, device, str(size)]
        self.processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> "OtherPrograms":
        return self

    def keep_busy(self, busy: bool) -> None:
        """Returns when every process multiplies, or none does."""
        if busy and not self.processes:
            pipe = subprocess.PIPE
            for _ in range(NUM_PROCESSES):
                process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, text=True)
                self.processes.append(process)
        command = "busy\n" if busy else "idle\n"
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(command)
            process.stdin.flush()
        for process in self.processes:
            assert process.stdout is not None
            answer = process.stdout.readline()
            assert answer == command, f"a process that keeps the GPU busy ended: {answer!r}"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self.processes:
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.close()  # at which it ends
        for process in self.processes:
            try:
                process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()  # type: ignore[union-attr]
        self.processes = []


def follow_commands(device: str, size: int) -> None:
    """Follow the commands on standard input, and confirm each, until there are no more."""
    matrix = torch.ones(size, size, device=device)
    product, is_busy = torch.empty_like(matrix), False
    while True:
        command = ""
        if not is_busy or select([sys.stdin], [], [], 0)[0]:
            command = sys.stdin.readline()
            if not command:
                return
            is_busy = command == "busy\n"
        if is_busy:
            for _ in range(AT_ONCE):
                torch.mm(matrix, matrix, out=product)
            product[0, 0].item()  # waits
        if command:
            sys.stdout.write(command)
            sys.stdout.flush()


if __name__ == "__main__":
    follow_commands(sys.argv[1], int(sys.argv[2]))
