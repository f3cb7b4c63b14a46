"""Long work in parts of a fraction of a second, and how long all of it takes by a few of them."""

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter, process_time

PART_SECONDS = 0.3  # about, of one part: so soon a stop takes effect
FIRST_PART = 16  # items
FEW_ITEMS, MORE_ITEMS = 16, 256  # that are timed; more only where a few are quick
QUICK_SECONDS = 0.2


def timed_slices(length: int, most: int) -> Iterator[slice]:
    """Consecutive slices of so many items, up to `most` each, by the time that the last one took.

    The time is that between two slices, in which the caller works on the first of them.
    """
    start, size = 0, min(FIRST_PART, most)
    while start < length:
        began = perf_counter()
        yield slice(start, min(start + size, length))
        seconds = max(1e-6, perf_counter() - began)
        start += size
        size = max(1, min(most, 4 * size, int(size * PART_SECONDS / seconds)))


def seconds_of(work: Callable[[], object]) -> float:
    """The seconds of some work: those of the clock, or of the processor where these are fewer.

    So they hardly depend on what else the machine does.
    """
    start, used = perf_counter(), process_time()
    work()
    return min(perf_counter() - start, process_time() - used)


def seconds_an_item(work: Callable[[int], object], length: int) -> float:
    """The seconds of one item of `work`, which gets how many items to work on, up to `length`.

    The first item is not counted: it may compile.
    """
    if not length:
        return 0.0
    work(1)
    for number in (min(FEW_ITEMS, length), min(MORE_ITEMS, length)):
        seconds = seconds_of(partial(work, number))
        if seconds > QUICK_SECONDS:
            break
    return seconds / number
