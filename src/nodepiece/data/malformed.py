"""A slow search for the first malformed line, after the fast parser has failed."""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nodepiece.data.column_names import ROLES, Positions
from nodepiece.data.input_file import InputFile
from nodepiece.errors import InputError

BLANKS = " "  # as a delimiter: any run of spaces and tabs
DELIMITER_WORDS = {"\t": "tabs", ",": "commas", ";": "semicolons", BLANKS: "blanks"}
MAX_SHOWN = 80  # characters of an offending line
LINE_BYTES = 16 << 20  # no line is longer


@dataclass(frozen=True)
class TextLayout:
    """How the cells of a text file are arranged."""

    delimiter: str  # one character
    num_columns: int
    positions: Positions
    header_line: int  # its number, counted from 1; 0: there is none
    is_quoted: bool  # as in CSV; otherwise quotes have no special meaning
    has_blanks: bool = False  # a blank follows every delimiter, and does not belong to the cell

    @property
    def words(self) -> str:
        return DELIMITER_WORDS.get(self.delimiter, repr(self.delimiter))


def split_rows(
    lines: Iterable[str], delimiter: str, *, is_quoted: bool, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """The number, counted from 1, and the cells of every line that is not blank.

    A quoted cell may span several lines; its row has the number of the first. With `strict`, a
    quote that is not closed, or closed before the cell ends, raises a csv.Error.
    """
    if not is_quoted:
        for number, line in enumerate(lines, start=1):
            text = line.rstrip("\r\n")
            cells = (
                re.split("[ \t]+", text.strip(" \t"))
                if delimiter == BLANKS
                else text.split(delimiter)
            )
            if cells != [""]:
                yield number, cells
    else:
        reader = csv.reader(lines, delimiter=delimiter, strict=strict)
        number = 1
        for cells in reader:
            if cells:
                yield number, cells
            number = reader.line_num + 1


def malformed_line(file: InputFile, layout: TextLayout, reason: Exception | None) -> InputError:
    """The error of the first malformed line, or of `reason` if no line is malformed."""
    number = 0
    with text_lines(file) as lines:
        try:
            for number, cells in split_rows(lines, layout.delimiter, is_quoted=layout.is_quoted):
                cells = [cell.strip(" ") for cell in cells] if layout.has_blanks else cells
                complaint = number > layout.header_line and find_problem(cells, layout)
                if complaint:
                    return InputError(f"{file.label} line {number:,}: {complaint}")
        except csv.Error as error:
            return bad_quote(file, number, error)
    return InputError(f"{file.label}: {reason or 'no line could be read'}; check the file")


def refuse_open_quote(file: InputFile, layout: TextLayout, num_rows: int) -> None:
    """Refuse a quote that is never closed, which makes the rest of the file one name.

    In a file with as many rows as lines it can only be in the last line, so mostly counting lines
    and parsing that one is enough.
    """
    num_lines, last = last_line(file)
    is_row_a_line = num_lines <= layout.header_line + num_rows and "\r" not in last.rstrip("\r\n")
    number, skipped = 0, num_lines - 1 if is_row_a_line else 0
    with text_lines(file) as lines:
        rows = split_rows(
            [last] if is_row_a_line else lines, layout.delimiter, is_quoted=True, strict=True
        )
        try:
            for row_number, _ in rows:
                number = row_number
        except csv.Error as error:
            raise bad_quote(file, skipped + number, error) from error


def last_line(file: InputFile) -> tuple[int, str]:
    """The number of lines, and the last one that is not blank."""
    num_lines, last = 0, b""
    with file.open() as stream:
        while chunk := stream.read(1 << 20):
            num_lines += chunk.count(b"\n")
            last += chunk
            last = last[last.rstrip(b"\r\n").rfind(b"\n") + 1 :]
    num_lines += not last.endswith(b"\n")
    return num_lines, last.decode("utf-8", "surrogateescape")


def bad_quote(file: InputFile, number: int, error: csv.Error) -> InputError:
    return InputError(
        f"{file.label} after line {number:,}: {error}; look for a quote that is not closed, "
        "or write quotes inside a quoted cell twice"
    )


@contextmanager
def text_lines(file: InputFile) -> Iterator[io.TextIOWrapper]:
    """The lines, with line ends; bytes that are not UTF-8 become lone surrogates."""
    with (
        file.open() as stream,
        io.TextIOWrapper(
            stream, encoding="utf-8-sig", errors="surrogateescape", newline=""
        ) as lines,
    ):
        yield lines


def find_problem(cells: list[str], layout: TextLayout) -> str | None:
    text = layout.delimiter.join(cells)
    if not text.isascii() and not is_utf8(text):
        return f"not UTF-8: {shown(text)}; save the file as UTF-8"
    if len(cells) != layout.num_columns:
        return wrong_number_of_columns(cells, layout)
    for role, position in zip(ROLES, layout.positions, strict=True):
        if not cells[position]:
            return f"the {role} is empty: {shown(text)}; fill it in or remove the line"
    if len(text) > LINE_BYTES // 4:
        return f"the line has {len(text):,} characters; look for a quote that is not closed"
    return None


def wrong_number_of_columns(cells: list[str], layout: TextLayout) -> str:
    return (
        f"expected {layout.num_columns} columns separated by {layout.words}, got {len(cells)}: "
        f"{shown(layout.delimiter.join(cells))}; fix the line or remove it, "
        "or give --delimiter and --columns if it is right"
    )


def is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(text: str) -> str:
    """The line as a quoted string; bytes that are not UTF-8 appear as \\xff."""
    text = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
    return repr(text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))
