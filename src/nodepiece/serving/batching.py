"""Queries that arrive together are scored together.

While a batch is computed, the queries that arrive wait, and are the next batch: a query that comes
alone is computed at once, and with many clients batches are large. A query waits for one batch at
most, so the delay is bounded.

Batches that take a few milliseconds are computed in the event loop itself: to hand them to another
thread and back would take as long.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from starlette.responses import Response

from nodepiece.serving.answers import MIXED_TOP, Parts, PredictOptions, State
from nodepiece.serving.batch_answers import AskedTogether, Unanswered
from nodepiece.serving.problems import Problem
from nodepiece.serving.service_pool import ComputePool

AnswerTogether = Callable[
    [State, Sequence[AskedTogether], PredictOptions], list[Response | Unanswered]
]
MAX_QUERIES = 512  # of a batch
MAX_ANSWERS = 50_000  # of a batch
QUICK_SECONDS = 0.004  # of a batch that the event loop computes itself


@dataclass(frozen=True, eq=False)
class WaitingQueries:
    """The queries of one request."""

    queries: Sequence[Parts]
    options: PredictOptions
    is_arrow: bool
    response: "asyncio.Future[Response | Unanswered]"


class Batcher:
    """Answers the queries of a run, in batches."""

    def __init__(
        self,
        state: Callable[[], State],
        pool: ComputePool,
        answer: AnswerTogether,
        on_batch: Callable[[int], None],
    ) -> None:
        self._state, self._pool, self._answer, self._on_batch = state, pool, answer, on_batch
        self._waiting: list[WaitingQueries] = []
        self._is_computing = False
        # queries in the largest batch that was quick lately, with the same options but for `top`
        self._num_quick: dict[PredictOptions, int] = {}

    async def predict(
        self, queries: Sequence[Parts], options: PredictOptions, *, is_arrow: bool
    ) -> Response | Unanswered:
        """The answer to the queries of one request."""
        loop = asyncio.get_running_loop()
        self._pool.check_free(len(self._waiting))
        mine = WaitingQueries(queries, options, is_arrow, loop.create_future())
        self._waiting.append(mine)
        if not self._is_computing:
            self._is_computing = True
            loop.call_soon(self._start)  # with those that arrive at the same time
        try:
            return await asyncio.wait_for(mine.response, self._pool.seconds)
        except TimeoutError:
            raise self._pool.too_slow() from None

    def _start(self) -> None:
        batch = self._take()
        if not batch:
            self._is_computing = False
            return
        num_queries = sum(len(each.queries) for each in batch)
        self._on_batch(num_queries)
        asked = [AskedTogether(each.queries, each.options.top, each.is_arrow) for each in batch]
        options = replace(batch[0].options, top=max(each.top for each in asked))
        future = self._begin(
            lambda: self._answer(self._state(), asked, options), num_queries, options
        )
        future.add_done_callback(lambda done: self._finish(batch, done))

    def _begin(
        self,
        compute: Callable[[], list[Response | Unanswered]],
        num_queries: int,
        options: PredictOptions,
    ) -> "asyncio.Future[list[Response | Unanswered]]":
        """The answers to a batch, computed here if that is quick, else by another thread.

        Other options may take a hundred times as long, as with an index that they do not use, and
        all requests would wait.
        """
        if options.top > MIXED_TOP:
            return self._pool.submit(compute)
        kind = replace(options, top=0)

        def timed() -> list[Response | Unanswered]:
            start = perf_counter()
            try:
                return compute()
            finally:
                self._learn(kind, num_queries, perf_counter() - start)

        if num_queries > self._num_quick.get(kind, 0):
            return self._pool.submit(timed)
        future = asyncio.get_running_loop().create_future()
        try:
            future.set_result(timed())
        except Exception as error:  # which each of the requests gets
            future.set_exception(error)
        return future

    def _learn(self, kind: PredictOptions, num_queries: int, seconds: float) -> None:
        most = self._num_quick.get(kind, 0)
        is_quick = seconds <= QUICK_SECONDS
        self._num_quick[kind] = max(most, num_queries) if is_quick else min(most, num_queries - 1)

    def _take(self) -> list[WaitingQueries]:
        """Requests that go with the first, in order, as many as may be together."""
        self._waiting = [each for each in self._waiting if not each.response.done()]
        batch: list[WaitingQueries] = []
        others: list[WaitingQueries] = []
        num_queries = top = 0
        for each in self._waiting:
            number, most = num_queries + len(each.queries), max(top, each.options.top)
            fits = number <= MAX_QUERIES and number * most <= MAX_ANSWERS
            if not batch or (each.options.goes_with(batch[0].options) and fits):
                batch.append(each)
                num_queries, top = number, most
            else:
                others.append(each)
        self._waiting = others
        return batch

    def _finish(
        self,
        batch: Sequence[WaitingQueries],
        done: "asyncio.Future[list[Response | Unanswered]]",
    ) -> None:
        error: BaseException | None = (
            asyncio.CancelledError() if done.cancelled() else done.exception()
        )
        if isinstance(error, asyncio.CancelledError):
            error = Problem(503, "the server stops")
        found = [] if error is not None else done.result()
        for place, each in enumerate(batch):
            if each.response.done():
                continue  # the client did not wait
            if error is None:
                each.response.set_result(found[place])
            else:
                each.response.set_exception(error)
        self._start()
