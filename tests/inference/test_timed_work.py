"""Long work in parts of a fraction of a second, and its time by a few of them."""

from time import sleep

from nodepiece.inference.timed_work import FIRST_PART, seconds_an_item, timed_slices


def test_parts_have_every_item_once_and_grow_where_they_are_quick() -> None:
    parts = list(timed_slices(1000, 256))

    assert [place for part in parts for place in range(part.start, part.stop)] == [*range(1000)]
    assert [part.stop - part.start for part in parts][:3] == [FIRST_PART, 64, 256]


def test_parts_that_take_long_become_smaller() -> None:
    sizes = []
    for part in timed_slices(FIRST_PART + 1, 256):
        sizes.append(part.stop - part.start)
        sleep(0.4 if part.start == 0 else 0)

    assert sizes == [FIRST_PART, 1]


def test_few_items_are_timed_and_more_where_these_are_quick() -> None:
    asked: list[int] = []

    seconds = seconds_an_item(asked.append, 100)

    assert asked == [1, 16, 100] and seconds < 0.01
    assert seconds_an_item(asked.append, 0) == 0
