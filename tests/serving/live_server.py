"""A server in a thread, at a free port of this machine."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import httpx

from nodepiece.inference.opened_run import Run
from nodepiece.serving.app import make_app
from nodepiece.serving.server import AnnouncedServer, address_of, bind, configure
from nodepiece.serving.settings import ServeSettings


@contextmanager
def served(*runs: Run, settings: ServeSettings | None = None) -> Iterator[str]:
    """Serve runs; yields the address, without a slash at its end."""
    started = Event()
    chosen = settings or ServeSettings()
    with bind("127.0.0.1", 0) as bound:
        config = configure(make_app(runs, chosen), chosen)
        server = AnnouncedServer(config, started.set)
        thread = Thread(target=lambda: asyncio.run(server.serve([bound])))
        thread.start()
        try:
            assert started.wait(30)
            yield address_of(bound, "127.0.0.1").rstrip("/")
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def client_of(
    *runs: Run, settings: ServeSettings | None = None, **options: object
) -> Iterator[httpx.Client]:
    """A plain HTTP client of a server of these runs."""
    with (
        served(*runs, settings=settings) as address,
        httpx.Client(base_url=address, timeout=20, trust_env=False) as client,
    ):
        yield client
