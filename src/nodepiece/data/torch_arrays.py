"""Arrays from files of torch.save, without running the code that is pickled in them.

A pickle is a program that may call any function. `array_pickle.py` runs only the instructions that
arrays of numbers need. A small file cannot allocate much memory either: its entries must not be
compressed, all storages together are no larger than the file, and no tensor is larger than its
storage.

torch.load has a safe mode too, but it reads only pickle protocol 2, the default of torch.save, and
arrays of several gigabytes are written with protocol 4.
"""

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nodepiece.data.array_pickle import ArrayUnpickler, PickledArray
from nodepiece.errors import InputError

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C  # starts a file written before torch 1.6
REASON_LENGTH = 200  # characters of a reason that are shown


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """A dict of arrays; tensors are read as arrays, and any other content is refused."""
    try:
        content = _load_zip(path) if zipfile.is_zipfile(path) else _load_legacy(path)
    except Exception as error:  # a damaged pickle may raise anything that a program can
        reason = (str(error) or type(error).__name__).splitlines()[0][:REASON_LENGTH]
        raise InputError(
            f"{path} cannot be read as plain arrays ({reason}); fetch or write it again"
        ) from error
    if not isinstance(content, dict):
        raise InputError(f"{path} holds a {type(content).__name__}, not a dict of arrays")
    arrays = {}
    for key, value in content.items():
        array = value.array if isinstance(value, PickledArray) else value
        if not isinstance(array, np.ndarray):
            raise InputError(f"{path}: {key!r} is a {type(array).__name__}, not an array")
        arrays[key] = array
    return arrays


def _load_zip(path: Path) -> object:
    file_size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        pickles = [name for name in archive.namelist() if name.endswith("data.pkl")]
        if not pickles:
            raise ValueError("it was not written by torch.save")
        folder = pickles[0].removesuffix("data.pkl")
        num_read = 0

        def read_storage(key: str) -> bytes:
            nonlocal num_read
            entry = _plain_entry(archive, f"{folder}data/{key}", file_size)
            num_read += entry.file_size  # entries may claim the same bytes
            if num_read > file_size:
                raise ValueError("its storages are larger than the file")
            return archive.read(entry)

        entry = _plain_entry(archive, pickles[0], file_size)
        with archive.open(entry) as file:
            return ArrayUnpickler(file, entry.file_size, read_storage).load()


def _plain_entry(archive: zipfile.ZipFile, name: str, file_size: int) -> zipfile.ZipInfo:
    """The entry of a name, if it is not compressed and not larger than the file."""
    entry = archive.getinfo(name)
    if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
        raise ValueError(f"{name} in it is compressed, which torch.save does not do")
    if entry.file_size > file_size:
        raise ValueError(f"{name} in it claims {entry.file_size:,} bytes, more than the file has")
    return entry


def _load_legacy(path: Path) -> object:
    """The content of a file in the old layout: four pickles, the last one with the content."""

    def read_storage(key: str) -> bytes:
        raise ValueError("it holds tensors in the layout before torch 1.6; save them again")

    with path.open("rb") as file:
        magic, _, _, content = (_load_next(file, path, read_storage) for _ in range(4))
    if magic != LEGACY_MAGIC:
        raise ValueError("it was not written by torch.save")
    return content


def _load_next(file: IO[bytes], path: Path, read_storage: Any) -> object:
    return ArrayUnpickler(file, path.stat().st_size - file.tell(), read_storage).load()
