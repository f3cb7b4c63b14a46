"""A format of files: a fact on each line, "head --relation--> tail"."""

import re

import pyarrow as pa

from nodepiece.data.blocks import Block, Reading, ReadOptions
from nodepiece.data.formats import Format
from nodepiece.data.input_file import InputFile
from nodepiece.errors import InputError

FACT = re.compile(r"(.+) --(.+)--> (.+)")


def read_arrows(file: InputFile, options: ReadOptions) -> Reading:
    return Reading("arrows", iter([read_block(file)]))


def read_block(file: InputFile) -> Block:
    facts = []
    with file.open() as stream:
        for number, line in enumerate(stream.read().decode().splitlines(), start=1):
            found = FACT.fullmatch(line)
            if found is None:
                raise InputError(f"{file.label} line {number:,}: write head --relation--> tail")
            facts.append(found.groups())
    return Block(*(pa.array(column) for column in zip(*facts, strict=True)))


ARROWS = Format(read_arrows, (".arrows",))
