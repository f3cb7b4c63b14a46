"""Long work in parts of a fraction of a second, and its time by a few of them."""

import pytest

from nodepiece.inference.timed_work import (
    FIRST_PART,
    PART_SECONDS,
    seconds_an_item,
    timed_slices,
)


class Clock:
    """A clock that stands still unless a test moves it."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("nodepiece.inference.timed_work.perf_counter", clock)
    monkeypatch.setattr("nodepiece.inference.timed_work.process_time", clock)
    return clock


def test_parts_have_every_item_once_and_grow_where_they_are_quick(clock: Clock) -> None:
    parts = list(timed_slices(1000, 256))

    assert [place for part in parts for place in range(part.start, part.stop)] == [*range(1000)]
    assert [part.stop - part.start for part in parts][:3] == [FIRST_PART, 64, 256]


def test_parts_that_take_long_become_smaller(clock: Clock) -> None:
    sizes = []
    for part in timed_slices(4 * FIRST_PART, 256):
        sizes.append(part.stop - part.start)
        clock.now += sizes[-1] * PART_SECONDS / 4.5  # four items have the time of a part

    assert sizes == [FIRST_PART, *[4] * (3 * FIRST_PART // 4)]


def test_few_items_are_timed_and_more_where_these_are_quick(clock: Clock) -> None:
    asked: list[int] = []

    def work(number: int) -> None:
        asked.append(number)
        clock.now += 0.001 * number

    assert seconds_an_item(work, 100) == pytest.approx(0.001)
    assert asked == [1, 16, 100]
    assert seconds_an_item(work, 0) == 0


def test_no_more_items_are_timed_where_a_few_take_long(clock: Clock) -> None:
    asked: list[int] = []

    def work(number: int) -> None:
        asked.append(number)
        clock.now += number

    assert seconds_an_item(work, 100) == pytest.approx(1.0)
    assert asked == [1, 16]
