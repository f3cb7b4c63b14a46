"""Datasets of a training graph, and out-of-sample nodes with a few facts about seen nodes.

FOLDER/train.tsv                    the facts of the training graph
FOLDER/valid.json, test.json        {unseen node: [[head, relation, tail], ...]}
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nodepiece.data.blocks import DETECT_EVERYTHING, ReadOptions
from nodepiece.data.json_file import read_json
from nodepiece.data.read import read_graph_with_report, split_files
from nodepiece.errors import InputError
from nodepiece.files import atomic_folder
from nodepiece.graph.arrays import IntArray, LongArray, read_only
from nodepiece.graph.knowledge_graph import KnowledgeGraph

EVALUATION_SPLITS = ("valid", "test")
MARKER = "out_of_sample.json"  # in a folder of `write_out_of_sample`: how it was made

AS_WRITTEN = ReadOptions(delimiter="tab", header=False, format="tsv")  # of such a folder
NamedTriple = tuple[str, str, str]  # head, relation, tail


@dataclass(frozen=True, eq=False)
class OutOfSampleDataset:
    """A training graph, and unseen nodes with their facts."""

    name: str
    train: KnowledgeGraph
    unseen: dict[str, dict[str, tuple[NamedTriple, ...]]]
    """"valid" and "test" -> unseen node -> its facts by name, in the order of the file."""
    layout: str = ""  # how the training file was read, in words


@dataclass(frozen=True, eq=False)
class UnseenEdges:
    """The facts of unseen nodes as edges to seen nodes, in the order of the unseen nodes."""

    offsets: LongArray  # (num_unseen + 1,)
    relations: IntArray  # (num_edges,) direct or inverse, so that every edge starts unseen
    neighbours: IntArray  # (num_edges,) ids of the training graph
    num_dropped: int = field(default=0)  # facts without a seen node, or with an unseen relation

    def __post_init__(self) -> None:
        for name in ("offsets", "relations", "neighbours"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def num_unseen(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_edges(self) -> int:
        return len(self.relations)

    @property
    def owners(self) -> IntArray:
        """(num_edges,) the unseen node that each edge starts from."""
        return np.repeat(np.arange(self.num_unseen, dtype=np.int32), np.diff(self.offsets))


def edges_of_unseen(dataset: OutOfSampleDataset, split: str) -> UnseenEdges:
    """The edges of a split by ids. Facts that do not lead to a seen node are left out."""
    names = dataset.train.names
    if names is None:
        raise InputError(f"dataset {dataset.name} has no names; read it from files")
    nodes = {name: node for node, name in enumerate(names.nodes.to_pylist())}
    relations = {name: relation for relation, name in enumerate(names.relations.to_pylist())}
    rows: list[tuple[int, int]] = []
    counts = []
    num_dropped = 0
    for node, facts in dataset.unseen[split].items():
        before = len(rows)
        for head, relation, tail in facts:
            other, shift = (tail, 0) if head == node else (head, len(relations))
            if other in nodes and relation in relations:
                rows.append((relations[relation] + shift, nodes[other]))
            else:
                num_dropped += 1
        counts.append(len(rows) - before)
    columns = np.array(rows, np.int32).reshape(-1, 2)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return UnseenEdges(offsets, columns[:, 0].copy(), columns[:, 1].copy(), num_dropped)


def read_out_of_sample(
    folder: Path, *, options: ReadOptions = DETECT_EVERYTHING
) -> OutOfSampleDataset:
    """The dataset of a folder in the layout above."""
    if (folder / MARKER).is_file():
        options = AS_WRITTEN
    files = {split: folder / f"{split}.json" for split in EVALUATION_SPLITS}
    if missing := [path.name for path in files.values() if not path.is_file()]:
        raise InputError(
            f"{folder} has no {' and no '.join(missing)}; make an out-of-sample split with "
            "nodepiece split"
        )
    return read_parts(folder.name, split_files(folder)["train"], files, options)


def read_parts(
    name: str, train: Path, unseen: dict[str, Path], options: ReadOptions
) -> OutOfSampleDataset:
    graph, report = read_graph_with_report(train, options=options)
    return OutOfSampleDataset(
        name, graph, {part: read_unseen(path) for part, path in unseen.items()}, report.layout
    )


def write_out_of_sample(
    dataset: OutOfSampleDataset, folder: Path, remarks: dict[str, object]
) -> None:
    """Write a dataset to a folder; an earlier one is replaced."""
    graph = dataset.train
    with atomic_folder(folder, marker=MARKER) as partial:
        with (partial / "train.tsv").open("w", encoding="utf-8") as file:
            for head, relation, tail in graph.triples.tolist():
                names = graph.node_name(head), graph.relation_name(relation), graph.node_name(tail)
                file.write("\t".join(names) + "\n")
        for split in EVALUATION_SPLITS:
            text = json.dumps(dataset.unseen[split], ensure_ascii=False)
            (partial / f"{split}.json").write_text(text + "\n", encoding="utf-8")
        text = json.dumps(remarks, indent=1)
        (partial / MARKER).write_text(text + "\n", encoding="utf-8")


def read_unseen(path: Path) -> dict[str, tuple[NamedTriple, ...]]:
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
        "as head or tail"
    )
