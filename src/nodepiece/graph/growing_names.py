"""Names of a graph to which nodes are added, without a copy of all names for every new one."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodepiece.graph.arrays import LongArray
from nodepiece.graph.names import Names

SPARE_SHARE = 8  # a store that is full is copied to one with 1 / SPARE_SHARE more space


@dataclass(frozen=True, eq=False)
class GrowingNames(Names):
    """Names that are the first ones of a store, which later states of the graph share."""

    store: "NameStore"

    def __reduce__(self) -> tuple[Any, ...]:
        return Names, (self.nodes, self.relations)  # a copy has no store, which has a lock


def grown(names: Names, more: Sequence[str]) -> Names:
    """The names, followed by those of new nodes.

    If the names are the latest of their store, the new ones are written behind them, and nothing
    is copied. The names themselves do not change.
    """
    if not more:
        return names
    texts = [name.encode() for name in more]
    if isinstance(names, GrowingNames):
        nodes = names.store.append(len(names.nodes), texts)
        if nodes is not None:
            return GrowingNames(nodes, names.relations, names.store)
    store = NameStore(names.nodes, texts)
    nodes = store.append(len(names.nodes), texts)
    if nodes is None:
        raise ValueError("a new store has space for its first names")
    return GrowingNames(nodes, names.relations, store)


class NameStore:
    """The text of names with space behind it; what is written is never changed."""

    def __init__(self, names: pa.LargeStringArray, more: Sequence[bytes]) -> None:
        # more: for which there is space at least
        self._lock = Lock()
        self._number = len(names)
        offsets, text = offsets_and_text(names)
        spare = len(names) // SPARE_SHARE + len(more) + 1024
        self._offsets = np.zeros(len(offsets) + spare, np.int64)
        self._offsets[: len(offsets)] = offsets
        spare = len(text) // SPARE_SHARE + sum(map(len, more)) + (1 << 16)
        self._text = np.empty(len(text) + spare, np.uint8)
        self._text[: len(text)] = text

    def append(self, number: int, texts: Sequence[bytes]) -> pa.LargeStringArray | None:
        """The first `number` names followed by new ones; None: they do not fit behind these."""
        added = np.cumsum([len(text) for text in texts])
        with self._lock:
            end = int(self._offsets[number])
            if self._number != number or number + len(texts) >= len(self._offsets):
                return None
            if end + int(added[-1]) > len(self._text):
                return None
            joined = np.frombuffer(b"".join(texts), np.uint8)
            self._text[end : end + len(joined)] = joined
            self._offsets[number + 1 : number + 1 + len(texts)] = end + added
            self._number += len(texts)
        buffers = pa.py_buffer(self._offsets), pa.py_buffer(self._text)
        return pa.LargeStringArray.from_buffers(number + len(texts), *buffers)


def offsets_and_text(names: pa.LargeStringArray) -> tuple[LongArray, NDArray[np.uint8]]:
    """Where each name starts, from 0 on, with the end of the last one; and all text."""
    if not len(names):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    _, offset_buffer, text_buffer = names.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[names.offset :][: len(names) + 1]
    if text_buffer is None:
        return offsets - offsets[0], np.empty(0, np.uint8)
    return offsets - offsets[0], np.frombuffer(text_buffer, np.uint8)[offsets[0] : offsets[-1]]
