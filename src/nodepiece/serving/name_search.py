"""Search among millions of names, by their beginning or by a part, in a few milliseconds.

All names are one text in lower case, those with the most facts first, with a byte between them
that UTF-8 does not have. The text is cut into blocks, and for every hash of two, three and six
bytes in a row there is a row of bits: which blocks have it. A search reads only the blocks that
have all hashes of what is looked for, and stops when it has enough names, which are then those with
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
LENGTHS = (2, 3, 6)  # of sequences of bytes; long ones distinguish names of the same words
CODES = 1 << 16  # hashes of the sequences of one length

Codes = NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class NameSearch:
    """The names of a graph, prepared for searches."""

    text: bytes  # all names in lower case, each after BETWEEN, and BETWEEN at the end
    nodes: LongArray  # (num_names,) ids in the order of the text
    starts: LongArray  # (num_names + 1,) where each name begins, with the byte before it
    blocks: LongArray  # (num_blocks + 1,) where each block begins
    present: NDArray[np.uint8]  # (len(LENGTHS), CODES, num_blocks / 8) bits: blocks with a hash

    @staticmethod
    def of(names: pa.LargeStringArray, num_facts: LongArray) -> "NameSearch":
        """Prepare a search; num_facts: (num_names,) decides the order of the results."""
        nodes = np.argsort(-num_facts, kind="stable")
        text, starts = joined(lowered(names.take(pa.array(nodes))))
        size = max(MIN_BLOCK, len(text) // MAX_BLOCKS + 1)
        cuts = np.searchsorted(starts, np.arange(0, len(text), size))  # at the start of a name
        blocks = np.append(np.unique(starts[np.minimum(cuts, len(names))]), len(text))
        return NameSearch(text, nodes, starts, blocks, present_codes(text, blocks))

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
        rows = [
            table[np.unique(codes_of(letters, length))]
            for table, length in zip(self.present, LENGTHS, strict=True)
            if len(letters) >= length
        ]
        if not rows:
            return np.arange(len(self.blocks) - 1)
        bits = np.bitwise_and.reduce(np.concatenate(rows), axis=0)
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


def codes_of(letters: NDArray[np.uint8], length: int) -> Codes:
    """A hash of every so many bytes in a row."""
    number = len(letters) - length + 1
    code = letters[:number].astype(np.uint32)
    for place in range(1, length):
        code = code * np.uint32(257) + letters[place : place + number]
    return ((code * np.uint32(2654435761)) >> np.uint32(16)).astype(np.uint16)


def present_codes(text: bytes, blocks: LongArray) -> NDArray[np.uint8]:
    """The hashes that every block has: (len(LENGTHS), CODES, num_blocks / 8) bits.

    No sequence that is looked for crosses the end of a block, as that is the end of a name.
    """
    letters = np.frombuffer(text, np.uint8)
    num_blocks = len(blocks) - 1
    found = np.zeros((len(LENGTHS), CODES, -(-num_blocks // 8)), np.uint8)
    for first in range(0, num_blocks, 8):
        has = np.zeros((len(LENGTHS), 8, CODES), np.bool_)
        for place in range(min(8, num_blocks - first)):
            part = letters[blocks[first + place] : blocks[first + place + 1]]
            for row, length in enumerate(LENGTHS):
                if len(part) >= length:
                    has[row, place, codes_of(part, length)] = True
        found[:, :, first // 8] = np.packbits(has, axis=1)[:, 0]
    return found
