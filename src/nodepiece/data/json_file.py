"""Objects in JSON files, gzipped or not."""

import gzip
import json
import zlib
from pathlib import Path
from typing import IO, Any, cast

from nodepiece.errors import InputError


def open_content(path: Path) -> IO[bytes]:
    """The bytes of a file, decompressed."""
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file: a key for each node."""
    try:
        with open_content(path) as file:
            content = json.load(file)
    except (ValueError, RecursionError, EOFError, OSError, zlib.error) as error:
        raise InputError(
            f"{path} cannot be read as JSON ({error}); fix it, or fetch it again"
        ) from error
    if not isinstance(content, dict):
        raise InputError(f"{path} must hold an object with a key for each node")
    return content
