"""Facts as RDF: N-Triples, Turtle and RDF/XML; N-Quads and TriG, whose graphs are joined."""

import re
from collections.abc import Iterator
from itertools import count
from types import ModuleType
from typing import BinaryIO

import pyarrow as pa

from nodepiece.data.blocks import Block, Reading, ReadOptions
from nodepiece.data.input_file import InputFile
from nodepiece.errors import InputError, MissingExtra

BLOCK_FACTS = 200_000
END_BYTES = 1 << 14
COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)

# The parser labels unlabelled blank nodes with a random hexadecimal number.
RANDOM_LABEL = re.compile("[0-9a-f]{24,32}")


def read_ntriples(file: InputFile, options: ReadOptions) -> Reading:
    return Reading("N-Triples", rdf_blocks(file, "nt"))


def read_turtle(file: InputFile, options: ReadOptions) -> Reading:
    return Reading("Turtle", rdf_blocks(file, "ttl"))


def read_nquads(file: InputFile, options: ReadOptions) -> Reading:
    return Reading("N-Quads, all graphs as one", rdf_blocks(file, "nq"))


def read_trig(file: InputFile, options: ReadOptions) -> Reading:
    return Reading("TriG, all graphs as one", rdf_blocks(file, "trig"))


def read_rdf_xml(file: InputFile, options: ReadOptions) -> Reading:
    return Reading("RDF/XML", rdf_blocks(file, "rdf"))


def rdf_blocks(file: InputFile, extension: str) -> Iterator[Block]:
    """The facts, in blocks. Names are IRIs without brackets, or _: and the label of a blank node.

    Blank nodes without a label are numbered by appearance, "_:1 of FILE", so that reading again
    gives the same names and no two files share one.
    """
    rdf = import_parser(file.label)
    blank_names: dict[str, str] = {}
    numbers = count(1)

    def name(term: object) -> str:
        if isinstance(term, rdf.NamedNode):
            return str(term.value)
        if not isinstance(term, rdf.BlankNode):
            raise InputError(f"{file.label}: {term} is a fact about a fact; remove it first")
        label = str(term.value)
        if RANDOM_LABEL.fullmatch(label) is None:
            return f"_:{label}"
        if label not in blank_names:
            blank_names[label] = f"_:{next(numbers)} of {file.path.name}"
        return blank_names[label]

    columns: tuple[list[str], list[str], list[str]] = ([], [], [])
    heads, relations, tails = columns
    num_literals = 0
    with file.open() as opened:
        stream = TailRecorder(opened)
        try:
            for fact in rdf.parse(input=stream, format=rdf.RdfFormat.from_extension(extension)):
                if isinstance(fact.object, rdf.Literal):
                    num_literals += 1
                    continue
                heads.append(name(fact.subject))
                relations.append(fact.predicate.value)
                tails.append(name(fact.object))
                if len(heads) == BLOCK_FACTS:
                    yield as_block(columns, num_literals)
                    num_literals = 0
                    for column in columns:
                        column.clear()
        except SyntaxError as error:
            reason = str(error.msg).partition(": ")[2] or error.msg
            if not error.lineno:  # RDF/XML has none
                raise InputError(f"{file.label}: {reason}; fix the file") from error
            raise InputError(
                f"{file.label} line {error.lineno:,}: {reason}; fix the line"
            ) from error
    if extension == "rdf":
        refuse_cut(file, stream.end)
    yield as_block(columns, num_literals)


class TailRecorder:
    """A stream that keeps its last bytes in `end`."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.end = stream, b""

    def read(self, size: int = -1) -> bytes:
        block = self.stream.read(size)
        self.end = (self.end + block)[-END_BYTES:]
        return block


def refuse_cut(file: InputFile, end: bytes) -> None:
    """Refuse XML that ends before its root element does, which the parser accepts."""
    found = re.search(rb"<([A-Za-z_][^\s/>]*)", COMMENT.sub(b"", file.sample()))
    root = found[1] if found else b"rdf:RDF"
    if not re.search(rb"</" + re.escape(root) + rb"\s*>\s*\Z", COMMENT.sub(b"", end)):
        name = root.decode(errors="replace")
        raise InputError(f"{file.label} ends before </{name[:80]}>; copy it again")


def as_block(columns: tuple[list[str], list[str], list[str]], num_literals: int) -> Block:
    heads, relations, tails = (pa.array(column, pa.string()) for column in columns)
    return Block(heads, relations, tails, num_literals)


def import_parser(label: str) -> ModuleType:
    try:
        import pyoxigraph
    except ModuleNotFoundError as error:
        raise MissingExtra(f"reading RDF ({label}) needs pyoxigraph", "rdf") from error
    return pyoxigraph
