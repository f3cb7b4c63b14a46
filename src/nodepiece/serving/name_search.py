"""Search among millions of names, by their beginning or by a part, in a few milliseconds.

All names are one text in lower case, those with the most facts first, with a byte between them
that UTF-8 does not have. The text is cut into blocks, and for every sequence of two bytes and every
hash of three there is a row of bits: which blocks have it. A search reads only the blocks that have
all sequences of what is looked for, and stops when it has enough names, which are then those with
the most facts. A search for the beginning of a name includes the byte before it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nodepiece.graph.arrays import LongArray

BETWEEN = b"\xff"  # in no name, as it is not UTF-8
MAX_BLOCKS = 4096
MIN_BLOCK = 1 << 10  # bytes
CODES = 1 << 16  # pairs of bytes, and hashes of three

Codes = NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class NameSearch:
    """The names of a graph, prepared for searches."""

    text: bytes  # all names in lower case, each after BETWEEN, and BETWEEN at the end
    nodes: LongArray  # (num_names,) ids in the order of the text
    starts: LongArray  # (num_names + 1,) where each name begins, with the byte before it
    blocks: LongArray  # (num_blocks + 1,) where each block begins
    pairs: NDArray[np.uint8]  # (CODES, num_blocks / 8) bits: blocks that have these two bytes
    triples: NDArray[np.uint8]  # (CODES, num_blocks / 8) bits: blocks with three of this hash

    @staticmethod
    def of(names: pa.LargeStringArray, num_facts: LongArray) -> "NameSearch":
        """Prepare a search; num_facts: (num_names,) decides the order of the results."""
        nodes = np.argsort(-num_facts, kind="stable")
        text, starts = joined(lowered(names.take(pa.array(nodes))))
        size = max(MIN_BLOCK, len(text) // MAX_BLOCKS + 1)
        cuts = np.searchsorted(starts, np.arange(0, len(text), size))  # at the start of a name
        blocks = np.append(np.unique(starts[np.minimum(cuts, len(names))]), len(text))
        return NameSearch(text, nodes, starts, blocks, *present_codes(text, blocks))

    def find(self, part: str, limit: int, *, at_start: bool) -> list[int]:
        """Nodes with names that begin with a text or have it in them, most facts first."""
        wanted = lowered(pa.array([part], pa.large_string()))[0].as_py().encode()
        if at_start:
            wanted = BETWEEN + wanted
        return [
            int(self.nodes[place])
            for place, _ in zip(self._places(wanted), range(limit), strict=False)
        ]

    def _places(self, wanted: bytes) -> Iterator[int]:
        """Positions in the order of the text of names that have these bytes."""
        for block in self._candidates(wanted).tolist():
            at, end = int(self.blocks[block]), int(self.blocks[block + 1])
            while (found := self.text.find(wanted, at, end)) >= 0:
                place = int(np.searchsorted(self.starts, found, side="right")) - 1
                yield place
                at = int(self.starts[place + 1])  # once for each name

    def _candidates(self, wanted: bytes) -> LongArray:
        """The blocks that may have these bytes, in their order."""
        letters = np.frombuffer(wanted, np.uint8)
        rows = [self.pairs[np.unique(pair_codes(letters))]]
        rows.append(self.triples[np.unique(triple_codes(letters))])
        bits = np.bitwise_and.reduce(np.concatenate(rows), axis=0)  # all blocks if there are none
        return np.flatnonzero(np.unpackbits(bits, count=len(self.blocks) - 1))


def lowered(names: pa.LargeStringArray) -> pa.LargeStringArray:
    return pc.utf8_lower(names)


def joined(names: pa.LargeStringArray) -> tuple[bytes, LongArray]:
    """All names, each after BETWEEN, and BETWEEN at the end; where each of them begins."""
    lengths = pc.binary_length(names).to_numpy(zero_copy_only=False).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths + 1)])
    letters = np.empty(int(starts[-1]) + 1, np.uint8)
    is_between = np.zeros(len(letters), np.bool_)
    is_between[starts] = True
    letters[is_between] = BETWEEN[0]
    letters[~is_between] = text_of(names)
    return letters.tobytes(), starts


def text_of(names: pa.LargeStringArray) -> NDArray[np.uint8]:
    """The bytes of all names, one after the other."""
    if not len(names) or names.buffers()[2] is None:
        return np.empty(0, np.uint8)
    offsets = np.frombuffer(names.buffers()[1], np.int64)[names.offset :]
    return np.frombuffer(names.buffers()[2], np.uint8)[offsets[0] : offsets[len(names)]]


def pair_codes(letters: NDArray[np.uint8]) -> Codes:
    wide = letters.astype(np.uint16)
    return (wide[:-1] * np.uint16(256)) | wide[1:]


def triple_codes(letters: NDArray[np.uint8]) -> Codes:
    """A hash of every three bytes in a row."""
    wide = letters.astype(np.uint32)
    code = (wide[:-2] << 16) | (wide[1:-1] << 8) | wide[2:]
    return ((code * np.uint32(2654435761)) >> 16).astype(np.uint16)


def present_codes(text: bytes, blocks: LongArray) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The pairs and the triples of every block: (CODES, num_blocks / 8) bits each.

    A block is read with the two bytes after it, so that it has the sequences across its end.
    """
    letters = np.frombuffer(text, np.uint8)
    num_blocks = len(blocks) - 1
    found = np.zeros((2, CODES, -(-num_blocks // 8)), np.uint8)
    for first in range(0, num_blocks, 8):
        has = np.zeros((2, CODES, 8), np.bool_)
        for place in range(min(8, num_blocks - first)):
            start, end = blocks[first + place], blocks[first + place + 1]
            part = letters[start : end + 2]
            has[0, pair_codes(part), place] = True
            has[1, triple_codes(part), place] = True
        found[:, :, first // 8] = np.packbits(has, axis=2)[:, :, 0]
    return found[0], found[1]
