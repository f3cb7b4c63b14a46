"""Opening a graph or a dataset by a path, the name of a benchmark, or "countries"."""

from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

import numpy as np

from nodepiece.data.benchmarks import BENCHMARKS, OGB, OUT_OF_SAMPLE, locate_benchmark
from nodepiece.data.blocks import DETECT_EVERYTHING, ReadOptions
from nodepiece.data.dataset import Dataset, GivenNegatives
from nodepiece.data.embedded import load_countries
from nodepiece.data.inductive import InductiveDataset, of_one_graph, read_inductive
from nodepiece.data.input_file import STANDARD_INPUT
from nodepiece.data.labelled_graph import LabelledGraph, read_labelled_folder
from nodepiece.data.load import (
    load_benchmark,
    load_inductive,
    load_labelled_graph,
    load_out_of_sample,
    load_training_graph,
)
from nodepiece.data.npy import can_be_mapped, read_mapped_graph
from nodepiece.data.ogb import (
    is_ogb_folder,
    ogb_files,
    read_negatives,
    read_ogb_dataset,
    read_ogb_training_graph,
)
from nodepiece.data.out_of_sample import EVALUATION_SPLITS, OutOfSampleDataset, read_out_of_sample
from nodepiece.data.out_of_sample_split import split_out_of_sample
from nodepiece.data.random_split import AS_WRITTEN
from nodepiece.data.random_split import MARKER as RANDOM_SPLIT
from nodepiece.data.read import dataset_name, read_dataset, read_graph_with_report
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph

DataSource = Path | Dataset | None  # a folder to search for datasets, or the dataset itself

EMBEDDED = "countries"
SPLIT_SHARE, SPLIT_SEED = 0.05, 0  # of out-of-sample splits made by `open_out_of_sample`


def open_dataset(
    source: str, *, data: DataSource = None, options: ReadOptions = DETECT_EVERYTHING
) -> Dataset:
    """A split dataset; `data` is searched before the default folders, or is the dataset.

    `options` say how to read files, and are refused for datasets with a fixed layout.
    """
    if isinstance(data, Dataset):
        return data
    if is_path(source, data):
        if not is_ogb_folder(Path(source)):
            is_own = (Path(source) / RANDOM_SPLIT).is_file()
            return read_dataset(source, options=AS_WRITTEN if is_own else options)
        refuse_options(source, options)
        return read_ogb_dataset(dataset_name(source), ogb_files(Path(source)))
    check_known(source)
    refuse_options(source, options)
    return load_countries() if source == EMBEDDED else load_benchmark(source, data)


def open_inductive(
    source: str,
    *,
    data: DataSource = None,
    keep_unseen_relations: bool = False,
    options: ReadOptions = DETECT_EVERYTHING,
) -> InductiveDataset:
    """A training graph and an inference graph, which may be the same."""
    if isinstance(data, Dataset):
        return of_one_graph(data)
    if is_path(source, data):
        return read_inductive(
            Path(source), keep_unseen_relations=keep_unseen_relations, options=options
        )
    check_known(source)
    refuse_options(source, options)
    if source == EMBEDDED:
        return of_one_graph(load_countries())
    return load_inductive(source, data, keep_unseen_relations=keep_unseen_relations)


def open_labelled(
    source: str, *, data: DataSource = None, options: ReadOptions = DETECT_EVERYTHING
) -> LabelledGraph:
    """A graph with classes of some of its nodes."""
    if isinstance(data, Dataset):
        raise InputError(
            f"{data.name} has facts and no classes; write a labelled graph with "
            "nodepiece.write_labelled_folder and train on that folder"
        )
    if is_path(source, data) and Path(source).is_dir():
        return read_labelled_folder(Path(source), options=options)
    check_known(source)
    refuse_options(source, options)
    if source == EMBEDDED:
        raise InputError(f"{source} has no classes; make a labelled graph with nodepiece label")
    return load_labelled_graph(source, data)


