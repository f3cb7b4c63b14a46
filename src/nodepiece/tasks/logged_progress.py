"""Progress of counted work as lines of a log, for work that takes longer than half a minute."""

from collections.abc import Callable
from time import perf_counter

SECONDS_BETWEEN_LINES = 30.0


def logged_progress(
    doing: str, noun: str, log: Callable[[str], None]
) -> Callable[[int, int], None]:
    """A function to call with what is done so far and in all; `noun` is in the plural."""
    start = last = perf_counter()

    def advance(done: int, total: int) -> None:
        nonlocal last
        now = perf_counter()
        if now - last > SECONDS_BETWEEN_LINES and 0 < done < total:
            last = now
            left = (now - start) / done * (total - done)
            log(f"{doing}: {done:,}/{total:,} {noun}; {left:.0f} s left")

    return advance
