"""Facts as lines of text: TSV, CSV and similar formats."""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from nodepiece.data.blocks import Block, Columns, Reading, ReadOptions
from nodepiece.data.columns import choose_columns
from nodepiece.data.header import has_header, refuse_weights
from nodepiece.data.input_file import SAMPLE_BYTES, InputFile
from nodepiece.data.malformed import (
    BLANKS,
    LINE_BYTES,
    TextLayout,
    malformed_line,
    refuse_open_quote,
    shown,
    split_rows,
    wrong_number_of_columns,
)
from nodepiece.data.quoting import is_quoted
from nodepiece.errors import InputError

BLOCK_BYTES = LINE_BYTES  # of text parsed at once, where lines may be long
SMALL_BLOCK_BYTES = 1 << 20  # where they are not: Arrow has up to 32 blocks in memory
SAMPLE_LINES = 100  # used to detect the delimiter
SAMPLE_ROWS = 10_000  # used to detect a header

DELIMITERS_BY_NAME = {
    "tab": "\t",
    "\\t": "\t",
    "comma": ",",
    "semicolon": ";",
    "blanks": BLANKS,
    "space": BLANKS,
}


def read_tsv(file: InputFile, options: ReadOptions) -> Reading:
    return read_delimited(file, options, candidates="\t,; ")


def read_csv(file: InputFile, options: ReadOptions) -> Reading:
    return read_delimited(file, options, candidates=",;\t ")


def read_delimited(file: InputFile, options: ReadOptions, *, candidates: str) -> Reading:
    """A reading of delimited lines; the delimiter is one of `candidates`, the likeliest first."""
    layout, names = find_layout(file, options, candidates)
    quoted = " and quoted" if layout.is_quoted and layout.delimiter == "\t" else ""
    line = layout.header_line
    header = f", line {line} names the columns" if line else ", no header"
    words = f"text separated by {layout.words}{quoted}{header}"
    is_plain = not layout.is_quoted and options.format != "tsv"
    return Reading(words, checked_blocks(file, layout), names, is_plain)


def find_layout(
    file: InputFile, options: ReadOptions, candidates: str
) -> tuple[TextLayout, Columns]:
    """Delimiter, header and columns, detected from the first lines of the file."""
    lines = sample_lines(file)
    try:
        delimiter = find_delimiter(lines, options, candidates)
        quoted = delimiter != BLANKS and is_quoted(lines, delimiter, options, file.label)
        rows = split_rows(lines, delimiter, is_quoted=quoted)
        number, cells = next(rows, (0, []))
    except csv.Error as error:
        raise InputError(
            f"{file.label}: {error} in the first lines; look for a quote that is not closed"
        ) from error
    if not cells:
        raise InputError(f"{file.label} has only blank lines; it should state facts, one a line")
    blanks = follows_a_blank(lines, delimiter, file.label, is_quoted=quoted)
    cells = [cell.strip(" ") for cell in cells] if blanks else cells
    is_header = has_header(cells, readable(rows), options, f"{file.label} line {number:,}")
    if not is_header and options.chosen is None:
        layout = TextLayout(delimiter, 3, (0, 1, 2), 0, is_quoted=quoted, has_blanks=blanks)
        if len(lines) > 1 and len(cells) not in (1, 3):
            all_rows = split_rows(lines, delimiter, is_quoted=quoted)
            if all(len(row) == len(cells) for _, row in all_rows):
                raise InputError(other_columns(file.label, cells, layout))
        if len(cells) != 3:
            complaint = wrong_number_of_columns(cells, layout)
            raise InputError(f"{file.label} line {number:,}: {complaint}")
        every_row = split_rows(lines, delimiter, is_quoted=quoted)
        refuse_weights(readable(every_row), file.label)
        return layout, (0, 1, 2)
    if not is_header and any(isinstance(column, str) for column in options.chosen or ()):
        raise InputError(
            f"{file.label}: columns are given by name, and no line names them; give positions "
            "counted from 0, such as --columns 0,1,2, or leave out --no-header"
        )
    at = choose_columns(cells, options.chosen, file.label, by_position=True)
    names: Columns = (cells[at[0]], cells[at[1]], cells[at[2]]) if is_header else at
    header_line = number if is_header else 0
    layout = TextLayout(delimiter, len(cells), at, header_line, quoted, has_blanks=blanks)
    return layout, names


def other_columns(label: str, cells: list[str], layout: TextLayout) -> str:
    """What is wrong with a file of which every line has more columns than three, or two."""
    hint = "say which are head, relation and tail, such as --columns 0,1,2"
    if len(cells) == 2:
        hint = "a fact has a relation between head and tail; add a column with its name"
    return (
        f"{label}: every line has {len(cells)} columns separated by {layout.words}, as in "
        f"{shown(layout.delimiter.join(cells))}; {hint}"
    )


def follows_a_blank(lines: list[str], delimiter: str, label: str, *, is_quoted: bool) -> bool:
    """Whether a blank follows every comma or semicolon of the first lines."""
    if delimiter in ("\t", BLANKS):
        return False
    rows = readable(split_rows(lines, delimiter, is_quoted=is_quoted))
    later = [cell for _, cells in rows for cell in cells[1:]]
    if not later or not all(cell.startswith(" ") for cell in later):
        return False
    if is_quoted and any(cell.startswith(' "') for cell in later):
        raise InputError(
            f"{label}: a blank between a delimiter and a quote makes the quote part of the name; "
            f'remove these blanks, as in "a"{delimiter}"b"{delimiter}"c"'
        )
    return True


