"""Input files: plain, compressed, or standard input."""

import gzip
import json
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from nodepiece.errors import InputError

STANDARD_INPUT = "-"
SAMPLE_BYTES = 1 << 20  # enough to detect the format of a file

GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
NPY_MAGIC = b"\x93NUMPY"
TERM = rb"(?:<[^<>\s]*>|_:\S+)"
QUAD = re.compile(  # a line with a graph behind its object, which may be a literal
    rb"^\s*" + TERM + rb"\s+<[^<>\s]*>\s+(?:" + TERM + rb'|".*"\S*)\s+' + TERM + rb"\s*\.\s*$",
    re.MULTILINE,
)
NAMED_GRAPH = re.compile(  # of TriG, as a line that begins with it
    rb"^[ \t]*(?:graph\b.*|<[^<>\s]*>|[\w.-]*:[\w.-]*)?\s*\{", re.MULTILINE | re.IGNORECASE
)
FOREIGN_MAGIC = {
    b"PK\x03\x04": "a zip archive",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
}


@dataclass(frozen=True)
class InputFile:
    """A file that can be opened as often as needed."""

    path: Path  # where the bytes are
    label: str  # what the user calls it
    is_gzip: bool

    def open(self) -> BinaryIO:
        """The bytes, decompressed."""
        if self.is_gzip:
            return cast(BinaryIO, gzip.open(self.path, "rb"))
        return self.path.open("rb")

    def arrow_stream(self) -> pa.NativeFile:
        """An Arrow stream of the bytes, read and decompressed outside the interpreter lock."""
        return pa.input_stream(str(self.path), compression="gzip" if self.is_gzip else None)

    def sample(self) -> bytes:
        """The first bytes, decompressed."""
        with self.open() as stream:
            return stream.read(SAMPLE_BYTES)


@contextmanager
def open_source(source: str | Path) -> Iterator[InputFile]:
    """Yield the file behind `source`; errors of the file are raised as InputErrors.

    Standard input is copied to a temporary file first: Parquet is read from its end, and finding
    the line of an error means reading it twice.
    """
    if str(source) == STANDARD_INPUT:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "standard-input"
            with copy.open("wb") as target:
                shutil.copyfileobj(sys.stdin.buffer, target)
            with open_file(copy, "standard input") as file:
                yield file
    else:
        with open_file(Path(source), str(source)) as file:
            yield file


@contextmanager
def open_file(path: Path, label: str) -> Iterator[InputFile]:
    if not path.exists():
        raise InputError(f"{label} does not exist; check the path")
    try:
        with path.open("rb") as stream:
            magic = stream.read(8)
        refuse_foreign(magic, label)
        yield InputFile(path, label, is_gzip=magic.startswith(GZIP_MAGIC))
    except EOFError as error:
        raise InputError(f"{label} ends early: {error}; copy or compress it again") from error
    except (OSError, zlib.error) as error:
        raise InputError(f"{label} cannot be read: {error}; check the file") from error


def refuse_foreign(magic: bytes, label: str) -> None:
    if not magic:
        raise InputError(f"{label} is empty; it should state facts: head, relation, tail")
    for start, kind in FOREIGN_MAGIC.items():
        if magic.startswith(start):
            raise InputError(f"{label} is {kind}; unpack it first (gzip is read as it is)")


def without_gz(name: str) -> str:
    return name[:-3] if name.lower().endswith(".gz") else name


def content_format(sample: bytes) -> str:
    """The name in FORMATS of the format that the first bytes of a file show."""
    if sample.startswith(PARQUET_MAGIC):
        return "parquet"
    if sample.startswith(NPY_MAGIC):
        return "npy"
    text = sample.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:8].lower().startswith((b"<?xml", b"<rdf:rdf")):
        return "rdf"
    for raw in text.splitlines():
        line = raw.strip().lower()
        if line.startswith((b"@prefix", b"@base", b"prefix ", b"base <")):
            return "trig" if NAMED_GRAPH.search(text) else "ttl"
        if line.startswith((b"<", b"_:")) and line.endswith(b"."):
            return "nq" if QUAD.search(text) else "nt"
        if is_json(line):
            return "jsonl"
        if line and not line.startswith(b"#"):
            break
    return "tsv"


def is_json(line: bytes) -> bool:
    """Whether a line is an object or an array; text with tabs or commas is neither."""
    if line[:1] + line[-1:] not in (b"{}", b"[]"):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def refuse_document(sample: bytes, path: str | Path, label: str) -> None:
    """Refuse a .json file that is not JSON lines."""
    name = without_gz(str(path)).lower()
    if name.endswith(".json") and content_format(sample) != "jsonl":
        raise InputError(
            f"{label} is not JSON lines: write a fact on each line, such as "
            '["Kenya", "borders", "Uganda"] or {"head": ..., "relation": ..., "tail": ...}, or '
            "give its --format"
        )
