"""Whether the quotes of a file separated by tabs belong to its cells, as in CSV, or to its names.

Plain TSV has no quotes: "Heroes" is a name with two of them. Programs that write CSV with tabs,
such as pandas, put a cell into quotes where it holds a tab, a line end or a quote, which is then
doubled; or all cells; or all that are not numbers.
"""

import csv
import re
from collections.abc import Iterable

from nodepiece.data.blocks import ReadOptions
from nodepiece.errors import InputError

TEXT = r'"[^"]*(?:""[^"]*)*"'
NUMBER = r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?"
ALL_QUOTED = re.compile(rf"(?:(?:{TEXT}|{NUMBER})(?:\t|[\r\n]+|\Z))+")
QUOTED = re.compile(TEXT)


def is_quoted(lines: list[str], delimiter: str, options: ReadOptions, label: str) -> bool:
    """By the format, where it is given, else by the first lines; refuses what may be either."""
    if delimiter != "\t" or options.format == "csv":
        return True
    if options.format == "tsv" or not any('"' in line for line in lines):
        return False
    rows = [line.rstrip("\r\n").split("\t") for line in lines if line.strip()]
    if ALL_QUOTED.fullmatch("".join(lines).lstrip()) or not are_alike(rows):
        return are_alike(quoted_rows(lines))  # all quoted, or tabs and line ends inside of cells
    opened = [cell for row in rows for cell in row if cell.startswith('"')]
    needed = [cell for cell in opened if QUOTED.fullmatch(cell) and '""' in cell[1:-1]]
    if not needed:
        return False
    if len(needed) == len(opened):
        return True
    raise InputError(
        f"{label}: some quotes are as CSV has them, such as {needed[0][:80]}, and others are not; "
        "if they belong to the names, give --format tsv; if they surround cells, give --format csv "
        "--delimiter tab"
    )


def are_alike(rows: list[list[str]]) -> bool:
    """Whether each row has three cells or more, as many as the first."""
    return len({len(row) for row in rows}) == 1 and len(rows[0]) >= 3


def quoted_rows(lines: Iterable[str]) -> list[list[str]]:
    """The cells of all rows, quotes taken as in CSV; none where they are not as CSV has them."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(lines, delimiter="\t", strict=True):
            rows += [row] if row else []
    except csv.Error as error:
        return rows if "end of data" in str(error) else []  # the lines may end within a row
    return rows
