"""What all requests share: the runs by name, and a bounded number of threads that compute."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from nodepiece.inference.opened_run import Run
from nodepiece.serving.problems import Problem
from nodepiece.serving.served_run import ServedRun
from nodepiece.serving.settings import ServeSettings

Result = TypeVar("Result")


class Service:
    """The runs of a server and its threads."""

    def __init__(self, runs: Sequence[Run], settings: ServeSettings) -> None:
        self.settings = settings
        names = distinct_names([run.folder.absolute().name for run in runs])
        self.runs = {
            name: ServedRun(name, run, settings) for name, run in zip(names, runs, strict=True)
        }
        self.pool = ThreadPoolExecutor(settings.threads, "nodepiece-answer")
        self.num_waiting = 0
        self.is_ready = False

    def run(self, name: str) -> ServedRun:
        found = self.runs.get(name)
        if found is None:
            raise Problem(
                404,
                f"there is no run {name!r}; GET /v1/runs lists them",
                suggestions=list(self.runs),
            )
        return found

    async def compute(self, function: Callable[[], Result]) -> Result:
        """The result of a function that another thread computes; refused if too many wait."""
        limits = self.settings.limits
        if self.num_waiting >= limits.waiting:
            raise Problem(
                503,
                f"{self.num_waiting} requests are waiting already; try again in a second",
                headers={"Retry-After": "1"},
            )
        self.num_waiting += 1
        future = asyncio.get_running_loop().run_in_executor(self.pool, function)
        future.add_done_callback(self._done)
        try:
            return await asyncio.wait_for(asyncio.shield(future), limits.seconds)
        except TimeoutError:
            raise Problem(
                504, f"no answer within {limits.seconds:g} s; ask for less at a time"
            ) from None

    def _done(self, future: "asyncio.Future[Result]") -> None:
        self.num_waiting -= 1
        if not future.cancelled():
            future.exception()  # it was raised to the request, unless that has ended

    def prepare(self) -> None:
        """Compute what the first requests would wait for."""
        for served in self.runs.values():
            served.prepare()
        self.is_ready = True

    def close(self) -> None:
        """Finish the updates that were accepted, and end all threads."""
        for served in self.runs.values():
            served.close()
        self.pool.shutdown(wait=True, cancel_futures=True)


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names, with -2, -3, ... added to those that were there before."""
    found: list[str] = []
    for name in names:
        number, distinct = 1, name
        while distinct in found:
            number += 1
            distinct = f"{name}-{number}"
        found.append(distinct)
    return found
