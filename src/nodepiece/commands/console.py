"""Output of commands: results on standard output, progress and errors on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

# Names of nodes may contain [brackets], so nothing is interpreted as markup.
out = Console(markup=False, highlight=False)
err = Console(markup=False, highlight=False, stderr=True)

# One entry for each Ctrl-C so far. A library that is being imported may swallow the
# KeyboardInterrupt or raise another error instead, so stages check this list too.
interrupts: list[int] = []

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")
]


def log(sentence: str) -> None:
    """Print a line of the result, never wrapped, so that it can be searched and piped."""
    out.print(sentence, soft_wrap=True)


@contextmanager
def stage(doing: str) -> Iterator[list[str]]:
    """Print what is being done, then how it went (what the block appends) and how long it took.

    A spinner with a clock on a terminal; elsewhere a line that is finished when the work is.
    """
    if interrupts:
        raise KeyboardInterrupt
    start = perf_counter()
    remarks: list[str] = []
    if err.is_terminal:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=err, transient=True) as progress:
            progress.add_task(doing, total=None)
            yield remarks
        err.print(f"{doing} ... ", end="")
    else:
        err.print(f"{doing} ... ", end="")
        try:
            yield remarks
        except BaseException:
            err.print()
            raise
    err.print("; ".join([*remarks, f"{perf_counter() - start:.1f} s"]), soft_wrap=True)


def count(number: int, noun: str) -> str:
    """A number and its noun, such as "1 node", "14,505 nodes" or "465 classes"."""
    if number == 1:
        return f"{number:,} {noun}"
    return f"{number:,} {noun}es" if noun.endswith("s") else f"{number:,} {noun}s"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def readable_bytes(number: int) -> str:
    size = float(number)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} GB"


def bar(share: float, width: int = 30) -> str:
    """A bar whose length is a share of the longest one, at least one character."""
    letter = "█" if out.encoding.startswith("utf") else "#"
    return letter * max(1, round(share * width))
