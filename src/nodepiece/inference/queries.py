"""Queries in bulk, by name, turned into ids; those that cannot be answered are listed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nodepiece.data.column_names import ROLES
from nodepiece.data.query_rows import NumberedParts, Part
from nodepiece.errors import InputError
from nodepiece.graph.arrays import LongArray
from nodepiece.graph.names import INVERSE_PREFIX, Names

ASKED = ("?", "", None)  # any of these stands for the part that is asked for
HEAD, RELATION, TAIL = range(3)
ROWS_AT_ONCE = 1 << 13  # queries whose names are looked up together
MAX_REASONS = 20  # of refused queries are worked out with suggestions, which take time


class Refused(NamedTuple):
    """A query or a fact that was left out."""

    number: int
    reason: str
    is_unknown: bool  # it names a node or a relation that the graph lacks


@dataclass(frozen=True, eq=False)
class QueryIds:
    """Queries by ids, as a snapshot scores them: heads are tails of the inverse relation."""

    number: LongArray  # (num_queries,) of lines or positions
    first: LongArray  # (num_queries,) the given node; the head, where the relation is asked for
    second: LongArray  # (num_queries,) a relation or an inverse; the tail, where it is asked for
    asked: NDArray[np.int8]  # (num_queries,) HEAD, RELATION or TAIL

    def __len__(self) -> int:
        return len(self.number)


def removed_node(name: str) -> str:
    """Why a query with a node that was removed is refused."""
    return f"node {name!r} was removed from the graph; choose another one"


def chunks(rows: Iterable[NumberedParts]) -> Iterator[list[NumberedParts]]:
    """The rows in lists that are encoded at once."""
    remaining = iter(rows)
    while chunk := list(islice(remaining, ROWS_AT_ONCE)):
        yield chunk


def encode_queries(
    names: Names, rows: Sequence[NumberedParts], num_refused: int = 0
) -> tuple[QueryIds, list[Refused]]:
    """Queries by ids, and those that were refused, both in order.

    num_refused: before these rows; from MAX_REASONS on, reasons have no suggestions.
    """
    asked = [[part in ASKED for part in row.parts] for row in rows]
    faults = [row.fault or fault_of_query(flags) for row, flags in zip(rows, asked, strict=True)]
    ids, refused = look_up(names, rows, faults, num_refused)
    kept = ids.kept
    role = np.array([flags.index(True) for flags, ok in zip(asked, kept, strict=True) if ok])
    head, relation, tail = ids.heads[kept], ids.relations[kept], ids.tails[kept]
    num_relations = len(names.relations)
    inverse = (relation + num_relations) % (2 * num_relations)
    first = np.where(role == HEAD, tail, head)
    second = np.where(role == HEAD, inverse, np.where(role == RELATION, tail, relation))
    numbers = np.array([row.number for row in rows], np.int64)[kept]
    return QueryIds(numbers, first, second, role.astype(np.int8)), refused


def encode_triples(
    names: Names, rows: Sequence[NumberedParts], num_refused: int = 0
) -> tuple[LongArray, LongArray, list[Refused]]:
    """Numbers (num_facts,) and ids (num_facts, 3) of facts, and those that were refused.

    The relation may be an inverse.
    """
    faults = [
        row.fault
        or (
            "it asks for a part; give head, relation and tail"
            if any(part in ASKED for part in row.parts)
            else ""
        )
        for row in rows
    ]
    ids, refused = look_up(names, rows, faults, num_refused)
    numbers = np.array([row.number for row in rows], np.int64)[ids.kept]
    triples = np.stack([ids.heads, ids.relations, ids.tails], axis=1)[ids.kept]
    return numbers, triples, refused


def fault_of_query(is_asked: list[bool]) -> str:
    number = sum(is_asked)
    if number == 1:
        return ""
    return f"{number} of its parts are asked for; write ? for one of head, relation and tail"


class LookedUp(NamedTuple):
    """Ids of rows, -1 where a part is asked for or unknown."""

    heads: LongArray
    relations: LongArray
    tails: LongArray
    kept: NDArray[np.bool_]


def look_up(
    names: Names, rows: Sequence[NumberedParts], faults: Sequence[str], num_refused: int
) -> tuple[LookedUp, list[Refused]]:
    heads, relations, tails = (
        [None if part in ASKED else part for part in column]
        for column in zip(*(row.parts for row in rows), strict=True)
    )
    both = find_names(heads + tails, names.nodes)
    found = both[: len(rows)], find_relations(relations, names), both[len(rows) :]
    wanted = (heads, relations, tails)
    is_unknown = np.array(
        [
            (ids < 0) & np.array([part is not None for part in column])
            for column, ids in zip(wanted, found, strict=True)
        ]
    )
    kept = ~is_unknown.any(axis=0) & np.array([not fault for fault in faults])
    refused: list[Refused] = []
    for place in np.flatnonzero(~kept).tolist():
        reason = faults[place]
        if not reason:
            role = int(is_unknown[:, place].argmax())
            with_near = num_refused + len(refused) < MAX_REASONS
            reason = unknown_name(names, ROLES[role], wanted[role][place], with_near)
        refused.append(Refused(rows[place].number, reason, not faults[place]))
    return LookedUp(*found, kept), refused


def find_names(wanted: list[Part], column: pa.LargeStringArray) -> LongArray:
    """The position of every name, -1 for those that are not there, and for None."""
    try:
        names = pa.array(wanted, pa.large_string())
    except UnicodeEncodeError:  # a lone surrogate, for a byte that is not UTF-8
        names = pa.array([name if is_utf8(name) else None for name in wanted], pa.large_string())
    found = pc.index_in(names, value_set=column, skip_nulls=True)
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)


def find_relations(wanted: list[Part], names: Names) -> LongArray:
    """The ids of relations, or of "inverse of NAME"."""
    direct = find_names(wanted, names.relations)
    bases = [
        name.removeprefix(INVERSE_PREFIX) if name and name.startswith(INVERSE_PREFIX) else None
        for name in wanted
    ]
    inverse = find_names(bases, names.relations)
    inverse = np.where(inverse >= 0, inverse + len(names.relations), -1)
    return np.where(direct >= 0, direct, inverse)


def is_utf8(name: Part) -> bool:
    try:
        (name or "").encode()
    except UnicodeEncodeError:
        return False
    return True


def unknown_name(names: Names, role: str, name: Part, with_near: bool) -> str:
    """Why a name is refused, with similar ones if wanted."""
    if not with_near:
        return f"unknown {'relation' if role == 'relation' else 'node'} {name!r}"
    try:
        (names.relation_id if role == "relation" else names.node_id)(name or "")
    except InputError as error:
        return str(error)
    raise ValueError(f"{name!r} is known")
