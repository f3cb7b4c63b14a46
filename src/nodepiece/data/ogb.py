"""The layout of the Open Graph Benchmark, as ogbl-wikikg2 has it; the ogb package is not needed.

FOLDER/split/time/train.pt          head, relation, tail: (num_facts,) each
FOLDER/split/time/{valid,test}.pt   the same, and head_neg, tail_neg: (num_facts, num_negatives)
FOLDER/mapping/                     the Wikidata ids of nodes and of relations
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from nodepiece.data.benchmarks import OGB_FILES
from nodepiece.data.column_names import ROLES
from nodepiece.data.dataset import Dataset, GivenNegatives
from nodepiece.data.torch_arrays import load_arrays
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names


def is_ogb_folder(folder: Path) -> bool:
    return (folder / OGB_FILES["train"][0]).is_file()


def ogb_files(folder: Path) -> dict[str, Path]:
    """The file of every part; a folder with a missing part is refused."""
    found = {}
    for part, names in OGB_FILES.items():
        paths = [folder / name for name in names if (folder / name).is_file()]
        if not paths:
            raise InputError(f"{folder} has the layout of OGB, but no {names[0]}; add it")
        found[part] = paths[0]
    return found


def read_ogb_training_graph(files: Mapping[str, Path]) -> KnowledgeGraph:
    """The graph of split/time/train.pt with the Wikidata ids of mapping/ as names.

    `files`: parts "train", "nodes" and "relations". Facts keep the order and ids of OGB.
    """
    names = Names(read_mapping(files["nodes"]), read_mapping(files["relations"]))
    triples = read_triples(files["train"], len(names.nodes))
    return KnowledgeGraph(triples, len(names.nodes), len(names.relations), names)


def read_ogb_dataset(name: str, files: Mapping[str, Path]) -> Dataset:
    """All three splits, with the ids of OGB; negatives are read on demand."""
    train = read_ogb_training_graph(files)
    parts = {}
    for part in ("valid", "test"):
        triples = read_triples(files[part], train.num_nodes)
        parts[part] = KnowledgeGraph(triples, train.num_nodes, train.num_relations).triples
    negatives = partial(read_negatives, files, num_nodes=train.num_nodes)
    return Dataset(
        name, train, parts["valid"], parts["test"], {"valid": 0, "test": 0}, negatives=negatives
    )


def read_triples(path: Path, num_nodes: int) -> IntArray:
    """The facts of a file, (num_facts, 3). The graph checks their ids."""
    content = load_arrays(path)
    columns = [integers(content, role, path, ndim=1, num_nodes=num_nodes) for role in ROLES]
    if len({len(column) for column in columns}) > 1:
        sizes = ", ".join(str(len(column)) for column in columns)
        raise InputError(f"{path}: head, relation and tail differ in length ({sizes})")
    return np.stack(columns, axis=1)


def read_negatives(files: Mapping[str, Path], part: str, *, num_nodes: int) -> GivenNegatives:
    """The given negatives of "valid" or "test"."""
    if part not in ("valid", "test"):
        raise InputError(f"the {part} facts have no negatives; rank valid or test")
    content = load_arrays(files[part])
    sides = []
    for key in ("head_neg", "tail_neg"):
        sides.append(integers(content, key, files[part], ndim=2, num_nodes=num_nodes))
        del content[key]  # 2.4 GB each, where it has 500 for 600,000 facts
    return GivenNegatives(*sides)


def integers(
    content: Mapping[str, NDArray[Any]], key: str, path: Path, *, ndim: int, num_nodes: int
) -> IntArray:
    """An array of ids in [0, num_nodes)."""
    if key not in content:
        raise InputError(f"{path} has no {key!r}; it has {', '.join(map(str, content))}")
    array = content[key]
    if array.ndim != ndim or array.dtype.kind != "i":
        expected = "column" if ndim == 1 else "table"
        raise InputError(
            f"{path}: {key!r} is not a {expected} of integers, but {array.dtype} in shape "
            f"{array.shape}"
        )
    if array.size and (array.min() < 0 or array.max() >= num_nodes):
        raise InputError(
            f"{path}: {key!r} names ids from {array.min()} to {array.max()}, outside the graph of "
            f"{num_nodes} nodes; fetch or write it again"
        )
    return array.astype(np.int32)


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