def readable(rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    """The rows before the first that cannot be read; reading the whole file refuses that one."""
    try:
        yield from islice(rows, SAMPLE_ROWS)
    except csv.Error:
        return


def find_delimiter(lines: list[str], options: ReadOptions, candidates: str) -> str:
    if options.delimiter is None:
        return detect_delimiter(lines, candidates)
    return parse_delimiter(options.delimiter)


def sample_lines(file: InputFile) -> list[str]:
    """Complete lines from the start of the file, with line ends."""
    sample = file.sample()
    lines = sample.removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True)
    if len(sample) == SAMPLE_BYTES and len(lines) > 1:
        lines.pop()  # incomplete
    return [line.decode(errors="replace") for line in lines]


def detect_delimiter(lines: list[str], candidates: str) -> str:
    """The delimiter that cuts the largest share of rows alike, into three or more cells.

    Of equal ones it is the tab, which names hardly have in them, then the earlier candidate.
    """
    filled = [line for line in lines if line.strip()][:SAMPLE_LINES]
    likeliest = candidates[0]
    if likeliest == "\t" and 2 * sum("\t" in line for line in filled) > len(filled):
        return likeliest  # names often contain commas and blanks, but rarely tabs
    shares = {delimiter: share_cut_alike(filled, delimiter) for delimiter in candidates}
    best = max(shares.values())
    return "\t" if best and shares["\t"] == best else max(candidates, key=shares.__getitem__)


def share_cut_alike(lines: list[str], delimiter: str) -> float:
    is_csv = delimiter not in ("\t", BLANKS)
    lengths = Counter(len(cells) for _, cells in split_rows(lines, delimiter, is_quoted=is_csv))
    most = max((times for length, times in lengths.items() if length >= 3), default=0)
    return most / max(lengths.total(), 1)


def parse_delimiter(text: str) -> str:
    delimiter = DELIMITERS_BY_NAME.get(text, text)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\r\n"\0':
        raise InputError(
            f"the delimiter must be one character or one of {', '.join(DELIMITERS_BY_NAME)}, "
            f"got {text!r}"
        )
    return delimiter


def checked_blocks(file: InputFile, layout: TextLayout) -> Iterator[Block]:
    num_rows = 0
    try:
        for batch in parsed_batches(file, layout):
            num_rows += len(batch)
            columns = [batch.column(position) for position in range(3)]
            if layout.has_blanks:
                columns = [pc.utf8_trim(column, characters=" ") for column in columns]
            if any(has_empty(column) for column in columns):
                raise malformed_line(file, layout, None)
            yield Block(*columns)
    except pa.ArrowInvalid as error:
        raise malformed_line(file, layout, error) from error
    if layout.is_quoted:
        refuse_open_quote(file, layout, num_rows)


def has_empty(column: pa.StringArray) -> bool:
    return len(column) > 0 and pc.min(pc.binary_length(column)).as_py() == 0


def parsed_batches(file: InputFile, layout: TextLayout) -> Iterator[pa.RecordBatch]:
    """Tables of three string columns: head, relation, tail."""
    if layout.delimiter == BLANKS:
        with file.open() as stream:
            skip = layout.header_line
            for chunk in whole_lines(stream):
                text = single_blanks(chunk)
                if text:
                    yield from open_csv(pa.BufferReader(text), layout, skip)
                skip = 0
    else:
        yield from csv_batches(file, layout)


def csv_batches(file: InputFile, layout: TextLayout) -> Iterator[pa.RecordBatch]:
    """Tables of a file in small blocks, as Arrow reads many ahead; large ones for very long lines.

    If a line is longer than a small block, the rows after those that were read before follow from
    large blocks.
    """
    num_rows = 0
    try:
        with file.arrow_stream() as stream:
            for batch in open_csv(stream, layout, layout.header_line, SMALL_BLOCK_BYTES):
                yield batch
                num_rows += len(batch)
        return
    except pa.ArrowInvalid as error:
        if "straddles two block boundaries" not in str(error) or SMALL_BLOCK_BYTES >= BLOCK_BYTES:
            raise
    with file.arrow_stream() as stream:
        for batch in open_csv(stream, layout, layout.header_line):
            if num_rows < len(batch):
                yield batch.slice(num_rows)
            num_rows = max(0, num_rows - len(batch))


def open_csv(
    stream: pa.NativeFile, layout: TextLayout, skip_rows: int, block_bytes: int | None = None
) -> pa_csv.CSVStreamingReader:
    names = [str(position) for position in range(layout.num_columns)]
    chosen = [names[position] for position in layout.positions]
    return pa_csv.open_csv(
        stream,
        read_options=pa_csv.ReadOptions(
            block_size=min(block_bytes or BLOCK_BYTES, BLOCK_BYTES),
            column_names=names,
            skip_rows=skip_rows,
        ),
        parse_options=pa_csv.ParseOptions(
            delimiter=layout.delimiter,
            quote_char='"' if layout.is_quoted else False,
            double_quote=layout.is_quoted,
            newlines_in_values=layout.is_quoted,
        ),
        convert_options=pa_csv.ConvertOptions(
            include_columns=chosen,
            column_types=dict.fromkeys(chosen, pa.string()),
            null_values=[],
            strings_can_be_null=False,
        ),
    )


def whole_lines(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes in chunks of complete lines."""
    while chunk := stream.read(BLOCK_BYTES // 2):
        yield chunk + stream.readline()


def single_blanks(text: bytes) -> bytes:
    """The text with runs of blanks replaced by one, and without blanks at the ends of lines."""
    text = re.sub(rb"[ \t]+", b" ", text)
    return re.sub(rb" ?([\r\n]+) ?", rb"\1", text).strip(b" ")
