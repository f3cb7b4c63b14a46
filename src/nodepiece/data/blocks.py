"""The interface of the readers of all formats: `ReadOptions` in, a `Reading` of `Block`s out."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from nodepiece.errors import InputError

Column = str | int  # a name, or a position counted from 0
Columns = tuple[Column, Column, Column]  # of head, relation and tail


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file; None: detected from its name and content.

    `columns` may be text too, such as "src,type,dst" or "0,2,1".
    """

    delimiter: str | None = None  # one character, or tab, comma, semicolon, blanks
    header: bool | None = None  # whether the first line names the columns
    columns: Columns | Sequence[Column] | str | None = None  # of head, relation and tail
    format: str | None = None  # a name in FORMATS of `data/formats.py`

    def __post_init__(self) -> None:
        if self.format is not None:
            check_format(self.format)
        if self.columns is not None:
            object.__setattr__(self, "columns", parse_columns(self.columns))

    @property
    def chosen(self) -> Columns | None:
        """The columns asked for."""
        return None if self.columns is None else parse_columns(self.columns)

    def given(self) -> dict[str, Any]:
        """The options that are not None."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


DETECT_EVERYTHING = ReadOptions()


def check_format(name: str) -> None:
    """Refuse a format that is not in the registry."""
    from nodepiece.data.formats import FORMATS  # whose readers take ReadOptions

    if name not in FORMATS:
        raise InputError(f"unknown format {name!r}; it is one of {', '.join(FORMATS)}")


def parse_columns(columns: Sequence[Column] | str) -> Columns:
    """The three columns of, for example, "subject,predicate,object", "0,2,1" or ("subject", 1, 2).

    In text, a name with a comma in it is quoted as in CSV.
    """
    parts: list[Column] = list(columns)
    if isinstance(columns, str):
        cells = next(csv.reader([columns]), [])
        parts = [int(cell) if cell.isdecimal() else cell for cell in cells]
    is_right = all(type(part) is int or (isinstance(part, str) and part) for part in parts)
    if len(parts) != 3 or not is_right:
        raise InputError(
            "--columns takes three names or positions, such as head,relation,tail or 0,2,1; "
            f"got {columns!r}"
        )
    return parts[0], parts[1], parts[2]


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive facts of a file by name, in its order; no name is null or empty.

    Where the reading says so (`largest`), names are integers from 0 on instead of text.
    """

    heads: pa.StringArray  # (num_facts,)
    relations: pa.StringArray  # (num_facts,)
    tails: pa.StringArray  # (num_facts,)
    num_literals: int = 0  # facts left out between these, as their object is not a node

    def __len__(self) -> int:
        return len(self.heads)


@dataclass(frozen=True, eq=False)
class Reading:
    """A file that is about to be read; its blocks can be iterated over once."""

    format: str  # in words
    blocks: Iterator[Block]
    columns: Columns | None = None  # head, relation and tail by name or position; None: RDF
    is_plain: bool = False  # text in which quotes have no special meaning
    largest: tuple[int, int] | None = None  # node and relation, of blocks of integers
