"""Several processes that serve the same runs at one address.

All accept connections at one socket. The first of them updates the graphs; the others pass updates
on to it, and read each batch from disk when it is committed, so all see updates in one order. A
process that ends is started again.
"""

import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from nodepiece.errors import InputError
from nodepiece.serving.server import address_of, bind, run_server
from nodepiece.serving.settings import ServeSettings
from nodepiece.tasks.child import end_with

RESTART_SECONDS = 1.0  # at least, between two starts of the same process


@dataclass(frozen=True)
class Work:
    """What a worker is started with."""

    folders: tuple[Path, ...]
    settings: ServeSettings
    sockets: tuple[socket.socket, ...]
    num_workers: int
    ready: Any  # a queue that gets "" when the worker answers, or why it does not


def serve_workers(
    folders: Sequence[Path],
    settings: ServeSettings,
    host: str,
    port: int,
    *,
    num_workers: int,
    started: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM, from several processes."""
    context = get_context("spawn")
    with bind(host, port) as bound, tempfile.TemporaryDirectory(prefix="nodepiece-") as place:
        inner = str(Path(place) / "writer.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as writer_socket:
            writer_socket.bind(inner)
            writer_socket.listen(128)
            ready = context.SimpleQueue()
            reading = replace(settings, forward_to=inner if settings.writable else None)
            first = Work(tuple(folders), settings, (bound, writer_socket), num_workers, ready)
            others = replace(first, settings=reading, sockets=(bound,))
            works = [first] + [others] * (num_workers - 1)

            def start(work: Work) -> BaseProcess:
                process = context.Process(target=run_worker, args=(work, os.getpid()))
                process.start()
                return process

            with stop_signals() as is_stopped:
                processes = [start(work) for work in works]
                try:
                    wait_until_ready(processes, ready, is_stopped)
                    if not is_stopped.is_set():
                        started(address_of(bound, host))
                    keep_alive(processes, works, start, is_stopped)
                finally:
                    stop(processes)


def run_worker(work: Work, parent: int) -> None:
    """Open the runs and serve them; the main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent passes it on
    try:
        import torch

        from nodepiece.inference.run import load
        from nodepiece.serving.app import make_app

        torch.set_num_threads(max(1, (os.cpu_count() or 1) // work.num_workers))
        runs = [load(folder) for folder in work.folders]
        app = make_app(runs, work.settings)
    except InputError as error:
        work.ready.put(str(error))
        return
    end_with(parent)
    app.state.service.prepare()  # before it accepts connections: other workers answer meanwhile
    try:
        run_server(app, work.settings, work.sockets, announce=lambda: work.ready.put(""))
    except InputError as error:
        work.ready.put(str(error))


class stop_signals:
    """Record SIGINT and SIGTERM in an event, instead of ending the process."""

    def __enter__(self) -> threading.Event:
        self.event = threading.Event()
        self.before = {
            number: signal.signal(number, lambda *_: self.event.set())
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self.event

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


def wait_until_ready(
    processes: Sequence[BaseProcess], ready: Any, is_stopped: threading.Event
) -> None:
    for _ in processes:
        while ready.empty():
            if is_stopped.is_set():
                return
            if any(not process.is_alive() for process in processes) and ready.empty():
                raise InputError("a worker ended at its start; run with --workers 1 to see why")
            sleep(0.02)
        if reason := ready.get():
            raise InputError(reason)


def keep_alive(
    processes: list[BaseProcess],
    works: Sequence[Work],
    start: Callable[[Work], BaseProcess],
    is_stopped: threading.Event,
) -> None:
    """Start workers again that have ended, until the server is stopped."""
    last_start = [monotonic()] * len(works)
    while not is_stopped.is_set():
        connection.wait([process.sentinel for process in processes], timeout=0.2)
        for place, process in enumerate(processes):
            recently = monotonic() - last_start[place] < RESTART_SECONDS
            if not (process.is_alive() or is_stopped.is_set() or recently):
                processes[place], last_start[place] = start(works[place]), monotonic()


def stop(processes: Sequence[BaseProcess]) -> None:
    """End the first process, which commits the updates of the others, after them."""
    for some in (processes[1:], processes[:1]):
        for process in some:
            if process.is_alive():
                process.terminate()
        for process in some:
            process.join()
