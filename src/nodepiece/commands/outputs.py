"""Check an output folder before the work begins, not after it."""

import os
from pathlib import Path

from nodepiece.errors import InputError
from nodepiece.files import is_replaceable


def check_output(output: Path, *, marker: str, kind: str) -> None:
    """Refuse an output that cannot be written, or that exists and is of another kind.

    Only a folder that holds the file `marker`, or an empty one, may be replaced.
    """
    if output.exists() and not is_replaceable(output, marker):
        raise InputError(
            f"{output} exists and is not a {kind} (it has no {marker}); choose another output, "
            "or remove it yourself"
        )
    parent = next(folder for folder in output.absolute().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"{output} cannot be created in {parent}; choose another output")
