"""Whether a server is ready: not while it prepares its runs, and not while it stops."""

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest
import torch

from nodepiece.errors import InputError
from nodepiece.inference.links import LinkRun
from nodepiece.serving import server as servers
from nodepiece.serving.app import make_app
from nodepiece.serving.served_run import ServedRun
from nodepiece.serving.server import AnnouncedServer, bind, configure, run_server
from nodepiece.serving.settings import ServeSettings


def wait_for(client: httpx.Client, path: str) -> httpx.Response:
    """The first answer of a server that starts."""
    for _ in range(2_000):
        with suppress(httpx.HTTPError):
            return client.get(path)
        threading.Event().wait(0.01)
    raise AssertionError("the server does not answer")


def test_a_server_is_ready_when_its_runs_are_prepared_and_until_it_stops(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_prepare, announced, settings = threading.Event(), threading.Event(), ServeSettings()
    monkeypatch.setattr(ServedRun, "prepare", lambda _: may_prepare.wait(20))
    with bind("127.0.0.1", 0) as bound:
        server = AnnouncedServer(configure(make_app([run], settings), settings), announced.set)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([bound])))
        thread.start()
        address = f"http://127.0.0.1:{bound.getsockname()[1]}"
        try:
            with httpx.Client(base_url=address, timeout=20, trust_env=False) as client:
                starting = wait_for(client, "/readyz")
                assert starting.status_code == 503 and starting.headers["retry-after"] == "1"
                assert client.get("/healthz").status_code == 200
                for path in ("/v1/runs", "/v1/runs/couples/relations"):
                    assert client.get(path).status_code == 503
                assert not announced.is_set()
                may_prepare.set()
                assert announced.wait(20)
                assert client.get("/readyz").status_code == 200
                server.service.is_closing = True
                assert client.get("/readyz").status_code == 503
        finally:
            may_prepare.set()
            server.should_exit = True
            thread.join()


def test_a_run_that_cannot_be_prepared_ends_the_server_with_its_error(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: ServedRun) -> None:
        raise InputError("the run cannot be served")

    monkeypatch.setattr(ServedRun, "prepare", refuse)
    settings = ServeSettings()
    with bind("127.0.0.1", 0) as bound, ThreadPoolExecutor(1) as thread:
        ended = thread.submit(
            run_server,
            make_app([run], settings),
            settings,
            [bound],
            announce=lambda: pytest.fail("ready"),
        )
        with pytest.raises(InputError, match="cannot be served"):
            ended.result()


@pytest.mark.parametrize(("most", "expected"), [(2**23, 1), (0, 3)], ids=["small", "large"])
def test_a_small_graph_is_served_by_one_thread_of_pytorch_and_the_number_is_restored(
    run: LinkRun, monkeypatch: pytest.MonkeyPatch, most: int, expected: int
) -> None:
    before, seen = torch.get_num_threads(), list[int]()

    def end(_: ServedRun) -> None:
        seen.append(torch.get_num_threads())
        raise InputError("no more")

    def serve(bound: socket.socket) -> None:
        torch.set_num_threads(3)
        with suppress(InputError):
            run_server(app, ServeSettings(), [bound], announce=lambda: None)
        seen.append(torch.get_num_threads())

    monkeypatch.setattr(ServedRun, "prepare", end)
    monkeypatch.setattr(servers, "SMALL_TABLE", most)
    app = make_app([run], ServeSettings())
    try:
        with bind("127.0.0.1", 0) as bound, ThreadPoolExecutor(1) as thread:
            thread.submit(serve, bound).result()
    finally:
        torch.set_num_threads(before)
    assert seen == [expected, 3]
