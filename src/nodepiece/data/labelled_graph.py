"""Graphs with classes of some of their nodes, and their folders.

FOLDER/edges.tsv (or another format, or gzipped)    the facts
FOLDER/{train,valid,test}_labels.json (or .json.gz) {node: [class, ...]} for the nodes of a split
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nodepiece.data.blocks import DETECT_EVERYTHING, ReadOptions
from nodepiece.data.dataset import SPLITS
from nodepiece.data.encode import ids_in
from nodepiece.data.formats import known_endings
from nodepiece.data.input_file import without_gz
from nodepiece.data.json_file import read_json
from nodepiece.data.read import read_graph_with_report
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray, read_only
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.graph.short_text import plural

EDGES = "edges.parquet"  # written as Parquet, as names may contain tabs and line ends
Labels = dict[str, list[str]]  # node -> its classes, each once


@dataclass(frozen=True, eq=False)
class NodeLabels:
    """The classes of the nodes of one split; a node may have several."""

    nodes: IntArray  # (num_labelled,) node ids
    classes: IntArray  # (num_labels, 2): position in `nodes`, class id; ascending positions
    num_unseen: int = 0  # labelled nodes left out: the graph does not have them

    def __post_init__(self) -> None:
        for part in ("nodes", "classes"):
            object.__setattr__(self, part, read_only(getattr(self, part)))

    def only(self, chosen: IntArray) -> "NodeLabels":
        """The labels of the nodes at the given positions, in this order."""
        place = np.full(len(self.nodes), -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen), dtype=np.int32)
        position, label = place[self.classes[:, 0]], self.classes[:, 1]
        pairs = np.stack([position, label], axis=1)[position >= 0]
        order = np.argsort(pairs[:, 0], kind="stable")
        return NodeLabels(self.nodes[chosen], pairs[order], self.num_unseen)


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """A graph with classes of some of its nodes."""

    name: str
    graph: KnowledgeGraph
    classes: tuple[str, ...]  # (num_classes,) in alphabetical order; the position is the class id
    labels: dict[str, NodeLabels]  # "train", "valid", "test"
    layout: str = ""  # how the file of facts was read, in words

    def __repr__(self) -> str:
        labelled = ", ".join(
            f"{len(part.nodes):,} for {split}" for split, part in self.labels.items()
        )
        return (
            f"LabelledGraph({self.name!r}: {plural(self.graph.num_nodes, 'node')}, "
            f"{plural(self.graph.num_triples, 'fact')}, {len(self.classes):,} classes; "
            f"labelled: {labelled})"
        )

    @property
    def names(self) -> Names:
        if self.graph.names is None:
            raise ValueError("a labelled graph has names")
        return self.graph.names


def read_labelled_folder(
    folder: Path, *, options: ReadOptions = DETECT_EVERYTHING
) -> LabelledGraph:
    """The labelled graph of a folder in the layout above."""
    edges = [
        path
        for path in sorted(folder.iterdir())
        if Path(without_gz(path.name.lower())).stem == "edges"
        and Path(without_gz(path.name.lower())).suffix in known_endings()
    ]
    labels = {
        part: path
        for part in SPLITS
        for path in (folder / f"{part}_labels.json", folder / f"{part}_labels.json.gz")
        if path.is_file()
    }
    if len(edges) != 1 or "train" not in labels:
        raise InputError(
            f"{folder} is not a labelled graph: it needs one file of facts called edges.tsv (or "
            f"another of {', '.join(known_endings())}) and train_labels.json, maybe "
            "valid_labels.json and test_labels.json; make such a folder with: nodepiece label "
            "GRAPH LABELS -o FOLDER"
        )
    return read_labelled_graph(folder.resolve().name, edges[0], labels, options)


def read_labelled_graph(
    name: str, edges: Path, labels: Mapping[str, Path], options: ReadOptions
) -> LabelledGraph:
    """The labelled graph of some files. labels: the JSON file of each split that has one."""
    content = {part: read_labels(labels[part]) if part in labels else {} for part in SPLITS}
    graph, report = read_graph_with_report(edges, options=options)
    return replace(label_graph(name, graph, content), layout=report.layout)


def label_graph(name: str, graph: KnowledgeGraph, content: Mapping[str, Labels]) -> LabelledGraph:
    """A labelled graph from labels by name; labelled nodes that the graph lacks are counted."""
    classes = sorted({name for part in content.values() for row in part.values() for name in row})
    class_ids = {name: position for position, name in enumerate(classes)}
    labels = {part: _encode_labels(rows, graph, class_ids) for part, rows in content.items()}
    return LabelledGraph(name, graph, tuple(classes), labels)


def read_labels(path: Path) -> Labels:
    """The classes of every node in a JSON file, each once."""
    content = read_json(path)
    for node, classes in content.items():
        names = [node, *classes] if isinstance(classes, list) else []
        if not names or not all(isinstance(name, str) and name for name in names):
            raise InputError(f"{path}: the classes of {node!r} must be a list of names")
    return {node: list(dict.fromkeys(classes)) for node, classes in content.items()}


def write_labelled_folder(labelled: LabelledGraph, folder: Path) -> None:
    """Write a labelled graph to an existing folder."""
    names, triples = labelled.names, labelled.graph.triples
    columns = (names.nodes, names.relations, names.nodes)
    table = pa.table(
        {
            role: column.take(pa.array(ids))
            for role, column, ids in zip(
                ("head", "relation", "tail"), columns, triples.T, strict=True
            )
        }
    )
    pq.write_table(table, folder / EDGES)
    for part, labels in labelled.labels.items():
        rows: Labels = {names.node(node): [] for node in labels.nodes.tolist()}
        listed = list(rows.values())
        for position, label in labels.classes.tolist():
            listed[position].append(labelled.classes[label])
        text = json.dumps(rows, ensure_ascii=False, indent=0)
        (folder / f"{part}_labels.json").write_text(text + "\n", encoding="utf-8")


def _encode_labels(rows: Labels, graph: KnowledgeGraph, class_ids: dict[str, int]) -> NodeLabels:
    if graph.names is None:
        raise ValueError("labels are given by name, and the graph has no names")
    ids = ids_in(pa.array(list(rows), pa.large_string()), graph.names.nodes)
    seen = [classes for classes, node in zip(rows.values(), ids, strict=True) if node >= 0]
    pairs = [
        (position, class_ids[name]) for position, classes in enumerate(seen) for name in classes
    ]
    classes = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    nodes = ids[ids >= 0].astype(np.int32)
    return NodeLabels(nodes, classes, num_unseen=len(rows) - len(nodes))
