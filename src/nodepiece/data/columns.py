"""Which columns of a table hold head, relation and tail."""

from collections.abc import Sequence

from nodepiece.data.blocks import Column
from nodepiece.errors import InputError

ROLES = ("head", "relation", "tail")

# What people call the three columns, the plainest word first: with both "predicate" and "label"
# in a header, the label is something else.
COLUMN_WORDS = {
    "head": ("head", "subject", "source", "from", "node1", "start_id", "subj", "h", "s"),
    "relation": ("relation", "predicate", "edge", "rel", "pred", "type", "label", "r", "p"),
    "tail": ("tail", "object", "target", "to", "node2", "end_id", "obj", "t", "o"),
}

Positions = tuple[int, int, int]  # of head, relation and tail, counted from 0


def positions_by_words(names: Sequence[str]) -> Positions | None:
    """The columns whose names are known words, or None unless all three roles are there."""
    folded = [name.strip().lstrip(":#").casefold() for name in names]
    found = []
    for role in ROLES:
        present = [word for word in COLUMN_WORDS[role] if word in folded]
        if not present:
            return None
        found.append(folded.index(present[0]))
    return found[0], found[1], found[2]


def choose_columns(
    names: Sequence[str], columns: tuple[Column, Column, Column] | None, label: str
) -> Positions:
    """The columns asked for, else those with telling names, else all of three."""
    if columns is not None:
        return positions_asked_for(names, columns, label)
    positions = positions_by_words(names)
    if positions is None and len(names) == 3:
        positions = (0, 1, 2)
    if positions is None:
        raise InputError(
            f"{label}: cannot tell which columns are head, relation and tail among "
            f"{listed(names)}; name the three with --columns"
        )
    return positions


def positions_asked_for(
    names: Sequence[str], columns: tuple[Column, Column, Column], label: str
) -> Positions:
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
                f"counted from 0"
            )
        return column
    if names.count(column) != 1:
        many = "no column" if column not in names else f"{names.count(column)} columns"
        raise InputError(f"{label}: {many} named {column!r}; the columns are {listed(names)}")
    return names.index(column)


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:20])
    return shown if len(names) <= 20 else f"{shown} and {len(names) - 20} more"
