"""Requests that arrive together are answered by one batch, each as if it had come alone."""

import asyncio
import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from starlette.responses import Response

from nodepiece.inference.links import LinkRun
from nodepiece.serving import batching
from nodepiece.serving.answers import Parts, PredictOptions, State, current_state
from nodepiece.serving.batch_answers import AskedTogether, Unanswered, answer_together
from nodepiece.serving.batching import Batcher
from nodepiece.serving.name_ids import NameIds
from nodepiece.serving.service_pool import ComputePool
from nodepiece.serving.settings import Limits

QUERIES: list[Parts] = [(f"person {n}", "lives in", None) for n in range(4)]


class Recorded:
    """A batcher of a run, with the size and the thread of every batch."""

    def __init__(self, run: LinkRun) -> None:
        self.ids, self.batches = NameIds(run.dataset.names), list[tuple[int, int]]()
        self.error: Exception | None = None
        self.pool = ComputePool(1, Limits())
        self.batcher = Batcher(
            lambda: current_state(run), self.pool, self._answer, lambda number: None
        )

    def _answer(
        self, state: State, asked: Sequence[AskedTogether], options: PredictOptions
    ) -> list[Response | Unanswered]:
        self.batches.append((len(asked), threading.get_ident()))
        if self.error is not None:
            raise self.error
        return answer_together(self.ids, state, asked, options)

    async def together(self, *options: PredictOptions) -> list[Any]:
        """The answers to one query with each of some options, asked at the same time."""
        asked = [
            self.batcher.predict([query], each, is_arrow=False)
            for query, each in zip(QUERIES, options, strict=False)
        ]
        found = await asyncio.gather(*asked, return_exceptions=True)
        return [
            json.loads(bytes(each.body))["results"][0]["answers"]
            if isinstance(each, Response)
            else each
            for each in found
        ]


@pytest.fixture
def recorded(run: LinkRun) -> Recorded:
    return Recorded(run)


def test_requests_for_different_numbers_of_answers_are_one_batch(recorded: Recorded) -> None:
    options = [PredictOptions(top) for top in (1, 7, 3)]

    async def ask() -> tuple[list[Any], list[Any]]:
        alone = [(await recorded.together(each))[0] for each in options[:1]]
        return alone, await recorded.together(*options)

    alone, together = asyncio.run(ask())
    assert [size for size, _ in recorded.batches] == [1, 3]
    assert [len(each) for each in together] == [1, 7, 3]
    assert together[0][0]["name"] == alone[0][0]["name"]


def test_other_options_and_many_answers_are_a_batch_of_their_own(recorded: Recorded) -> None:
    options = PredictOptions(2), PredictOptions(2, include_known=True), PredictOptions(101)
    found = asyncio.run(recorded.together(*options))
    assert [size for size, _ in recorded.batches] == [1, 1, 1]
    assert len(found[0]) == len(found[1]) == 2 and len(found[2]) > 30


def test_a_quick_batch_is_computed_by_the_event_loop_and_a_slow_one_is_not(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask() -> None:
        for _ in range(3):
            await recorded.together(PredictOptions())

    monkeypatch.setattr(batching, "QUICK_SECONDS", 60.0)
    asyncio.run(ask())
    here = [thread == threading.get_ident() for _, thread in recorded.batches]
    assert here == [False, True, True]  # the first one shows how long it takes
    recorded.batches.clear()
    monkeypatch.setattr(batching, "QUICK_SECONDS", 0.0)
    asyncio.run(ask())
    here = [thread == threading.get_ident() for _, thread in recorded.batches]
    assert here == [True, False, False]


@pytest.mark.parametrize(
    "others", [PredictOptions(seen_candidates=True), PredictOptions(101)], ids=str
)
def test_a_batch_with_other_options_is_not_taken_for_a_quick_one(
    recorded: Recorded, others: PredictOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "QUICK_SECONDS", 60.0)

    async def ask() -> None:
        for options in (PredictOptions(), PredictOptions(), others, PredictOptions()):
            await recorded.together(options)

    asyncio.run(ask())
    here = [thread == threading.get_ident() for _, thread in recorded.batches]
    assert here == [False, True, False, True]


def test_an_error_of_a_quick_batch_is_that_of_its_requests(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "QUICK_SECONDS", 60.0)

    async def ask() -> tuple[list[Any], list[Any]]:
        await recorded.together(PredictOptions(), PredictOptions())
        recorded.error = ValueError("broken")
        failed = await recorded.together(PredictOptions(), PredictOptions())
        recorded.error = None
        return failed, await recorded.together(PredictOptions())

    failed, after = asyncio.run(ask())
    assert [str(each) for each in failed] == ["broken", "broken"]
    assert len(after[0]) == 10
