"""Clients of a server that use little time of their own: bytes over sockets, many in one thread."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from urllib.parse import urlencode

import numpy as np

Request = bytes


@dataclass
class Answers:
    """What some clients measured."""

    seconds: list[float] = field(default_factory=list)  # of each request that was answered
    statuses: dict[int, int] = field(default_factory=dict)

    def add(self, status: int, seconds: float) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.seconds.append(seconds)

    def to_json(self, wall_seconds: float) -> dict[str, Any]:
        times = np.array(self.seconds or [np.nan]) * 1000
        return {
            "requests": len(self.seconds),
            "requests_per_second": round(len(self.seconds) / wall_seconds, 1),
            "p50_ms": round(float(np.percentile(times, 50)), 2),
            "p99_ms": round(float(np.percentile(times, 99)), 2),
            "max_ms": round(float(times.max()), 1),
            "statuses": {str(key): value for key, value in sorted(self.statuses.items())},
        }


class Connection:
    """One connection that is kept open."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def send(self, request: Request) -> tuple[int, bytes]:
        """Status and body of the answer."""
        if self.reader is None or self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(
                self.host, self.port, limit=1 << 24
            )
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        body = await self.reader.readexactly(length)
        if b"connection: close" in head.lower():
            await self.close()
        return int(head.split(b" ", 2)[1]), body

    async def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


def get(path: str, parameters: dict[str, Any] | None = None, **headers: str) -> Request:
    query = f"?{urlencode(parameters)}" if parameters else ""
    lines = [f"GET {path}{query} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def post(path: str, body: dict[str, Any]) -> Request:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


async def closed_loop(
    address: tuple[str, int],
    requests: Sequence[Request],
    *,
    num_clients: int,
    until: Callable[[], bool],
    answers: Answers,
) -> None:
    """Clients that send one request after the other, each when the last was answered."""

    async def client(number: int) -> None:
        connection = Connection(*address)
        place = number * 7919
        while not until():
            start = perf_counter()
            status, _ = await connection.send(requests[place % len(requests)])
            answers.add(status, perf_counter() - start)
            place += 1
        await connection.close()

    await asyncio.gather(*(client(number) for number in range(num_clients)))
