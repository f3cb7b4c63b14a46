"""The registry of file formats: the reader of each, and the endings of its files."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nodepiece.data.blocks import Reading, ReadOptions
from nodepiece.data.delimited import read_csv, read_tsv
from nodepiece.data.input_file import InputFile, content_format, refuse_document, without_gz
from nodepiece.data.jsonl import read_json_lines
from nodepiece.data.npy import ENDING as NPY_ENDING
from nodepiece.data.npy import read_npy
from nodepiece.data.parquet import read_parquet
from nodepiece.data.rdf import (
    read_nquads,
    read_ntriples,
    read_rdf_xml,
    read_trig,
    read_turtle,
)

ANY_FORMAT = ".txt"  # an ending of several formats: the content decides


@dataclass(frozen=True)
class Format:
    """A format of files of facts."""

    read: Callable[[InputFile, ReadOptions], Reading]
    endings: tuple[str, ...]  # of file names, in lower case and without .gz


def known_endings() -> tuple[str, ...]:
    """The endings of files that are read as facts in a folder."""
    return (*(ending for each in FORMATS.values() for ending in each.endings), ANY_FORMAT)


def format_of(file: InputFile, path: str | Path) -> str:
    """The format by the ending of `path`, else by the content of the file."""
    suffix = Path(without_gz(str(path))).suffix.lower()
    for name, known in FORMATS.items():
        if suffix in known.endings:
            return name
    sample = file.sample()
    refuse_document(sample, path, file.label)
    return content_format(sample)


FORMATS: dict[str, Format] = {
    "tsv": Format(read_tsv, (".tsv",)),
    "csv": Format(read_csv, (".csv",)),
    "jsonl": Format(read_json_lines, (".jsonl", ".ndjson")),
    "parquet": Format(read_parquet, (".parquet",)),
    "nt": Format(read_ntriples, (".nt",)),
    "ttl": Format(read_turtle, (".ttl",)),
    "nq": Format(read_nquads, (".nq",)),
    "trig": Format(read_trig, (".trig",)),
    "rdf": Format(read_rdf_xml, (".rdf", ".owl")),
    "npy": Format(read_npy, (NPY_ENDING,)),
}
