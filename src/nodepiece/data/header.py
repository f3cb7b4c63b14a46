"""Whether the first row of a file names the columns or states a fact."""

from collections.abc import Iterable, Sequence

from nodepiece.data.blocks import ReadOptions
from nodepiece.data.columns import (
    LETTER_TRIPLES,
    ROLES,
    Positions,
    are_mixed_letters,
    as_option,
    completed,
    plain,
    readings,
    roles_known,
)
from nodepiece.errors import InputError

Rows = Iterable[tuple[int, Sequence[str]]]  # numbers and cells of the rows after the first


def has_header(cells: Sequence[str], later: Rows, options: ReadOptions, where: str) -> bool:
    """A header has known names in all three roles, and none of them is a name in its column too.

    What looks like one by two names only is refused, unless the column has one of them again: then
    it is a fact. `where` is for that message, such as "facts.csv line 1".
    """
    columns = options.chosen
    if options.header is not None:
        return options.header
    if columns is not None and any(isinstance(column, str) for column in columns):
        return True
    if columns is not None:
        return is_header_at([int(column) for column in columns], cells, later, where)
    found = readings(cells)
    if len(found) > 1:
        return True  # the caller has to choose between the readings, and refuses
    if found:
        if recurs(cells, found[0], later):
            refuse(cells, found[0], where)
        return True
    two = completed(cells)
    if two is not None and not recurs(cells, roles_known(cells).values(), later):
        refuse(cells, two, where)
    if are_mixed_letters(cells):
        refuse(cells, (0, 1, 2), where)
    return False


def is_header_at(chosen: Sequence[int], cells: Sequence[str], later: Rows, where: str) -> bool:
    """Whether the first row is a header, for columns given by number."""
    if not all(0 <= place < len(cells) for place in chosen):
        return False  # the caller does not find these columns, and refuses
    words = [plain(cells[place]) for place in chosen]
    known = [place for place in chosen if roles_known([cells[place]])]
    is_full = len(known) == 3 or set(words) in LETTER_TRIPLES
    if not is_full and len(known) < 2:
        return False
    is_repeated = recurs(cells, known or chosen, later)
    if is_full != is_repeated:
        return is_full
    raise InputError(
        f"{where}: {shown(cells)} may name the columns or be a fact; give --header if it names "
        "them, --no-header if it is a fact"
    )


def recurs(cells: Sequence[str], at: Iterable[int], later: Rows) -> bool:
    """Whether one of these cells stands in its column again, which names of columns do not."""
    watched = [(place, cells[place]) for place in at]
    return any(
        place < len(row) and row[place] == cell for _, row in later for place, cell in watched
    )


def refuse(cells: Sequence[str], at: Positions, where: str) -> None:
    names = [cells[place] for place in at]
    as_header = ", ".join(f"{role} {name!r}" for role, name in zip(ROLES, names, strict=True))
    as_fact = ", ".join(f"{role} {cell!r}" for role, cell in zip(ROLES, cells, strict=False))
    raise InputError(
        f"{where} may name the columns or be a fact: if it names them ({as_header}), give "
        f"{as_option(names)}; if it is a fact ({as_fact}), give --no-header"
    )


def shown(cells: Sequence[str]) -> str:
    return ", ".join(repr(cell[:80]) for cell in cells[:20])
