"""The process that serves an application, until it is stopped."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

import torch
import uvicorn
from fastapi import FastAPI

from nodepiece.errors import InputError
from nodepiece.inference.links import LinkRun
from nodepiece.serving.served_run import ServedRun
from nodepiece.serving.service import Service
from nodepiece.serving.settings import ServeSettings
from nodepiece.serving.timed_protocol import TimedProtocol

PREPARED_SECONDS = 0.005  # between two looks whether the runs are prepared
SMALL_TABLE = 2**23  # numbers in the vectors of a graph that one thread reads in a few milliseconds


class AnnouncedServer(uvicorn.Server):
    """A server that calls a function when it answers queries.

    Before, while the runs are prepared, it accepts connections and says that it is not ready.
    """

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self.announce = announce
        self.service: Service = cast(FastAPI, config.app).state.service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        while self.started and not (self.service.prepared.is_set() or self.should_exit):
            await asyncio.sleep(PREPARED_SECONDS)
        if self.service.failure is not None:
            self.should_exit = True
        elif self.started and not self.should_exit:
            self.announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.service.is_closing = True
        await super().shutdown(sockets)


def serve_app(
    app: FastAPI,
    settings: ServeSettings,
    host: str,
    port: int,
    *,
    started: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until SIGINT or SIGTERM. `started` gets the address of the page."""
    with bind(host, port) as bound:
        address = address_of(bound, host)
        run_server(app, settings, [bound], announce=lambda: started(address))


def run_server(
    app: FastAPI,
    settings: ServeSettings,
    sockets: Sequence[socket.socket],
    *,
    announce: Callable[[], None],
) -> None:
    """Accept connections at some sockets, until SIGINT or SIGTERM."""
    server = AnnouncedServer(configure(app, settings), announce)
    num_threads = torch.get_num_threads()
    if all(map(is_small, server.service.runs.values())):
        torch.set_num_threads(1)  # threads that help each other for a millisecond lose time
    try:
        with suppress(KeyboardInterrupt):  # uvicorn raises it again when all requests are answered
            asyncio.run(server.serve(list(sockets)))
    finally:
        torch.set_num_threads(num_threads)
    if server.service.failure is not None:
        raise server.service.failure


def is_small(served: ServedRun) -> bool:
    """Whether one thread answers a query in a few milliseconds."""
    run = served.run
    if not isinstance(run, LinkRun) or run.model.scorers or run.model.layers:
        return False
    return run.num_nodes * run.experiment.encoder.dim <= SMALL_TABLE


def configure(app: FastAPI, settings: ServeSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=20,
        http=TimedProtocol,
        limit_concurrency=settings.limits.connections,
        timeout_graceful_shutdown=settings.limits.shutdown_seconds,
        ws="none",
        loop="asyncio",
    )


def bind(host: str, port: int) -> socket.socket:
    """A socket at an address; one that is in use, or not of this machine, is refused."""
    bound: socket.socket | None = None
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # asyncio sends without delay where the protocol of a socket is given
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
    except OSError as error:
        if bound is not None:
            bound.close()
        raise InputError(
            f"cannot serve at {host}:{port}: {error.strerror or error}; choose another --port or "
            "--host"
        ) from error
    return bound


def address_of(bound: socket.socket, host: str) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{bound.getsockname()[1]}/"
