"""What the readers of all formats are asked and what they answer."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

Column = str | int  # a name, or a position counted from 0


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file; None means: find out from its name and content."""

    delimiter: str | None = None  # one character, or tab, comma, semicolon, blanks
    header: bool | None = None  # whether the first line names the columns
    columns: tuple[Column, Column, Column] | None = None  # of head, relation and tail
    format: str | None = None  # tsv, csv, parquet, nt or ttl


DETECT_EVERYTHING = ReadOptions()


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive facts of a file by name, in its order; no name is null or empty."""

    heads: pa.StringArray  # (num_facts,)
    relations: pa.StringArray  # (num_facts,)
    tails: pa.StringArray  # (num_facts,)
    num_literals: int = 0  # facts between these that were left out: their object is no node

    def __len__(self) -> int:
        return len(self.heads)


@dataclass(frozen=True, eq=False)
class Reading:
    """A file about to be read: its blocks come as they are asked for, once."""

    format: str  # in words
    blocks: Iterator[Block]
