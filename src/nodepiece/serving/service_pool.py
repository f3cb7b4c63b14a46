"""Threads that compute answers, with a bounded number of requests that wait for them."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from nodepiece.serving.problems import Problem
from nodepiece.serving.settings import Limits

Result = TypeVar("Result")


class ComputePool:
    """A thread pool of the event loop."""

    def __init__(self, num_threads: int, limits: Limits) -> None:
        self._threads = ThreadPoolExecutor(num_threads, "nodepiece-answer")
        self._limits = limits
        self.num_waiting = 0

    @property
    def seconds(self) -> float:
        return self._limits.seconds

    def check_free(self, num_more: int = 0) -> None:
        """Refuse a request when too many wait."""
        number = self.num_waiting + num_more
        if number >= self._limits.waiting:
            raise Problem(
                503,
                f"{number} requests are waiting already; try again in a second",
                headers={"Retry-After": "1"},
            )

    def too_slow(self) -> Problem:
        return Problem(504, f"no answer within {self.seconds:g} s; ask for less at a time")

    def submit(self, function: Callable[[], Result]) -> "asyncio.Future[Result]":
        self.num_waiting += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, function)
        future.add_done_callback(self._done)
        return future

    async def compute(self, function: Callable[[], Result]) -> Result:
        """The result of a function; a request that waits too long gets a problem."""
        self.check_free()
        try:
            return await asyncio.wait_for(asyncio.shield(self.submit(function)), self.seconds)
        except TimeoutError:
            raise self.too_slow() from None

    def _done(self, future: "asyncio.Future[Result]") -> None:
        self.num_waiting -= 1
        if not future.cancelled():
            future.exception()  # it was raised to the request, unless that has ended

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
