"""A graph from a path, from facts in memory, or from an object of another library."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nodepiece.data.blocks import Column, ReadOptions
from nodepiece.data.dataset import Dataset
from nodepiece.data.encode import encode_like
from nodepiece.data.from_libraries import from_networkx, from_pyg, from_pykeen, from_rdflib
from nodepiece.data.from_tables import from_array, from_arrow, from_data_frame, from_facts
from nodepiece.data.open import open_graph
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names

READABLE = ", ".join(
    (
        "a path, triples, an array",
        "a DataFrame of pandas or polars",
        "an Arrow table",
        "a networkx graph",
        "Data or HeteroData of PyTorch Geometric",
        "PyKEEN's TriplesFactory",
        "or an RDFLib graph",
    )
)

LIBRARIES: dict[str, Callable[[Any], KnowledgeGraph]] = {  # by the package that defines the class
    "torch_geometric": from_pyg,
    "pykeen": from_pykeen,
    "rdflib": from_rdflib,
}


def graph(
    source: Any,
    *,
    columns: Sequence[Column] | str | None = None,
    relation: str | None = None,
) -> KnowledgeGraph:
    """The graph in a path, in facts in memory, or in an object of another library.

    `source` is a path or the name of a benchmark; an iterable of triples (head, relation, tail) of
    text or whole numbers; an array of shape (num_facts, 3); a DataFrame of pandas or polars, or an
    Arrow table; a networkx graph; `Data` or `HeteroData` of PyTorch Geometric; PyKEEN's
    `TriplesFactory`; or an RDFLib graph. A fact stated twice is kept once.

    `columns` are those of head, relation and tail in a table, by name or position, such as
    ("src", "type", "dst"); without it the usual names are known. `relation` names the edge
    attribute of a networkx graph that holds the relation.
    """
    package = library_of(source)
    if relation is not None and package != "networkx":
        raise InputError("relation names an edge attribute of a networkx graph; leave it out")
    if columns is not None and (package in LIBRARIES or package == "networkx"):
        raise InputError(f"columns are those of a table; leave them out for {package}")
    if isinstance(source, KnowledgeGraph):
        return source
    if isinstance(source, Dataset):
        return source.train
    if isinstance(source, str | Path):
        return open_graph(str(source), options=ReadOptions(columns=columns), data=None)[0]
    if package == "networkx":
        return from_networkx(source, relation)
    if package in LIBRARIES:
        return LIBRARIES[package](source)
    return from_memory(source, columns)


def library_of(source: Any) -> str:
    """The package of the first known class among the class of an object and its base classes."""
    packages = [base.__module__.partition(".")[0] for base in type(source).__mro__]
    known = ("networkx", *LIBRARIES)
    return next((package for package in packages if package in known), packages[0])


def from_memory(source: Any, columns: Sequence[Column] | str | None) -> KnowledgeGraph:
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return from_arrow(source, columns, "the Arrow table")
    if hasattr(source, "__arrow_c_stream__") or library_of(source) in ("pandas", "polars"):
        return from_data_frame(source, columns)
    if hasattr(source, "__array__"):
        return from_array(source, columns)
    if isinstance(source, Iterable) and not isinstance(source, bytes | dict):
        return from_facts(source, columns)
    kind = f"{type(source).__module__}.{type(source).__qualname__}"
    raise InputError(f"cannot make a graph of a {kind}; give {READABLE}")


def make_dataset(
    train: Any,
    *,
    valid: Any = None,
    test: Any = None,
    columns: Sequence[Column] | str | None = None,
    relation: str | None = None,
    name: str | None = None,
) -> Dataset:
    """A dataset of graphs in memory; each part is anything that `graph` reads.

    Facts of valid and test with nodes or relations that train lacks are dropped and counted.
    """
    if isinstance(train, Dataset) and valid is None and test is None:
        return train
    given = name or (train.name if isinstance(train, Dataset) else type(train).__name__)
    learned = with_names(graph(train, columns=columns, relation=relation))
    if learned.names is None:
        raise ValueError("a graph with names has names")
    parts: dict[str, IntArray] = {}
    num_unseen: dict[str, int] = {}
    for split, source in (("valid", valid), ("test", test)):
        parts[split], num_unseen[split] = np.empty((0, 3), np.int32), 0
        if source is not None and not is_empty(source):
            held_out = with_names(graph(source, columns=columns, relation=relation))
            parts[split], num_unseen[split] = encode_like(held_out, learned.names)
    return Dataset(given, learned, parts["valid"], parts["test"], num_unseen)


def is_empty(source: Any) -> bool:
    return hasattr(source, "__len__") and len(source) == 0


def with_names(graph: KnowledgeGraph) -> KnowledgeGraph:
    """The graph, with ids for names if it has none."""
    if graph.names is not None:
        return graph
    nodes, relations = map(str, range(graph.num_nodes)), map(str, range(graph.num_relations))
    names = Names.of(list(nodes), list(relations))
    return KnowledgeGraph(graph.triples, graph.num_nodes, graph.num_relations, names)
