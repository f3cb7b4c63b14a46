"""Names of nodes and relations, stored separately from the ids that algorithms use."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nodepiece.errors import InputError
from nodepiece.graph.arrays import LongArray
from nodepiece.graph.short_text import few, plural
from nodepiece.graph.suggestions import near_names

INVERSE_PREFIX = "inverse of "
BLOCK_NAMES = 1 << 20  # hashed at a time
MAX_LISTED = 8  # relations, where none is similar to an unknown one
FEW = 16  # up to this many names, a search one by one is faster than an index of all


class UnknownName(InputError):
    """A name that a graph lacks."""

    def __init__(self, sentence: str, suggestions: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.suggestions = tuple(suggestions)  # similar names, likeliest first


@dataclass(frozen=True, eq=False)
class Names:
    """Node and relation names; the position in the array is the id. Any UTF-8, spaces included."""

    nodes: pa.LargeStringArray  # (num_nodes,) distinct
    relations: pa.LargeStringArray  # (num_relations,) distinct, without inverses

    @staticmethod
    def of(nodes: Sequence[str], relations: Sequence[str]) -> "Names":
        """Names from lists of strings."""
        return Names(pa.array(nodes, pa.large_string()), pa.array(relations, pa.large_string()))

    def __repr__(self) -> str:
        nodes, relations = plural(len(self.nodes), "node"), plural(len(self.relations), "relation")
        return (
            f"Names({nodes}: {few(self.nodes[:4].to_pylist())}; "
            f"{relations}: {few(self.relations[:4].to_pylist())})"
        )

    def node(self, node_id: int) -> str:
        """The name of a node by its id."""
        return self.nodes[int(node_id)].as_py()

    def relation(self, relation_id: int) -> str:
        """The name of a relation; ids from num_relations on are inverses."""
        inverse, base = divmod(int(relation_id), len(self.relations))
        return INVERSE_PREFIX * inverse + self.relations[base].as_py()

    def node_id(self, name: str) -> int:
        """The id of a node by its name; an unknown name is refused with similar ones."""
        return self._find(name, self.nodes, "node")

    def node_ids(self, names: Sequence[str]) -> LongArray:
        """The ids of many nodes at once, in the order of the names."""
        if len(names) < FEW:
            return np.array([self.node_id(name) for name in names], np.int64)
        ids = pc.index_in(pa.array(names, pa.large_string()), value_set=self.nodes)
        if ids.null_count:
            self.node_id(names[pc.index(ids.is_null(), True).as_py()])  # its error suggests names
        return ids.to_numpy().astype(np.int64)

    def relation_id(self, name: str) -> int:
        """The id of a relation by name, or of "inverse of NAME"."""
        if name.startswith(INVERSE_PREFIX) and pc.index(self.relations, name).as_py() < 0:
            base = self._find(name.removeprefix(INVERSE_PREFIX), self.relations, "relation")
            return base + len(self.relations)
        return self._find(name, self.relations, "relation")

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all names in order: two graphs with the same one agree on every id."""
        digest = hashlib.sha256()
        for column in (self.nodes, self.relations):
            digest.update(f"{len(column)}:".encode())
            for start in range(0, len(column), BLOCK_NAMES):
                lengths = pc.binary_length(column.slice(start, BLOCK_NAMES)).cast(pa.int32())
                digest.update(lengths.to_numpy(zero_copy_only=False).tobytes())
            digest.update(_text(column))
        return digest.hexdigest()

    def _find(self, name: str, column: pa.LargeStringArray, kind: str) -> int:
        if not _is_utf8(name):
            raise UnknownName(f"unknown {kind} {name!r}: it is not UTF-8, and all names are")
        position: int = pc.index(column, name).as_py()
        if position >= 0:
            return position
        raise unknown_name(name, column, kind)


def unknown_name(name: str, column: pa.LargeStringArray, kind: str) -> UnknownName:
    """The error about a name that a column lacks, with similar ones; or else some relations."""
    close = near_names(name, column)
    sentence = f"unknown {kind} {name!r}{_suggestion(close)}"
    if not close and kind == "relation" and len(column):
        sentence += f"; the graph has {few(column[: MAX_LISTED + 1].to_pylist(), MAX_LISTED)}"
    return UnknownName(sentence, close)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # a lone surrogate: Python's form of bytes that are not UTF-8
        return False
    return True


def _text(column: pa.LargeStringArray) -> memoryview:
    """The characters of all names, one after the other, without copying them."""
    if not len(column):
        return memoryview(b"")
    offsets = memoryview(column.buffers()[1]).cast("q")
    start, end = offsets[column.offset], offsets[column.offset + len(column)]
    return memoryview(column.buffers()[2])[start:end]


def _suggestion(close: Sequence[str]) -> str:
    """The end of an error message: names similar to one that was mistyped."""
    if not close:
        return "; names are compared letter by letter, case included"
    return "; did you mean " + " or ".join(repr(candidate) for candidate in close) + "?"


def save_names(names: Names, folder: Path) -> None:
    """Write nodes.arrow and relations.arrow, uncompressed so that they can be memory-mapped."""
    folder.mkdir(parents=True, exist_ok=True)
    for stem, column in (("nodes", names.nodes), ("relations", names.relations)):
        table = pa.table({"name": column})
        with pa.ipc.new_file(folder / f"{stem}.arrow", table.schema) as writer:
            writer.write_table(table)


def load_names(folder: Path) -> Names:
    return Names(_load_column(folder / "nodes.arrow"), _load_column(folder / "relations.arrow"))


def _load_column(path: Path) -> pa.LargeStringArray:
    try:
        with pa.memory_map(str(path)) as source:
            column = pa.ipc.open_file(source).read_all()["name"]
        column.validate(full=True)  # before its offsets are used
    except (OSError, pa.ArrowInvalid, KeyError) as error:
        raise InputError(f"cannot read the names in {path}: {error}; write it again") from error
    if column.type != pa.large_string():
        raise InputError(f"the names in {path} are {column.type}, not text; write it again")
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
