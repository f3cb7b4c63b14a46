"""Ids in a file to ids by first appearance; their names are decimal digits, written when needed."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from nodepiece.compiled import njit
from nodepiece.data.fact_store import writing
from nodepiece.graph.arrays import IntArray, read_only

FEW_IDS = 1 << 20  # a table of so many is small, however few facts there are
SPARSE = 8  # times as many ids as facts: ids beyond that are read as text
BLOCK_IDS = 1 << 20
SIGNED = {np.dtype(np.uint64): np.dtype(np.int64)}


def is_dense(smallest: int, largest: int, num_facts: int) -> bool:
    """Whether a table of all ids up to the largest is small, compared with the facts."""
    most = min(max(FEW_IDS, SPARSE * num_facts), np.iinfo(np.int32).max)
    return smallest >= 0 and largest < most


class IdTable:
    """An array of all ids up to the largest one of a file."""

    def __init__(self, largest: int) -> None:
        self.num_names = 0
        self._rank = np.full(largest + 1, -1, np.int32)

    def encode(self, *columns: pa.Array) -> list[IntArray]:
        """The ids of one or two columns of ids, of which the first is read first in each row."""
        arrays = [column.to_numpy(zero_copy_only=False) for column in columns]
        # numba has no integer type for both uint64 and int64; all ids are far below 2^63
        arrays = [read_only(each.view(SIGNED.get(each.dtype, each.dtype))) for each in arrays]
        ids = np.empty((len(columns), len(columns[0])), np.int32)
        self.num_names = _rank_all(arrays[0], arrays[-1], self._rank, self.num_names, ids)
        return list(ids)

    def names(self, spill: Path | None = None) -> pa.LargeStringArray:
        """The ids of the file as text, in the order of the new ids.

        `spill` is the start of names of files that hold them.
        """
        given = np.empty(self.num_names, np.int32)
        _invert(self._rank, given)
        if spill is None or not len(given):
            parts = [as_text(given[rows]) for rows in blocks(len(given))]
            return without_null_bitmap(pa.concat_arrays([as_text(given[:0]), *parts]))
        return mapped_text(given, spill)


def blocks(number: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK_IDS) for start in range(0, number, BLOCK_IDS))


def as_text(numbers: IntArray) -> pa.LargeStringArray:
    return pa.array(numbers).cast(pa.large_string())


def without_null_bitmap(column: pa.LargeStringArray) -> pa.LargeStringArray:
    _, offsets, text = column.buffers()
    return pa.LargeStringArray.from_buffers(len(column), offsets, text)


def mapped_text(numbers: IntArray, spill: Path) -> pa.LargeStringArray:
    """Numbers as text, in two files that are mapped."""
    paths = [spill.with_name(f"{spill.name}-{part}") for part in ("offsets", "text")]
    with writing(spill), paths[0].open("wb") as offsets_file, paths[1].open("wb") as text_file:
        offsets_file.write(np.zeros(1, np.int64).data)
        end = 0
        for rows in blocks(len(numbers)):
            column = as_text(numbers[rows])
            _, offsets, text = column.buffers()
            ends = np.frombuffer(offsets, np.int64)[1 : len(column) + 1]
            offsets_file.write((ends + end).data)
            text_file.write(memoryview(text)[: ends[-1]])
            end += int(ends[-1])
    offsets, text = (pa.memory_map(str(path)).read_buffer() for path in paths)
    return pa.LargeStringArray.from_buffers(len(numbers), offsets, text)


@njit(cache=True, nogil=True)
def _rank_all(one, two, rank, num_names, ids):  # type: ignore[no-untyped-def]
    for row in range(ids.shape[1]):
        for column in range(ids.shape[0]):
            given = one[row] if column == 0 else two[row]
            if rank[given] < 0:
                rank[given] = num_names
                num_names += 1
            ids[column, row] = rank[given]
    return num_names


@njit(cache=True)
def _invert(rank, given):  # type: ignore[no-untyped-def]
    for number in range(len(rank)):
        if rank[number] >= 0:
            given[rank[number]] = number
