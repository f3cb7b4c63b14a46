"""Facts as ids in a NumPy file: (num_facts, 3) integers of head, relation and tail, from 0 on.

Every reader takes such a file (`FORMATS`); the decimal digits of an id are the name. Where names
are not needed, `read_mapped_graph` leaves the facts on disk, for graphs larger than memory.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from nodepiece.data.blocks import Block, Reading, ReadOptions
from nodepiece.data.column_names import Positions
from nodepiece.data.columns import choose_columns
from nodepiece.data.id_table import is_dense
from nodepiece.data.input_file import InputFile
from nodepiece.errors import InputError
from nodepiece.graph.fact_blocks import fact_blocks
from nodepiece.graph.knowledge_graph import KnowledgeGraph

ENDING = ".npy"
BATCH_ROWS = 1 << 20


def read_npy(file: InputFile, options: ReadOptions) -> Reading:
    """An array of integers; their decimal digits become names."""
    with opened_array(file) as array:
        names = [str(position) for position in range(array.shape[1])]
        at = choose_columns(names, options.chosen, file.label)
        largest = largest_ids(array, at)
    blocks = npy_blocks(file, at, as_text=largest is None)
    return Reading("NumPy array", blocks, at, largest=largest)


def largest_ids(array: NDArray[Any], positions: Positions) -> tuple[int, int] | None:
    """The largest node and relation of an array of dense ids; None: they are read as text."""
    found = [
        [(int(block[:, at].min()), int(block[:, at].max())) for at in positions]
        for block in fact_blocks(array)
    ]
    low, high = np.array(found, dtype=object).transpose(2, 1, 0)
    smallest, largest = min(low[0].min(), low[2].min()), max(high[0].max(), high[2].max())
    relations = (low[1].min(), high[1].max())
    if is_dense(smallest, largest, len(array)) and is_dense(*relations, len(array)):
        return largest, relations[1]
    return None


def npy_blocks(file: InputFile, positions: Positions, *, as_text: bool) -> Iterator[Block]:
    with opened_array(file) as array:
        for start in range(0, len(array), BATCH_ROWS):
            rows = array[start : start + BATCH_ROWS]
            native = rows.dtype.newbyteorder("=")  # Arrow has no other byte order
            columns = [np.ascontiguousarray(rows[:, position], native) for position in positions]
            if min(int(column.min()) for column in columns) < 0:
                raise InputError(f"{file.label} has ids below 0; ids count from 0")
            ids = [pa.array(column) for column in columns]
            yield Block(*(column.cast(pa.string()) if as_text else column for column in ids))


@contextmanager
def opened_array(file: InputFile) -> Iterator[NDArray[Any]]:
    """The array of a file, mapped; a compressed one is unpacked to a temporary file first."""
    if not file.is_gzip:
        yield map_integers(file.path, file.label)
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "facts.npy"
        with file.open() as stream, copy.open("wb") as target:
            shutil.copyfileobj(stream, target)
        yield map_integers(copy, file.label)


def map_integers(path: Path, label: str) -> NDArray[Any]:
    """Map an array file into memory; an array that cannot hold facts is refused."""
    try:
        facts = open_memmap(path, mode="r")
    except Exception as error:  # a damaged header may raise anything that a parser can
        raise InputError(f"{label} cannot be read as an array ({error}); write it again") from error
    is_table = facts.ndim == 2 and facts.shape[1] >= 3 and facts.size
    if not is_table or not np.issubdtype(facts.dtype, np.integer):
        raise InputError(
            f"{label} holds {facts.dtype} in shape {facts.shape}; facts are integers in shape "
            "(num_facts, 3), one at least: head, relation, tail"
        )
    return facts


def can_be_mapped(source: str | Path) -> bool:
    return Path(source).suffix == ENDING and Path(source).is_file()


def read_mapped_graph(path: str | Path) -> KnowledgeGraph:
    """The graph of an int32 array file, whose facts stay on disk, without names.

    There are as many nodes and relations as the largest ids say. Duplicate facts are kept, as
    finding them would need all facts in memory; they change degrees and PageRank, nothing else.
    """
    facts = map_integers(Path(path), str(path))
    if facts.shape[1] != 3 or facts.dtype != np.int32:
        raise InputError(
            f"{path} holds {facts.dtype} in shape {facts.shape}; to be mapped, facts are int32 in "
            "shape (num_facts, 3): head, relation, tail"
        )
    largest = np.zeros(3, np.int64)
    for block in fact_blocks(facts):
        largest = np.maximum(largest, [int(column.max()) for column in block.T])
    head, relation, tail = largest.tolist()
    return KnowledgeGraph(facts, max(head, tail) + 1, relation + 1)
