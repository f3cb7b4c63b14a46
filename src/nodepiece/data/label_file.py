"""Node classes in a file: JSON, or a line for each node and class."""

import csv
import io
import zlib
from pathlib import Path

from nodepiece.data.input_file import without_gz
from nodepiece.data.json_file import open_content
from nodepiece.data.labelled_graph import Labels, read_labels
from nodepiece.errors import InputError


def read_label_file(path: Path) -> Labels:
    """The classes of every node, each once, in the order of the file.

    The ending decides the format: .json holds {node: [class, ...]}, .csv node,class on each line,
    any other file node<TAB>class. All may be gzipped (.gz).
    """
    if not path.is_file():
        raise InputError(f"there is no label file {path}; check the path")
    ending = Path(without_gz(path.name)).suffix.lower()
    if ending == ".json":
        return read_labels(path)
    return _read_lines(path, plain=ending != ".csv")


def _read_lines(path: Path, *, plain: bool) -> Labels:
    """Labels from lines: plain lines are tab-separated, without quoting; others are CSV."""
    labels: dict[str, dict[str, None]] = {}
    try:
        with open_content(path) as binary:
            text = io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")
            rows = (
                csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
                if plain
                else csv.reader(text)
            )
            for row in rows:
                if not row:
                    continue
                if len(row) != 2 or not all(row):
                    raise InputError(
                        f"{path} line {rows.line_num:,}: expected a node and a class separated by "
                        f"a {'tab' if plain else 'comma'}, got {row}"
                    )
                labels.setdefault(row[0], {})[row[1]] = None
    except (UnicodeDecodeError, EOFError, OSError, zlib.error, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}; write it again as UTF-8") from error
    if not labels:
        raise InputError(f"{path} has no labels; write a node and a class on each line")
    return {node: list(classes) for node, classes in labels.items()}
