"""The layout of the Open Graph Benchmark: pickled arrays, read without running a pickle."""

import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from nodepiece.data.columns import ROLES
from nodepiece.errors import InputError
from nodepiece.graph.arrays import LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names

# All that a pickled array of integers calls for. Older files know the first one by its old name.
_RECONSTRUCT: Any = np.empty(0).__reduce__()[0]
ARRAY_GLOBALS: list[Any] = [
    (_RECONSTRUCT, "numpy.core.multiarray._reconstruct"),
    (_RECONSTRUCT, "numpy._core.multiarray._reconstruct"),
    np.ndarray,
    np.dtype,
    type(np.dtype(np.int64)),
    type(np.dtype(np.int32)),
]


def read_ogb_training_graph(files: Mapping[str, Path]) -> KnowledgeGraph:
    """The graph of split/time/train.pt with the Wikidata ids of mapping/ as names.

    `files`: parts "train", "nodes" and "relations". Facts keep the order and ids of OGB.
    """
    names = Names(read_mapping(files["nodes"]), read_mapping(files["relations"]))
    content = load_arrays(files["train"])
    columns = [integers(content, role, files["train"]) for role in ROLES]
    if len({len(column) for column in columns}) > 1:
        sizes = ", ".join(str(len(column)) for column in columns)
        raise InputError(f"{files['train']}: head, relation and tail differ in length ({sizes})")
    triples = np.stack(columns, axis=1)
    return KnowledgeGraph(triples, len(names.nodes), len(names.relations), names)  # type: ignore[arg-type]  # checked, then int32


def load_arrays(path: Path) -> dict[str, Any]:
    """A torch file of arrays; anything else in it is refused before it can do something."""
    import torch  # takes a second, and no other file of this folder needs it

    try:
        with torch.serialization.safe_globals(ARRAY_GLOBALS), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of what it then refuses
            content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path} cannot be read as plain arrays ({reason}); fetch ogbl-wikikg2 again"
        ) from error
    if not isinstance(content, dict):
        raise InputError(f"{path} holds a {type(content).__name__}, not a dict of arrays")
    return content


def integers(content: Mapping[str, Any], role: str, path: Path) -> LongArray:
    """One column: (num_facts,)."""
    if role not in content:
        raise InputError(f"{path} has no {role!r}; it has {', '.join(map(str, content))}")
    column = np.asarray(content[role])
    if column.ndim != 1 or column.dtype.kind != "i":
        raise InputError(
            f"{path}: {role!r} is no column of integers, but {column.dtype} in shape {column.shape}"
        )
    return column.astype(np.int64, copy=False)


def read_mapping(path: Path) -> pa.LargeStringArray:
    """Names by id from a table of two columns with a header: index, name."""
    try:
        table = pa_csv.read_csv(
            path,
            read_options=pa_csv.ReadOptions(skip_rows=1, column_names=["index", "name"]),
            convert_options=pa_csv.ConvertOptions(
                column_types={"index": pa.int64(), "name": pa.large_string()}
            ),
        ).combine_chunks()
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            f"{path} cannot be read as a table of index and name ({error}); fetch it again"
        ) from error
    index = table["index"].to_numpy()
    order = np.argsort(index, kind="stable")
    if not np.array_equal(index[order], np.arange(len(index))):
        raise InputError(
            f"{path}: the indexes must be 0 to {len(index) - 1}, each once; fetch it again"
        )
    names = table["name"].take(pa.array(order)).combine_chunks()
    return names.chunk(0) if isinstance(names, pa.ChunkedArray) else names
