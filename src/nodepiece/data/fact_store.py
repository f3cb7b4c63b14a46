"""Facts collected block by block, in memory or in a file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.fact_blocks import fact_blocks


class FactStore:
    """Rows of three ids, appended in blocks."""

    def __init__(self, spill: Path | None = None) -> None:
        """`spill`: a file to write to; None: memory."""
        self.num_facts = 0
        self._blocks: list[IntArray] = []
        self._path = spill

    def append(self, facts: IntArray) -> None:
        if self._path is None:
            self._blocks.append(facts)
        elif len(facts):
            with writing(self._path), self._path.open("ab" if self.num_facts else "wb") as file:
                file.write(np.ascontiguousarray(facts).reshape(-1).data)
        self.num_facts += len(facts)

    def finish(self) -> IntArray:
        """All facts, (num_facts, 3): in memory, or mapped."""
        if self._path is not None and self.num_facts:
            return np.memmap(self._path, np.int32, "r", shape=(self.num_facts, 3))
        facts = np.empty((self.num_facts, 3), np.int32)
        end = len(facts)
        while self._blocks:  # each block is freed as soon as it is copied
            block = self._blocks.pop()
            facts[end - len(block) : end] = block
            end -= len(block)
        return facts


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise errors of a temporary file as such, and not as errors of the file that is read."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"a temporary file in {path.parent} cannot be written: {error.strerror}; free some "
            "disk space, or choose an output on another disk"
        ) from error


def selected(
    facts: IntArray, is_left_out: Callable[[IntArray], IntArray], spill: Path | None
) -> IntArray:
    """The facts without those whose positions in a block `is_left_out` returns."""
    kept = FactStore(spill)
    for block in fact_blocks(facts):
        out = is_left_out(block)
        kept.append(np.delete(block, out, axis=0) if len(out) else block.copy())
    return kept.finish()
