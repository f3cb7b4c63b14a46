"""Requests that wait for a version of the graph."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock


@dataclass(frozen=True, eq=False)
class WaitingRequest:
    version: int
    loop: asyncio.AbstractEventLoop
    arrived: "asyncio.Future[None]"


class Versions:
    """Wakes requests as soon as the graph has the version that they wait for."""

    def __init__(self, current: Callable[[], int]) -> None:
        self._current = current
        self._lock = Lock()
        self._waiting: list[WaitingRequest] = []

    async def wait_for(self, version: int, seconds: float) -> bool:
        """Whether the graph has a version, after so many seconds at most."""
        loop = asyncio.get_running_loop()
        mine = WaitingRequest(version, loop, loop.create_future())
        with self._lock:  # a version that is published after this wakes the request
            if self._current() >= version:
                return True
            self._waiting.append(mine)
        try:
            await asyncio.wait_for(mine.arrived, seconds)
        except TimeoutError:
            return False
        finally:
            with self._lock:
                if mine in self._waiting:
                    self._waiting.remove(mine)
        return True

    def published(self) -> None:
        """Wake the requests that wait for the current version; any thread may call it."""
        with self._lock:  # also if none waits: one may just be about to
            number = self._current()
            ready = [each for each in self._waiting if each.version <= number]
            self._waiting = [each for each in self._waiting if each.version > number]
        for each in ready:
            each.loop.call_soon_threadsafe(wake, each.arrived)


def wake(arrived: "asyncio.Future[None]") -> None:
    if not arrived.done():
        arrived.set_result(None)
