"""One update of a run's graph as a file: its facts and names, and the rows it changed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from nodepiece.errors import InputError
from nodepiece.files import write_bytes
from nodepiece.graph.arrays import IntArray
from nodepiece.tokenizer.changing_graph import Change
from nodepiece.tokenizer.changing_tokens import Batch
from nodepiece.tokenizer.token_rows import TokenRows

FORMAT_VERSION = 1

Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class VectorRows:
    """The vectors that are new or different after a batch."""

    nodes: IntArray  # (num_rows,) ascending
    vectors: Vectors  # (num_rows, dim)


@dataclass(frozen=True, eq=False)
class StoredBatch:
    """All changes of one update."""

    change: Change
    tokens: TokenRows
    vectors: VectorRows


def write_batch(path: Path, batch: StoredBatch, *, cleans: bool = True) -> None:
    """Write a batch atomically, to a folder that exists; cleans: see `atomic_file`."""
    change, tokens = batch.change, batch.tokens
    names = [name.encode() for name in change.new_nodes]
    arrays: dict[str, NDArray[Any]] = {
        "added": change.batch.added,
        "removed": change.batch.removed,
        "gone": change.removed_nodes,
        "back": change.restored_nodes,
        "name_text": np.frombuffer(b"".join(names), np.uint8),
        "name_lengths": np.array([len(name) for name in names], np.int64),
        "nodes": tokens.nodes,
        "anchors": tokens.anchors,
        "distances": tokens.distances,
        "relations": tokens.relations,
        "vector_nodes": batch.vectors.nodes,
        "vectors": batch.vectors.vectors,
    }
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    content = save(whole, metadata={"format_version": str(FORMAT_VERSION)})
    write_bytes(path, content, cleans=cleans)


def read_batch(path: Path) -> StoredBatch:
    try:
        with safe_open(path, framework="numpy") as file:
            check_version(path, int((file.metadata() or {}).get("format_version", 0)))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        names = _names_in(arrays)
        batch = Batch(arrays["added"], arrays["removed"], len(names))
        columns = ("nodes", "anchors", "distances", "relations")
        return StoredBatch(
            Change(batch, names, arrays["gone"], arrays["back"], 0, 0),
            TokenRows(*(arrays[name] for name in columns)),
            VectorRows(arrays["vector_nodes"], arrays["vectors"]),
        )
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise InputError(f"cannot read {path}: {error}; restore it from a copy") from error


def _names_in(arrays: dict[str, NDArray[Any]]) -> tuple[str, ...]:
    text, lengths = arrays["name_text"].tobytes(), arrays["name_lengths"].astype(np.int64)
    ends = np.cumsum(lengths)
    if (lengths < 0).any() or (int(ends[-1]) if len(ends) else 0) != len(text):
        raise ValueError("the lengths of its names are not those of their text")
    return tuple(text[start:end].decode() for start, end in zip(ends - lengths, ends, strict=True))


def check_version(path: Path, version: int) -> None:
    if version > FORMAT_VERSION:
        raise InputError(
            f"{path} was written by a newer nodepiece (format version {version}, this one reads up "
            f"to {FORMAT_VERSION}); install a newer nodepiece"
        )
