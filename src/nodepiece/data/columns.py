"""Which columns of a table hold head, relation and tail: by their names, or as requested."""

import csv
import io
import shlex
from collections.abc import Sequence
from typing import NoReturn

from nodepiece.data.blocks import Column, Columns
from nodepiece.data.column_names import (
    MAX_CANDIDATES,
    NUMBERS,
    ROLES,
    Positions,
    known_roles,
    normalized,
    possible_columns,
)
from nodepiece.errors import InputError


def with_third_column(names: Sequence[str]) -> list[Positions]:
    """The possible roles of columns if two have known names: another one has the remaining role.

    Of several, the first two; columns with names of numbers come last.
    """
    known = known_roles(names)
    if not are_two(known):
        return []
    others = [place for place in range(len(names)) if place not in known.values()]
    likely = [place for place in others if normalized(names[place]) not in NUMBERS]
    found = []
    for place in (likely or others)[:MAX_CANDIDATES]:
        head, relation, tail = (known.get(role, place) for role in ROLES)
        found.append((head, relation, tail))
    return found


def are_two(known: dict[str, int]) -> bool:
    return len(set(known.values())) == len(known) == 2


def lacks_relation(names: Sequence[str]) -> bool:
    """Whether head and tail are known, and the other columns have the names of numbers."""
    known = known_roles(names)
    others = {normalized(name) for place, name in enumerate(names) if place not in known.values()}
    return are_two(known) and "relation" not in known and others <= set(NUMBERS)


def refuse_edge_list(names: Sequence[str], where: str, otherwise: str = "") -> NoReturn:
    """Refuse a table of heads and tails, with or without weights, that has no relations."""
    known = known_roles(names)
    others = [name for place, name in enumerate(names) if place not in known.values()]
    unlikely = f" ({listed(others)} is none by its name)" if others else ""
    head, tail = names[known["head"]], names[known["tail"]]
    raise InputError(
        f"{where}: there are columns for head ({head!r}) and tail ({tail!r}), but none for the "
        f"relation{unlikely}; add one, with the same word in every line if there is only one "
        f"relation, or name the three with --columns HEAD,RELATION,TAIL{otherwise}"
    )


def choose_columns(
    names: Sequence[str], columns: Columns | None, label: str, *, by_position: bool = False
) -> Positions:
    """The requested columns, else those with known names; an ambiguous table is refused.

    `by_position`: three columns without known names are head, relation and tail, in this order.
    """
    if columns is not None:
        return requested_positions(names, columns, label)
    found = possible_columns(names)
    if len(found) == 1:
        return found[0]
    in_order = [str(position) for position in range(3)]  # pandas' names of unnamed columns
    if len(names) == 3 and (list(names) == in_order or (by_position and not known_roles(names))):
        return 0, 1, 2
    if not found and lacks_relation(names):
        refuse_edge_list(names, label)
    likely = found or with_third_column(names)
    if len(likely) > 1:
        why = f"columns {listed(names)} can be read in more than one way"
    else:
        why = f"cannot tell which columns are head, relation and tail among {listed(names)}"
    if not likely:
        raise InputError(f"{label}: {why}; name the three with --columns HEAD,RELATION,TAIL")
    ways = " or ".join(as_option([names[place] for place in at]) for at in likely[:MAX_CANDIDATES])
    raise InputError(f"{label}: {why}; give {ways}, head first, then relation, then tail")


def as_option(columns: Sequence[Column]) -> str:
    """The command-line option for these columns, such as `--columns src,type,dst`."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(columns)
    return "--columns " + shlex.quote(text.getvalue())


def requested_positions(names: Sequence[str], columns: Columns, label: str) -> Positions:
    head, relation, tail = (position_of(column, names, label) for column in columns)
    if len({head, relation, tail}) < 3:
        raise InputError(
            f"{label}: head, relation and tail must be three different columns, got {columns}"
        )
    return head, relation, tail


def position_of(column: Column, names: Sequence[str], label: str) -> int:
    if isinstance(column, int):
        if not 0 <= column < len(names):
            raise InputError(
                f"{label}: there is no column at position {column}; it has {len(names)} columns, "
                "counted from 0"
            )
        return column
    same = [place for place, name in enumerate(names) if name == column]
    if not same and (word := normalized(column)):
        same = [place for place, name in enumerate(names) if normalized(name) == word]
    if len(same) != 1:
        many = f"{len(same)} columns" if same else "no column"
        raise InputError(f"{label}: {many} named {column!r}; the columns are {listed(names)}")
    return same[0]


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:80]) for name in names[:20])
    return shown if len(names) <= 20 else f"{shown} and {len(names) - 20} more"
