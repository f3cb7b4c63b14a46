"""Names to ids by first appearance, block by block: of each name, the text is in memory once."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodepiece.compiled import njit, prange
from nodepiece.graph.arrays import IntArray, read_only
from nodepiece.graph.hashing import mix

MAX_LOAD = 0.6  # of the slots of the hash table
FIRST_SLOTS = 1 << 12
BATCH = 64  # names looked up at once
GROWTH = 1.25  # of the text and its offsets, which are enlarged where they are

Text = tuple[NDArray[np.int64], NDArray[np.uint8]]  # offsets, and the bytes of all strings


class NameTable:
    """A hash table of names; its ids are positions in `names`."""

    def __init__(self) -> None:
        self.num_names = 0
        self._slots = np.full((FIRST_SLOTS, 2), -1, np.int32)  # id, and some more bits of the hash
        self._starts = np.zeros(FIRST_SLOTS, np.int64)  # of names in the text; then where it ends
        self._text = np.empty(1 << 16, np.uint8)

    def encode(self, *columns: pa.Array) -> list[IntArray]:
        """The ids of one or two columns of names, of which the first is read first in each row."""
        texts = [text_of(column) for column in columns]
        ids = np.empty((len(columns), len(columns[0])), np.int32)
        for text, known in zip(texts, ids, strict=True):
            _look_up(text, known, self._slots, self._starts, self._text)
        row = 0
        while True:
            row, self.num_names = _add_unknown(
                *(texts[0], texts[-1], ids, row),
                *(self._slots, self._starts, self._text, self.num_names),
            )
            if row == ids.shape[1]:
                return list(ids)
            ends = (texts[0][0], texts[-1][0])  # as `_add_unknown` counts, also for one column
            self._grow(sum(int(offsets[row + 1] - offsets[row]) for offsets in ends))

    def _grow(self, num_bytes: int) -> None:
        """Make place for one more row, and for so many bytes of text."""
        if self.num_names + 2 > MAX_LOAD * len(self._slots):
            slots = np.full((2 * len(self._slots), 2), -1, np.int32)
            _move(self._slots, slots, self._starts, self._text)
            self._slots = slots
        if self.num_names + 3 > len(self._starts):
            self._starts.resize(int(GROWTH * len(self._starts)) + 3, refcheck=False)
        used = int(self._starts[self.num_names])
        if used + num_bytes > len(self._text):
            self._text.resize(int(GROWTH * (used + num_bytes)), refcheck=False)

    def names(self) -> pa.LargeStringArray:
        """All names in the order of their ids, without a copy: no more can be added."""
        starts, text, num_names = self._starts, self._text, self.num_names
        text.resize(int(starts[num_names]), refcheck=False)
        starts.resize(num_names + 1, refcheck=False)
        return pa.LargeStringArray.from_buffers(num_names, pa.py_buffer(starts), pa.py_buffer(text))


def text_of(column: pa.Array) -> Text:
    """Offsets and bytes of a column of names without nulls."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        column = column.cast(pa.large_string())
    _, offsets, data = column.buffers()
    kind = np.int32 if pa.types.is_string(column.type) else np.int64
    if offsets is None or not len(column):
        return np.zeros(1, np.int64), read_only(np.empty(0, np.uint8))
    starts = np.frombuffer(offsets, kind)[column.offset : column.offset + len(column) + 1]
    text = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return starts.astype(np.int64), read_only(text)


