"""Mixed load with clients that misbehave: slow, cut off, oversized, garbage."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from time import perf_counter

from benchmarks.serving_load import Answers, Connection, Request, get, post

GARBAGE = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    b"\x00" * 1000,
)


def memory_of(process: int) -> int:
    """Resident bytes of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def misbehave(
    address: tuple[str, int], run: str, until: Callable[[], bool], rng: Random
) -> int:
    """Send requests that are wrong in turn; returns how many."""
    number = 0
    while not until():
        number += 1
        with suppress(TimeoutError, OSError, asyncio.IncompleteReadError, ValueError):
            await WAYS[number % len(WAYS)](address, run, rng)
        await asyncio.sleep(0.05)
    return number


async def send_raw(address: tuple[str, int], data: bytes, *, seconds: float) -> None:
    """Send bytes, read what comes for a while, and cut the connection off."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(data)
        await asyncio.wait_for(reader.read(1 << 16), seconds)
    finally:
        writer.close()


async def garbage(address: tuple[str, int], run: str, rng: Random) -> None:
    await send_raw(address, rng.choice(GARBAGE), seconds=0.5)


async def cut_off(address: tuple[str, int], run: str, rng: Random) -> None:
    request = get(f"/v1/runs/{run}/relations")
    _, writer = await asyncio.open_connection(*address)
    writer.write(request[: rng.randint(1, len(request))])
    writer.transport.abort()


async def slow(address: tuple[str, int], run: str, rng: Random) -> None:
    _, writer = await asyncio.open_connection(*address)
    try:
        for letter in f"GET /v1/runs/{run}".encode():
            writer.write(bytes([letter]))
            await asyncio.sleep(0.05)
    finally:
        writer.close()


async def oversized(address: tuple[str, int], run: str, rng: Random) -> None:
    body = b'{"nodes": ["' + b"x" * (5 << 20) + b'"]}'
    head = f"POST /v1/runs/{run}/embed HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    data = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    await send_raw(address, data, seconds=2)


async def wrong_values(address: tuple[str, int], run: str, rng: Random) -> None:
    connection = Connection(*address)
    for request in (
        get(f"/v1/runs/{run}/predict", {"head": "nobody", "relation": "nothing"}),
        post(f"/v1/runs/{run}/predict", {"queries": [{}] * 2000}),
        post(f"/v1/runs/{run}/update", {"add": [["a", "no such relation", "b"]]}),
        post(f"/v1/runs/{run}/embed", {"nodes": [["deep"]]}),
        get(f"/v1/runs/{run}/node", {"name": "<script>" * 1000}),
    ):
        await connection.send(request)
    await connection.close()


WAYS = (garbage, cut_off, slow, oversized, wrong_values)


async def mixed_load(
    address: tuple[str, int],
    requests: list[Request],
    until: Callable[[], bool],
    answers: Answers,
    rng: Random,
) -> None:
    """A client that sends all kinds of requests, with pauses."""
    connection = Connection(*address)
    while not until():
        start = perf_counter()
        status, _ = await connection.send(rng.choice(requests))
        answers.add(status, perf_counter() - start)
        await asyncio.sleep(0.01)
    await connection.close()
