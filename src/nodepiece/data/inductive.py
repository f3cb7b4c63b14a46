"""Datasets of two graphs with the same relations: one to train on, another to evaluate on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from nodepiece.data.blocks import DETECT_EVERYTHING, ReadOptions
from nodepiece.data.dataset import Dataset
from nodepiece.data.encode import encode_like, ids_in
from nodepiece.data.read import read_dataset, read_graph, split_files
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names

PARTS = ("training", "inference")  # the two folders of an inductive dataset


@dataclass(frozen=True, eq=False)
class InductiveDataset:
    """A training graph, and an inference graph with the same relations, used for evaluation.

    The inference graph has other nodes, with separate ids, and the relation ids of the training
    graph, followed by relations that training lacks, if they are kept. Its `train` are the known
    facts; `valid` and `test` are the queries.
    """

    name: str
    training: Dataset
    inference: Dataset
    num_unknown_relations: int  # relations of the inference files that training lacks
    num_dropped: int  # known facts left out for such a relation; queries: `Dataset.num_unseen`

    def __post_init__(self) -> None:
        known, given = self.training.names.relations, self.inference.names.relations
        if not given.slice(0, len(known)).equals(known):
            raise InputError(f"{self.name}: the two graphs must have the same relation ids")


def read_inductive(
    folder: Path,
    *,
    keep_unseen_relations: bool = False,
    options: ReadOptions = DETECT_EVERYTHING,
) -> InductiveDataset:
    """The dataset of a folder with `training/` and `inference/`, each with train, valid and test.

    A source with neither is one graph, used for training and evaluation.
    """
    if not any((folder / part).is_dir() for part in PARTS):
        return of_one_graph(read_dataset(folder, options=options))
    for part in PARTS:
        if not (folder / part).is_dir():
            raise InputError(
                f"{folder} has no folder {part}/; an inductive dataset has training/ (a train file "
                "at least) and inference/ (train, valid and test: what is known, and the queries)"
            )
    training = read_dataset(folder / "training", options=options)
    files = split_files(folder / "inference")
    return join_graphs(
        folder.name, training, files, options, keep_unseen_relations=keep_unseen_relations
    )


def of_one_graph(dataset: Dataset) -> InductiveDataset:
    """A dataset whose inference graph is the training graph, with its valid and test facts."""
    return InductiveDataset(dataset.name, dataset, dataset, num_unknown_relations=0, num_dropped=0)


def join_graphs(
    name: str,
    training: Dataset,
    inference_files: Mapping[str, Path],  # "train", and "valid" and "test" if there are any
    options: ReadOptions,
    *,
    keep_unseen_relations: bool,
) -> InductiveDataset:
    """Read the inference graph by the relation ids of the training graph."""
    graphs = {part: read_graph(path, options=options) for part, path in inference_files.items()}
    known = training.names.relations
    unseen = unseen_relations(known, *graphs.values())
    relations = appended(known, unseen) if keep_unseen_relations else known
    names = Names(named(graphs["train"]).nodes, relations)
    nothing = (np.empty((0, 3), np.int32), 0)
    encoded = {part: encode_like(graph, names) for part, graph in graphs.items()}
    train, num_dropped = encoded["train"]
    valid, test = encoded.get("valid", nothing), encoded.get("test", nothing)
    return InductiveDataset(
        name,
        replace(training, name=f"{name}/training"),
        Dataset(
            f"{name}/inference",
            KnowledgeGraph(train, len(names.nodes), len(names.relations), names),
            valid[0],
            test[0],
            {"valid": valid[1], "test": test[1]},
        ),
        num_unknown_relations=len(unseen),
        num_dropped=num_dropped,
    )


def with_relation_ids_of(
    graph: KnowledgeGraph, known: pa.LargeStringArray, *, keep_unseen_relations: bool
) -> KnowledgeGraph:
    """A graph with the relation ids of another one; relations that the other lacks follow.

    Unless they are kept, such relations are refused.
    """
    unseen = unseen_relations(known, graph)
    if unseen and not keep_unseen_relations:
        raise InputError(
            f"{len(unseen)} of the graph's relations, such as {unseen[0]!r}, were not in training; "
            "leave their facts out, or use the mean vector of all relations for them "
            "(--unseen-relations mean)"
        )
    names = Names(named(graph).nodes, appended(known, unseen))
    triples, _ = encode_like(graph, names)
    return KnowledgeGraph(triples, len(names.nodes), len(names.relations), names)


def unseen_relations(known: pa.LargeStringArray, *graphs: KnowledgeGraph) -> list[str]:
    """The relations of some graphs that are not among the known ones, each once."""
    found: dict[str, None] = {}
    for graph in graphs:
        relations = named(graph).relations
        for position in np.flatnonzero(ids_in(relations, known) < 0):
            found[relations[int(position)].as_py()] = None
    return list(found)


def appended(known: pa.LargeStringArray, more: list[str]) -> pa.LargeStringArray:
    return pa.concat_arrays([known, pa.array(more, pa.large_string())]) if more else known


def named(graph: KnowledgeGraph) -> Names:
    if graph.names is None:
        raise ValueError("a graph read from a file has names")
    return graph.names