@njit(parallel=True, cache=True)
def _look_up(column, ids, slots, starts, text):  # type: ignore[no-untyped-def]
    """Write the ids of names that the table has, and -1 for others.

    A batch of names goes through one step after the other, so that the processor waits for many
    places in memory at once.
    """
    offsets, data = column
    mask = np.uint64(len(slots) - 1)
    for batch in prange((len(ids) + BATCH - 1) // BATCH):
        first, end = batch * BATCH, min((batch + 1) * BATCH, len(ids))
        hashes = np.empty(BATCH, np.uint64)
        places = np.empty(BATCH, np.int64)
        for row in range(first, end):
            hashes[row - first] = _hash(data, offsets[row], offsets[row + 1])
        for i in range(end - first):
            known = slots[np.int64(hashes[i] & mask), 0]
            ids[first + i] = known
            places[i] = starts[known] if known >= 0 else 0
        for row in range(first, end):
            known = ids[row]
            if known >= 0 and not _is_same(
                data, offsets[row], offsets[row + 1], known, places[row - first], starts, text
            ):
                found = _find(data, offsets[row], offsets[row + 1], slots, starts, text)
                ids[row] = slots[found, 0]


@njit(cache=True)
def _add_unknown(one, two, ids, row, slots, starts, text, num_names):  # type: ignore[no-untyped-def]
    """Add names without id until all are there or a table is full.

    Returns the next row and the number of names.
    """
    num_columns, num_rows = ids.shape
    limit = min(np.int64(MAX_LOAD * len(slots)), len(starts) - 1)
    while row < num_rows:
        if ids[0, row] >= 0 and ids[num_columns - 1, row] >= 0:
            row += 1
            continue
        num_bytes = one[0][row + 1] - one[0][row] + two[0][row + 1] - two[0][row]
        if num_names + 2 > limit or starts[num_names] + num_bytes > len(text):
            break
        for column in range(num_columns):
            if ids[column, row] >= 0:
                continue
            offsets, data = one if column == 0 else two
            first, end = offsets[row], offsets[row + 1]
            found = _find(data, first, end, slots, starts, text)
            if slots[found, 0] < 0:
                slots[found, 0] = num_names
                slots[found, 1] = _tag(_hash(data, first, end))
                start = starts[num_names]
                for i in range(end - first):
                    text[start + i] = data[first + i]
                starts[num_names + 1] = start + end - first
                num_names += 1
            ids[column, row] = slots[found, 0]
        row += 1
    return row, num_names


@njit(cache=True)
def _find(data, first, end, slots, starts, text):  # type: ignore[no-untyped-def]
    """The slot of a name, or the free slot where it belongs."""
    bits = _hash(data, first, end)
    tag, mask = _tag(bits), np.uint64(len(slots) - 1)
    slot = np.int64(bits & mask)
    while slots[slot, 0] >= 0:
        known = slots[slot, 0]
        if slots[slot, 1] == tag and _is_same(data, first, end, known, starts[known], starts, text):
            break
        slot = (slot + 1) % len(slots)
    return slot


@njit(cache=True, inline="always")
def _is_same(data, first, end, known, start, starts, text):  # type: ignore[no-untyped-def]
    """Whether a name is the known one, which begins at `start` of the text."""
    if starts[known + 1] - start != end - first:
        return False
    i = first
    while i < end and text[start + i - first] == data[i]:
        i += 1
    return i == end


@njit(cache=True, inline="always")
def _hash(data, first, end):  # type: ignore[no-untyped-def]
    """64 bits of a name, eight bytes at a time."""
    bits = np.uint64(end - first)
    while first + 8 <= end:
        word = np.uint64(0)
        for i in range(8):
            word |= np.uint64(data[first + i]) << np.uint64(8 * i)
        bits = (bits ^ word) * np.uint64(0x9E3779B97F4A7C15)
        bits ^= bits >> np.uint64(29)
        first += 8
    word = np.uint64(0)
    for i in range(end - first):
        word |= np.uint64(data[first + i]) << np.uint64(8 * i)
    return mix(bits, word, 0)


@njit(cache=True, inline="always")
def _tag(bits):  # type: ignore[no-untyped-def]
    return np.int32(bits >> np.uint64(33))


@njit(cache=True)
def _move(slots, larger, starts, text):  # type: ignore[no-untyped-def]
    """Put all names of a hash table into a larger one, which is empty."""
    for slot in range(len(slots)):
        known = slots[slot, 0]
        if known >= 0:
            bits = _hash(text, starts[known], starts[known + 1])
            place = np.int64(bits & np.uint64(len(larger) - 1))
            while larger[place, 0] >= 0:
                place = (place + 1) % len(larger)
            larger[place, 0] = known
            larger[place, 1] = slots[slot, 1]
