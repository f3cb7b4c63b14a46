"""Processes that end with the one that started them, also where that one is killed.

python -m nodepiece.tasks.child PID train EXPERIMENT ...

runs a command of nodepiece for the process PID. When PID ends, the command is interrupted as by
Ctrl-C: training stops after the step and saves.
"""

import os
import runpy
import signal
import sys
from threading import Thread
from time import sleep

SECONDS_BETWEEN_LOOKS = 0.5


def end_with(parent: int, signal_number: int = signal.SIGTERM) -> None:
    """Send this process a signal as soon as its parent has ended."""

    def wait() -> None:
        while os.getppid() == parent:
            sleep(SECONDS_BETWEEN_LOOKS)
        os.kill(os.getpid(), signal_number)

    Thread(target=wait, daemon=True).start()


def main() -> None:
    parent, *arguments = sys.argv[1:]
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # in the background of a shell
    end_with(int(parent), signal.SIGTERM if is_ignored else signal.SIGINT)
    sys.argv[1:] = arguments
    runpy.run_module("nodepiece", run_name="__main__")


if __name__ == "__main__":
    main()
