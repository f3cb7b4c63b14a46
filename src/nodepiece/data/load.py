"""From a benchmark's name to its content, one loader for each kind of task."""

import gzip
import json
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from nodepiece.data.benchmarks import (
    BENCHMARKS,
    CLASSES,
    INDUCTIVE,
    LINKS,
    OGB,
    OUT_OF_SAMPLE,
    SPLITS,
    Location,
    benchmark_named,
    locate_benchmark,
)
from nodepiece.data.dataset import Dataset
from nodepiece.data.inductive import InductiveDataset, join_graphs
from nodepiece.data.ogb import read_ogb_dataset, read_ogb_training_graph
from nodepiece.data.read import ReadOptions, read_dataset, read_graph, read_graph_with_report
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray, read_only
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names

NO_HEADER = ReadOptions(header=False)  # no release has one, whatever its first line looks like

NamedTriple = tuple[str, str, str]  # head, relation, tail


@dataclass(frozen=True, eq=False)
class NodeLabels:
    """Which classes the nodes of one split belong to; a node may have several."""

    nodes: IntArray  # (num_labelled,) node ids
    classes: IntArray  # (num_labels, 2): position in `nodes`, class id
    num_unseen: int  # labelled nodes left out: the graph does not have them

    def __post_init__(self) -> None:
        for part in ("nodes", "classes"):
            object.__setattr__(self, part, read_only(getattr(self, part)))


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """A graph some of whose nodes have classes."""

    name: str
    graph: KnowledgeGraph
    classes: tuple[str, ...]  # (num_classes,) in alphabetical order; the position is the class id
    labels: dict[str, NodeLabels]  # "train", "valid", "test"


@dataclass(frozen=True, eq=False)
class OutOfSampleDataset:
    """A training graph, and nodes that it does not have with the facts that name them."""

    name: str
    train: KnowledgeGraph
    unseen: dict[str, dict[str, tuple[NamedTriple, ...]]]
    """"valid" and "test" -> unseen node -> its facts by name, in the order of the file."""


def load_benchmark(name: str, data: Path | None) -> Dataset:
    """A transductive benchmark; `data` is searched before the usual places."""
    if benchmark_named(name).task == OGB:
        return read_ogb_dataset(name, locate_benchmark(name, data=data).files)
    location = _locate(name, data, task=LINKS)
    return replace(read_dataset(location.folder, options=NO_HEADER), name=name)


def load_inductive(
    name: str, data: Path | None, *, keep_unseen_relations: bool = False
) -> InductiveDataset:
    files = _locate(name, data, task=INDUCTIVE).files
    training = read_dataset(files["training/train"].parent, options=NO_HEADER)
    inference = {part: files[f"inference/{part}"] for part in SPLITS}
    return join_graphs(
        name, training, inference, NO_HEADER, keep_unseen_relations=keep_unseen_relations
    )


def load_labelled_graph(name: str, data: Path | None) -> LabelledGraph:
    files = _locate(name, data, task=CLASSES).files
    graph = read_graph(files["edges"], options=NO_HEADER)
    content = {part: _read_labels(files[f"{part}_labels"]) for part in SPLITS}
    classes = sorted({name for part in content.values() for row in part.values() for name in row})
    class_ids = {name: position for position, name in enumerate(classes)}
    labels = {part: _encode_labels(rows, graph, class_ids) for part, rows in content.items()}
    return LabelledGraph(name, graph, tuple(classes), labels)


def load_out_of_sample(name: str, data: Path | None) -> OutOfSampleDataset:
    files = _locate(name, data, task=OUT_OF_SAMPLE).files
    train = read_graph(files["train"], options=NO_HEADER)
    unseen = {part: _read_unseen(files[part]) for part in SPLITS[1:]}
    return OutOfSampleDataset(name, train, unseen)


def load_training_graph(name: str, data: Path | None) -> tuple[KnowledgeGraph, list[str]]:
    """What there is to learn from in a benchmark of any kind, without its held-out facts.

    Also returns what there is to say of its reading. OGB's graph keeps the ids of its release.
    """
    location = locate_benchmark(name, data=data)
    task = location.benchmark.task
    if task == OGB:
        graph = read_ogb_training_graph(location.files)
        return graph, [f"{location.folder}: {graph.num_triples:,} facts"]
    part = {INDUCTIVE: "training/train", CLASSES: "edges"}.get(task, "train")
    graph, report = read_graph_with_report(location.files[part], options=NO_HEADER)
    return graph, report.sentences()


def _locate(name: str, data: Path | None, *, task: str) -> Location:
    benchmark = benchmark_named(name)
    if benchmark.task != task:
        fitting = [known.name for known in BENCHMARKS.values() if known.task == task]
        raise InputError(
            f"benchmark {name} is for {benchmark.task}, not for {task}; "
            f"take one of {', '.join(fitting)}"
        )
    return locate_benchmark(name, data=data)


def _names(graph: KnowledgeGraph) -> Names:
    if graph.names is None:
        raise ValueError("a graph read from a file has names")
    return graph.names


def open_content(path: Path) -> IO[bytes]:
    """The bytes of a file of a benchmark, decompressed."""
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def read_json(path: Path) -> dict[str, Any]:
    """An object, gzipped or not."""
    try:
        with open_content(path) as file:
            content = json.load(file)
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise InputError(f"{path} cannot be read as JSON ({error}); fetch it again") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} must hold an object with a key for each node")
    return content


def _read_labels(path: Path) -> dict[str, list[str]]:
    content = read_json(path)
    for node, classes in content.items():
        if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
            raise InputError(f"{path}: the classes of {node!r} must be a list of names")
    return content


def _encode_labels(
    rows: dict[str, list[str]], graph: KnowledgeGraph, class_ids: dict[str, int]
) -> NodeLabels:
    known = _names(graph).nodes
    node_ids = {name: node_id for node_id, name in enumerate(known.to_pylist())}
    seen = {node: classes for node, classes in rows.items() if node in node_ids}
    nodes = np.array([node_ids[node] for node in seen], dtype=np.int32)
    pairs = [
        (position, class_ids[name])
        for position, classes in enumerate(seen.values())
        for name in classes
    ]
    classes = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    return NodeLabels(nodes, classes, num_unseen=len(rows) - len(seen))


def _read_unseen(path: Path) -> dict[str, tuple[NamedTriple, ...]]:
    return {
        node: tuple(_named_triple(path, node, fact) for fact in _listed(path, node, facts))
        for node, facts in read_json(path).items()
    }


def _listed(path: Path, node: str, facts: object) -> list[object]:
    if not isinstance(facts, list):
        raise InputError(f"{path}: the facts of {node!r} must be a list")
    return facts


def _named_triple(path: Path, node: str, fact: object) -> NamedTriple:
    match fact:
        case [str(head), str(relation), str(tail)] if node in (head, tail):
            return head, relation, tail
    raise InputError(
        f"{path}: {fact!r} is listed for {node!r}; expected [head, relation, tail] with that node "
        "at one end"
    )
