"""Loaders of named benchmarks, one for each kind of task."""

from dataclasses import replace
from pathlib import Path

from nodepiece.data.benchmarks import (
    BENCHMARKS,
    CLASSES,
    INDUCTIVE,
    LINKS,
    OGB,
    OUT_OF_SAMPLE,
    Location,
    benchmark_named,
    locate_benchmark,
)
from nodepiece.data.dataset import SPLITS, Dataset
from nodepiece.data.inductive import InductiveDataset, join_graphs
from nodepiece.data.labelled_graph import LabelledGraph, read_labelled_graph
from nodepiece.data.ogb import read_ogb_dataset, read_ogb_training_graph
from nodepiece.data.out_of_sample import EVALUATION_SPLITS, OutOfSampleDataset, read_parts
from nodepiece.data.read import ReadOptions, read_dataset, read_graph_with_report
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph

# No release has a header or quoted cells, even where the lines look like it.
NO_HEADER = ReadOptions(header=False, format="tsv")


def load_benchmark(name: str, data: Path | None) -> Dataset:
    """A transductive benchmark; `data` is searched before the usual places."""
    if benchmark_named(name).task == OGB:
        return read_ogb_dataset(name, locate_benchmark(name, data=data).files)
    location = _locate(name, data, task=LINKS)
    return replace(read_dataset(location.folder, options=NO_HEADER), name=name, layout="")


def load_inductive(
    name: str, data: Path | None, *, keep_unseen_relations: bool = False
) -> InductiveDataset:
    files = _locate(name, data, task=INDUCTIVE).files
    training = read_dataset(files["training/train"].parent, options=NO_HEADER)
    training = replace(training, layout="")
    inference = {part: files[f"inference/{part}"] for part in SPLITS}
    return join_graphs(
        name, training, inference, NO_HEADER, keep_unseen_relations=keep_unseen_relations
    )


def load_labelled_graph(name: str, data: Path | None) -> LabelledGraph:
    files = _locate(name, data, task=CLASSES).files
    labels = {part: files[f"{part}_labels"] for part in SPLITS}
    return replace(read_labelled_graph(name, files["edges"], labels, NO_HEADER), layout="")


def load_out_of_sample(name: str, data: Path | None) -> OutOfSampleDataset:
    files = _locate(name, data, task=OUT_OF_SAMPLE).files
    unseen = {part: files[part] for part in EVALUATION_SPLITS}
    return replace(read_parts(name, files["train"], unseen, NO_HEADER), layout="")


def load_training_graph(name: str, data: Path | None) -> tuple[KnowledgeGraph, list[str]]:
    """The training graph of a benchmark of any kind, and sentences on how it was read.

    OGB's graph keeps the ids of its release.
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
            f"choose one of {', '.join(fitting)}"
        )
    return locate_benchmark(name, data=data)
