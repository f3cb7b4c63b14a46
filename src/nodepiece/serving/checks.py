"""Limits on what a request asks for."""

from collections.abc import Iterable, Sequence, Sized

from nodepiece.serving.problems import Problem
from nodepiece.serving.settings import Limits


def check_number(rows: Sized, most: int, noun: str) -> None:
    if len(rows) > most:
        raise Problem(422, f"{len(rows):,} {noun} at once; send up to {most:,} in a request")


def check_names(names: Iterable[str], most: int) -> None:
    for name in names:
        if len(name) > most:
            raise Problem(422, f"a name of {len(name):,} characters; names have up to {most:,}")


def check_top(top: int, number: int, limits: Limits) -> None:
    if top > limits.top:
        raise Problem(422, f"top is {top:,}; ask for up to {limits.top:,} answers")
    if top * number > limits.answers:
        raise Problem(
            422,
            f"{number:,} queries with {top:,} answers each; ask for up to {limits.answers:,} "
            "answers in a request",
        )


def check_query(parts: Sequence[str | None], number: int | None) -> None:
    """Refuse a query that does not leave out exactly one part."""
    if sum(part is None for part in parts) != 1:
        place = "" if number is None else f"query {number}: "
        raise Problem(
            422, f"{place}give exactly two of head, relation and tail; the third is predicted"
        )
