"""Whether the first row of a file names the columns or states a fact."""

import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

from nodepiece.data.blocks import ReadOptions
from nodepiece.data.column_names import (
    LETTER_TRIPLES,
    ROLES,
    Positions,
    are_mixed_letters,
    known_roles,
    normalized,
    possible_columns,
)
from nodepiece.data.columns import as_option, lacks_relation, refuse_edge_list, with_third_column
from nodepiece.errors import InputError

NUMBER = re.compile(r" *[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)? *")
Rows = Iterable[tuple[int, Sequence[str]]]  # numbers and cells of the rows after the first


def has_header(cells: Sequence[str], later: Rows, options: ReadOptions, where: str) -> bool:
    """Whether the first row names the columns.

    A header has known names for all three roles, none of which occurs in its column again. A row
    with only two known names is refused, unless one of them occurs again: then it is a fact.
    `where` is for error messages, such as "facts.csv line 1".
    """
    columns = options.chosen
    if options.header is not None:
        return options.header
    if columns is not None and any(isinstance(column, str) for column in columns):
        return True
    if columns is not None:
        return is_header_at([int(column) for column in columns], cells, later, where)
    found = possible_columns(cells)
    if len(found) > 1:
        return True  # the caller refuses ambiguous columns
    if found:
        if occurs_again(cells, found[0], later):
            refuse_ambiguous(cells, found[0], where=where)
        return True
    likely = with_third_column(cells)
    if likely or lacks_relation(cells):
        if occurs_again(cells, known_roles(cells).values(), later):
            return False
        if lacks_relation(cells):
            refuse_edge_list(cells, where, "; if that line is a fact, give --no-header")
        refuse_ambiguous(cells, *likely, where=where)
    if are_mixed_letters(cells):
        refuse_ambiguous(cells, (0, 1, 2), where=where)
    return False


def is_header_at(chosen: Sequence[int], cells: Sequence[str], later: Rows, where: str) -> bool:
    """Whether the first row is a header, for columns given by position."""
    if not all(0 <= place < len(cells) for place in chosen):
        return False  # the caller refuses columns that do not exist
    words = [normalized(cells[place]) for place in chosen]
    known = [place for place in chosen if known_roles([cells[place]])]
    is_full = len(known) == 3 or set(words) in LETTER_TRIPLES
    if not is_full and len(known) < 2:
        return False
    is_repeated = occurs_again(cells, known or chosen, later)
    if is_full != is_repeated:
        return is_full
    raise InputError(
        f"{where}: {shown(cells)} may name the columns or be a fact; give --header if it names "
        "them, --no-header if it is a fact"
    )


def occurs_again(cells: Sequence[str], at: Iterable[int], later: Rows) -> bool:
    """Whether one of these cells occurs again in its column, as names of columns do not."""
    watched = [(place, cells[place]) for place in at]
    return any(
        place < len(row) and row[place] == cell for _, row in later for place, cell in watched
    )


def refuse_ambiguous(cells: Sequence[str], *readings: Positions, where: str) -> NoReturn:
    """Refuse a first line that may be a header, of one or several readings, or a fact."""
    ways = []
    for at in readings:
        names = [cells[place] for place in at]
        as_header = ", ".join(f"{role} {name!r}" for role, name in zip(ROLES, names, strict=True))
        ways.append(f"({as_header}), give {as_option(names)}")
    as_fact = ", ".join(f"{role} {cell!r}" for role, cell in zip(ROLES, cells, strict=False))
    without = "--no-header" if len(cells) == 3 else f"--no-header {as_option((0, 1, 2))}"
    raise InputError(
        f"{where} may name the columns or be a fact: if it names them {' or '.join(ways)}; if it "
        f"is a fact ({as_fact}), give {without}"
    )


def refuse_weights(rows: Rows, label: str) -> None:
    """Refuse a file without header whose third column has fractions only, such as n1, n2, 0.53."""
    cells = [row[2] for _, row in rows if len(row) == 3]
    numbers = cells if cells and NUMBER.fullmatch(cells[0]) else cells[1:]  # the first: its name
    if not all(map(NUMBER.fullmatch, numbers)) or all(map(str.isdecimal, numbers)):
        return
    raise InputError(
        f"{label}: column 2 has numbers only, such as {numbers[0]!r}. If they are weights, the "
        "file has no relations: put a relation in their place, the same in every line if there is "
        f"only one; if they are nodes, give {as_option((0, 1, 2))}"
    )


def shown(cells: Sequence[str]) -> str:
    return ", ".join(repr(cell[:80]) for cell in cells[:20])
