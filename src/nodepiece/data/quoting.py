"""Whether the quotes of a tab-separated file surround cells, as in CSV, or belong to the names.

Plain TSV has no quoting: "Heroes" is a name that contains two quotes. Programs that write CSV with
tabs, such as pandas, quote cells that contain a tab, a line end or a quote, which is then doubled;
or all cells; or all that are not numbers.
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
    """Whether cells are quoted, by the given format or the first lines; refused if unclear."""
    if delimiter != "\t" or options.format == "csv":
        return True
    if options.format == "tsv" or not any('"' in line for line in lines):
        return False
    rows = [line.rstrip("\r\n").split("\t") for line in lines if line.strip()]
    if ALL_QUOTED.fullmatch("".join(lines).lstrip()) or not are_alike(rows):
        return are_alike(quoted_rows(lines))  # all quoted, or tabs and line ends inside cells
    opened = [cell for row in rows for cell in row if cell.startswith('"')]
    needed = [cell for cell in opened if QUOTED.fullmatch(cell) and '""' in cell[1:-1]]
    if not needed:
        return False
    if len(needed) == len(opened):
        return True
    raise InputError(
        f"{label}: some quotes are as in CSV, such as {needed[0][:80]}, and others are not; "
        "if they belong to the names, give --format tsv; if they surround cells, give --format csv "
        "--delimiter tab"
    )


def are_alike(rows: list[list[str]]) -> bool:
    """Whether all rows have the same number of cells, at least three."""
    return len({len(row) for row in rows}) == 1 and len(rows[0]) >= 3


def quoted_rows(lines: Iterable[str]) -> list[list[str]]:
    """The cells of all rows, read as CSV; no rows if the lines are not valid CSV."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(lines, delimiter="\t", strict=True):
            rows += [row] if row else []
    except csv.Error as error:
        return rows if "end of data" in str(error) else []  # the sample may end within a row
    return rows
