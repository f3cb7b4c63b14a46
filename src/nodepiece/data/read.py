"""Readers of graphs and datasets: a file of any format, a folder of splits, standard input."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np

from nodepiece.data.blocks import DETECT_EVERYTHING, Block, Column, Columns, ReadOptions
from nodepiece.data.dataset import Dataset
from nodepiece.data.doubts import find_doubts
from nodepiece.data.encode import drop_duplicates, encode_facts, encode_like
from nodepiece.data.formats import FORMATS, format_of, known_endings
from nodepiece.data.input_file import STANDARD_INPUT, open_source, without_gz
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.short_text import plural

__all__ = [
    "ReadOptions",
    "ReadReport",
    "read_dataset",
    "read_dataset_with_reports",
    "read_graph",
    "read_graph_with_report",
]

log = logging.getLogger("nodepiece.reading")
SECONDS_BETWEEN_LINES = 10.0  # about the facts read so far

SPLIT_NAMES = {
    "train": ("train",),
    "valid": ("valid", "validation", "dev"),
    "test": ("test",),
}


@dataclass(frozen=True)
class ReadReport:
    """How a file was read, and the numbers of facts read and left out."""

    source: str
    format: str  # in words
    num_rows: int  # facts stated in the file
    num_literals: int  # of these: left out, as the object is a number, a date or a text
    num_duplicates: int  # of these: left out, as they were stated before
    columns: Columns | None = None  # of head, relation and tail: names, or positions from 0
    doubts: tuple[str, ...] = ()  # signs that the file should be read in another way

    @property
    def num_facts(self) -> int:
        """Facts that were read: rows without literals and duplicates."""
        return self.num_rows - self.num_literals - self.num_duplicates

    @property
    def layout(self) -> str:
        """The format and the columns, in words."""
        if self.columns is None:
            return self.format
        names = ", ".join(map(repr, self.columns))
        what = "columns " * all(isinstance(column, int) for column in self.columns)
        return f"{self.format}; head, relation, tail are {what}{names}"

    def sentences(self) -> list[str]:
        """What was read and what was left out, in sentences."""
        lines = [f"{self.source}: {plural(self.num_facts, 'fact')} ({self.layout})"]
        if self.num_literals:
            lines.append(f"left out {plural(self.num_literals, 'fact')} whose object is a literal")
        if self.num_duplicates:
            lines.append(f"left out {plural(self.num_duplicates, 'fact')} stated before")
        return [*lines, *self.doubts]


def read_graph(
    source: str | Path,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    columns: Sequence[Column] | str | None = None,
    format: str | None = None,
    options: ReadOptions = DETECT_EVERYTHING,
) -> KnowledgeGraph:
    """The graph in a file, in the training part of a folder, or on standard input (`-`).

    Nodes and relations get their ids by first appearance. A fact stated twice is kept once.
    `columns` are head, relation and tail by name or by position counted from 0, such as
    ("src", "type", "dst"). `options` holds all four in one record.
    """
    given = ReadOptions(delimiter, header, columns, format).given()
    return read_graph_with_report(source, options=replace(options, **given))[0]


def read_graph_with_report(
    source: str | Path, *, options: ReadOptions = DETECT_EVERYTHING, spill: Path | None = None
) -> tuple[KnowledgeGraph, ReadReport]:
    """The graph that `read_graph` returns, and how the source was read: columns, facts left out.

    `spill` is a folder for the facts, which are then mapped and not held in memory.
    """
    if is_folder(source):
        source = split_files(Path(source))["train"]
    with open_source(source) as file:
        reading = FORMATS[options.format or format_of(file, source)].read(file, options)
        blocks = logged_blocks(reading.blocks, file.label)
        facts = encode_facts(blocks, largest=reading.largest, spill=spill)
    num_nodes, num_relations = len(facts.names.nodes), len(facts.names.relations)
    triples = drop_duplicates(facts.triples, num_nodes, num_relations, spill=spill)
    report = ReadReport(
        source=file.label,
        format=reading.format,
        num_rows=len(facts.triples) + facts.num_literals,
        num_literals=facts.num_literals,
        num_duplicates=len(facts.triples) - len(triples),
        columns=reading.columns,
        doubts=tuple(find_doubts(triples, facts.names, reading.columns, is_plain=reading.is_plain)),
    )
    if not len(triples):
        raise InputError(f"{file.label} states no fact between nodes; {advice(report)}")
    return KnowledgeGraph(triples, num_nodes, num_relations, facts.names), report


def logged_blocks(blocks: Iterable[Block], label: str) -> Iterator[Block]:
    """The blocks; every few seconds the number of facts so far is logged."""
    num_facts, last = 0, perf_counter()
    for block in blocks:
        yield block
        num_facts += len(block)
        if perf_counter() - last > SECONDS_BETWEEN_LINES:
            last = perf_counter()
            log.info("%s: %s facts so far", label, f"{num_facts:,}")


def advice(report: ReadReport) -> str:
    if report.num_literals:
        return f"all {report.num_literals:,} objects are literals, and a graph needs nodes"
    return "add some: head, relation, tail"


def read_dataset(
    source: str | Path,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    columns: Sequence[Column] | str | None = None,
    format: str | None = None,
    options: ReadOptions = DETECT_EVERYTHING,
) -> Dataset:
    """The dataset of a folder with a train file, and optionally valid and test; a file is train.

    Facts of valid and test with nodes or relations that train lacks are dropped and counted. All
    files are read in the same way; `read_graph` describes the options.
    """
    given = ReadOptions(delimiter, header, columns, format).given()
    return read_dataset_with_reports(source, options=replace(options, **given))[0]


def read_dataset_with_reports(
    source: str | Path, *, options: ReadOptions = DETECT_EVERYTHING
) -> tuple[Dataset, dict[str, ReadReport]]:
    """The dataset, and a report for the file of each split."""
    files: dict[str, str | Path] = {"train": source}
    if is_folder(source):
        files = dict(split_files(Path(source)))
    train, train_report = read_graph_with_report(files["train"], options=options)
    if train.names is None:
        raise ValueError("a graph read from a file has names")
    reports = {"train": train_report}
    parts = {part: np.empty((0, 3), dtype=np.int32) for part in ("valid", "test")}
    num_unseen = {"valid": 0, "test": 0}
    for part in [part for part in parts if part in files]:
        graph, reports[part] = read_graph_with_report(files[part], options=options)
        parts[part], num_unseen[part] = encode_like(graph, train.names)
    dataset = Dataset(
        dataset_name(source),
        train,
        parts["valid"],
        parts["test"],
        num_unseen,
        num_repeated=sum(report.num_duplicates for report in reports.values()),
        num_literals=sum(report.num_literals for report in reports.values()),
        layout="; ".join([train_report.layout, *train_report.doubts]),
    )
    return dataset, reports


def is_folder(source: str | Path) -> bool:
    return str(source) != STANDARD_INPUT and Path(source).is_dir()


def dataset_name(source: str | Path) -> str:
    if str(source) == STANDARD_INPUT:
        return "standard input"
    path = Path(source).resolve()
    return path.name if path.is_dir() else Path(without_gz(path.name)).stem


def split_files(folder: Path) -> dict[str, Path]:
    """The files of the splits in a folder; a folder without a train file is refused."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        split = split_of(path)
        if split is None:
            continue
        if split in found:
            raise InputError(
                f"{folder} has two files for the {split} split: {found[split].name} and "
                f"{path.name}; move one of them away"
            )
        found[split] = path
    if "train" not in found:
        expected = ", ".join(f"train{ending}" for ending in known_endings())
        if any(folder.glob("train_labels.json*")):
            raise InputError(
                f"{folder} is a dataset of node classification; to train on it, write a TOML file "
                f'with extends = "wd50k-100-paper" and dataset = "{folder}"'
            )
        raise InputError(
            f"{folder} has no training file; name it one of {expected} (or one of these and .gz)"
        )
    return found


def split_of(path: Path) -> str | None:
    plain = Path(without_gz(path.name.lower()))
    if plain.suffix not in known_endings() or not path.is_file():
        return None
    return next((split for split, stems in SPLIT_NAMES.items() if plain.stem in stems), None)
