"""Facts as lines of JSON, each an object or an array."""

import json
from collections.abc import Generator, Iterator
from typing import Any

import pyarrow as pa

from nodepiece.data.blocks import Block, Columns, Reading, ReadOptions
from nodepiece.data.column_names import ROLES, Positions
from nodepiece.data.columns import as_option, choose_columns
from nodepiece.data.header import has_header
from nodepiece.data.input_file import SAMPLE_BYTES, InputFile
from nodepiece.data.malformed import LINE_BYTES, shown
from nodepiece.errors import InputError

BLOCK_FACTS = 200_000


def read_json_lines(file: InputFile, options: ReadOptions) -> Reading:
    """Lines of objects, whose keys are names of columns, or of arrays; numbers become names."""
    lines = json_lines(file)
    number, first = next(lines, (0, None))
    lines.close()
    if first is None:
        raise InputError(f"{file.label} has only blank lines; it should state facts, one a line")
    if isinstance(first, dict):
        names = list(first)
        at = choose_columns(names, options.chosen, file.label)
        keys = names[at[0]], names[at[1]], names[at[2]]
        return Reading("JSON lines, objects", json_blocks(file, keys, 0, None), keys)
    refuse_one_array(file, number, first)
    is_header, positions = array_layout(file, number, first, options)
    columns: Columns = positions
    words = "JSON lines, arrays"
    if is_header:
        columns = str(first[positions[0]]), str(first[positions[1]]), str(first[positions[2]])
        words += f", line {number} names the columns"
    width = len(first) if options.chosen is None else None
    blocks = json_blocks(file, positions, number if is_header else 0, width)
    return Reading(words, blocks, columns)


def refuse_one_array(file: InputFile, number: int, first: list[Any]) -> None:
    """A whole file as one array of facts, on one line."""
    if first and all(isinstance(each, dict | list) for each in first):
        kind = "objects" if isinstance(first[0], dict) else "arrays"
        raise InputError(
            f"{file.label} line {number:,} is one array of {len(first):,} {kind}; write each of "
            "them on a line of its own, such as with jq -c '.[]'"
        )


def array_layout(
    file: InputFile, number: int, first: list[Any], options: ReadOptions
) -> tuple[bool, Positions]:
    """Whether the first line names the columns, and the positions of head, relation and tail."""
    cells = [each if isinstance(each, str) else json.dumps(each) for each in first]
    lines = json_lines(file, sample=True)
    later = ((n, row) for n, row in lines if n > number and isinstance(row, list))
    is_header = has_header(cells, later, options, f"{file.label} line {number:,}")
    lines.close()
    if not is_header and options.chosen is None:
        if len(first) != 3:
            raise InputError(
                f"{file.label} line {number:,}: expected head, relation and tail, got an array of "
                f"{len(first)}; name the three with --columns, such as {as_option((0, 1, 2))}"
            )
        return False, (0, 1, 2)
    return is_header, choose_columns(cells, options.chosen, file.label, by_position=True)


def json_lines(file: InputFile, *, sample: bool = False) -> Generator[tuple[int, Any]]:
    """The number and the value of every line that is not blank: an object or an array."""
    number = num_bytes = 0
    with file.open() as stream:
        while line := stream.readline(LINE_BYTES + 1):
            number += 1
            num_bytes += len(line)
            where = f"{file.label} line {number:,}"
            if len(line) > LINE_BYTES:
                raise InputError(
                    f"{where} has more than {LINE_BYTES:,} bytes; write one fact on each line"
                )
            text = line.removeprefix(b"\xef\xbb\xbf").strip()
            if text:
                yield number, parsed(text, where)
            if sample and num_bytes > SAMPLE_BYTES:
                return


def parsed(text: bytes, where: str) -> Any:
    try:
        value = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        line = shown(text.decode("utf-8", "surrogateescape"))
        raise InputError(f"{where} is not JSON ({error}): {line}; fix the line") from error
    if not isinstance(value, dict | list):
        raise InputError(
            f"{where}: expected an object or an array of head, relation and tail, got "
            f"{shown(text.decode())}; fix the line"
        )
    return value


def json_blocks(
    file: InputFile, keys: Columns, header_line: int, width: int | None
) -> Iterator[Block]:
    """Facts in blocks. keys: of objects, or positions in arrays of length `width` (None: any)."""
    columns: tuple[list[str], list[str], list[str]] = ([], [], [])
    kind = list if isinstance(keys[0], int) else dict
    for number, value in json_lines(file):
        if number <= header_line:
            continue
        where = f"{file.label} line {number:,}"
        if not isinstance(value, kind):
            raise InputError(
                f"{where}: expected {'an array' if kind is list else 'an object'} as in the first "
                "line; write all lines alike"
            )
        if width not in (None, len(value)):
            raise InputError(
                f"{where}: expected an array of {width}, got one of {len(value)}; fix the line"
            )
        for role, key, column in zip(ROLES, keys, columns, strict=True):
            column.append(name_of(value, key, role, where))
        if len(columns[0]) == BLOCK_FACTS:
            yield as_block(columns, file.label)
            for column in columns:
                column.clear()
    yield as_block(columns, file.label)


def name_of(value: Any, key: Any, role: str, where: str) -> str:
    try:
        name = value[key]
    except (KeyError, IndexError):
        raise InputError(
            f"{where}: there is no {role} ({key!r}); add it or remove the line"
        ) from None
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str):
        raise InputError(
            f"{where}: the {role} ({key!r}) is {shown(json.dumps(name))}, but names are text or "
            "whole numbers; fix the line"
        )
    if not name:
        raise InputError(f"{where}: the {role} ({key!r}) is empty; fill it in or remove the line")
    return name


def as_block(columns: tuple[list[str], list[str], list[str]], label: str) -> Block:
    try:
        heads, relations, tails = (pa.array(column, pa.string()) for column in columns)
    except UnicodeEncodeError as error:
        raise InputError(
            f"{label}: a name holds half of a character (\\ud800 to \\udfff); write it again"
        ) from error
    return Block(heads, relations, tails)
