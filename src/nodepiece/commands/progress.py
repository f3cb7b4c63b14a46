"""Progress of work that is counted: a bar on a terminal, elsewhere a line every few seconds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from nodepiece.commands.console import err

SECONDS_BETWEEN_LINES = 10.0

Advance = Callable[[int, int], None]  # done so far, and in all


@contextmanager
def counted(doing: str, noun: str) -> Iterator[Advance]:
    """Yield a function to call with what is done so far and in all; `noun` is in the plural."""
    start = perf_counter()
    if err.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} " + noun),
            TimeRemainingColumn(),
            TextColumn("left"),
        )
        with Progress(*columns, console=err, transient=True) as bar:
            task = bar.add_task(doing, total=1)
            yield lambda done, total: bar.update(task, completed=done, total=total)
        return
    last = [start]

    def advance(done: int, total: int) -> None:
        now = perf_counter()
        if now - last[0] > SECONDS_BETWEEN_LINES and done:
            last[0] = now
            left = (now - start) / done * max(0, total - done)
            err.print(f"{doing}: {done:,}/{total:,} {noun}; {left:.0f} s left", soft_wrap=True)

    yield advance