def open_out_of_sample(
    source: str, *, data: DataSource = None, options: ReadOptions = DETECT_EVERYTHING
) -> OutOfSampleDataset:
    """A training graph and out-of-sample nodes.

    A dataset for transductive link prediction is split by the paper's recipe, always in the same
    way: 5 % of the nodes for valid, 5 % for test, and seed 0.
    """
    if isinstance(data, Dataset):
        return split_out_of_sample(data, SPLIT_SHARE, rng=np.random.default_rng(SPLIT_SEED))[0]
    is_split = (Path(source) / f"{EVALUATION_SPLITS[0]}.json").is_file()
    if is_path(source, data) and is_split:
        return read_out_of_sample(Path(source), options=options)
    if source in BENCHMARKS and BENCHMARKS[source].task == OUT_OF_SAMPLE:
        refuse_options(source, options)
        return load_out_of_sample(source, data)
    dataset = open_dataset(source, data=data, options=options)
    return split_out_of_sample(dataset, SPLIT_SHARE, rng=np.random.default_rng(SPLIT_SEED))[0]


def open_negatives(
    source: str, split: str, *, num_nodes: int, data: Path | None = None
) -> GivenNegatives:
    """The given negatives of a split; a dataset without them is refused."""
    if is_ogb_folder(Path(source)):
        return read_negatives(ogb_files(Path(source)), split, num_nodes=num_nodes)
    if source not in BENCHMARKS or BENCHMARKS[source].task != OGB:
        raise InputError(f"{source} has no given negatives; rank among all nodes")
    files = locate_benchmark(source, data=data).files
    return read_negatives(files, split, num_nodes=num_nodes)


def open_graph(
    source: str, *, options: ReadOptions, data: Path | None, spill: Path | None = None
) -> tuple[KnowledgeGraph, list[str]]:
    """The training graph of a source, and sentences on how it was read.

    `spill` is a folder for facts of a file, which are then mapped and not held in memory.
    """
    is_given_by_path = is_path(source, data)
    if is_given_by_path and is_ogb_folder(Path(source)):
        refuse_options(source, options)
        graph = read_ogb_training_graph(ogb_files(Path(source)))
        return graph, [f"{graph.num_triples:,} facts in the layout of OGB"]
    if can_be_mapped(source) and not options.given():
        graph = read_mapped_graph(source)
        return graph, [f"{graph.num_triples:,} facts by ids, mapped"]
    if source == STANDARD_INPUT or is_given_by_path:
        graph, report = read_graph_with_report(source, options=options, spill=spill)
        first, *others = report.sentences()
        return graph, [first.removeprefix(f"{report.source}: "), *others]
    check_known(source)
    refuse_options(source, options)
    if source == EMBEDDED:
        countries = load_countries().train
        return countries, [f"{countries.num_triples:,} facts"]
    return load_training_graph(source, data)


def refuse_options(source: str, options: ReadOptions) -> None:
    if given := options.given():
        raise InputError(
            f"{source} is a known dataset, and the options for reading a file do not go with it; "
            f"leave out {', '.join(given)}"
        )


def is_path(source: str, data: Path | None) -> bool:
    """Whether `source` is a file or folder, and not a known dataset; refused if it is both.

    With `data`, the folder of known datasets, the name of a dataset is never a path.
    """
    if not Path(source).exists():
        return False
    if source not in (EMBEDDED, *BENCHMARKS):
        return True
    if data is not None:
        return False
    kind = "folder" if Path(source).is_dir() else "file"
    raise InputError(
        f"{source} is a {kind} here and also the name of a known dataset; write ./{source} for "
        f"the {kind}, or give the folder of the dataset with --data DIR"
    )


def refuse_standard_input() -> NoReturn:
    """Refuse it where facts are divided, or read again later."""
    raise InputError(
        "this command does not read a dataset from standard input; write it to a file, and give "
        "that"
    )


def check_known(source: str) -> None:
    """Refuse a source that is not the name of a known dataset."""
    if source == STANDARD_INPUT:
        refuse_standard_input()
    known = [EMBEDDED, *BENCHMARKS]
    if source in known:
        return
    near = get_close_matches(source.casefold(), known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`nodepiece datasets` lists the names"
    raise InputError(
        f"{source} is neither a file, nor a folder, nor the name of a known dataset; {hint}"
    )
