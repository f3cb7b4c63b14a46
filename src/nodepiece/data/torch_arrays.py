"""Arrays out of the files that torch.save writes, without running what is pickled in them.

A pickle is a program; it may call whatever it names. Here it may name what arrays of numbers are
made of and nothing else, and every name leads to a function of this file. torch.load can be told to
be as careful, but then it knows only the pickle protocol that torch.save uses by itself (2), and
arrays of several gigabytes are written with protocol 4.
"""

import pickle
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from nodepiece.errors import InputError

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C  # opens a file written before torch 1.6
STORAGES = {"LongStorage": np.dtype("<i8"), "IntStorage": np.dtype("<i4")}
DAMAGE = (
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    struct.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    TypeError,
    ValueError,
)


def load_arrays(path: Path) -> dict[str, Any]:
    """A dict of arrays, or of tensors, which are read as arrays; all else in it is refused."""
    try:
        content = _load_zip(path) if zipfile.is_zipfile(path) else _load_legacy(path)
    except DAMAGE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path} cannot be read as plain arrays ({reason}); fetch or write it again"
        ) from error
    if not isinstance(content, dict):
        raise InputError(f"{path} holds a {type(content).__name__}, not a dict of arrays")
    return content


def _load_zip(path: Path) -> object:
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        folder = name.removesuffix("data.pkl")

        def open_storage(key: str) -> bytes:
            return archive.read(f"{folder}data/{key}")

        with archive.open(name) as file:
            return ArrayUnpickler(file, open_storage).load()


def _load_legacy(path: Path) -> object:
    """Magic number, protocol, system, content: one pickle after the other."""

    def open_storage(key: str) -> bytes:
        raise ValueError("it holds tensors in the layout before torch 1.6; save them again")

    with path.open("rb") as file:
        magic, _, _, content = (ArrayUnpickler(file, open_storage).load() for _ in range(4))
    if magic != LEGACY_MAGIC:
        raise ValueError("it was not written by torch.save")
    return content


class ArrayUnpickler(pickle.Unpickler):
    """Knows the names that pickled arrays and tensors call for, and refuses every other."""

    def __init__(self, file: IO[bytes], open_storage: Callable[[str], bytes]) -> None:
        super().__init__(file)
        self.open_storage = open_storage

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        if (module, name) in KNOWN_NAMES:
            return KNOWN_NAMES[module, name]
        raise pickle.UnpicklingError(f"it calls for {module}.{name}, which is no array")

    def persistent_load(self, pid: Any) -> NDArray[Any]:
        """A storage by ("storage", its type, key, device, length)."""
        _, dtype, key, _, length = pid
        return np.frombuffer(self.open_storage(str(key)), dtype, count=int(length))


def _empty_array(kind: str, shape: tuple[int, ...], code: bytes) -> NDArray[Any]:
    """What numpy's own function of this role returns; the content follows as its state."""
    return np.empty(0, dtype=np.int8)


def _from_buffer(
    buffer: bytes | bytearray, dtype: np.dtype[Any], shape: tuple[int, ...], order: str
) -> NDArray[Any]:
    return np.frombuffer(buffer, dtype).reshape(shape, order="F" if order == "F" else "C")


def _latin1(text: str, encoding: str) -> bytes:
    """Protocol 2 has no bytes and writes them as text."""
    return text.encode("latin1")


def _strided(
    storage: NDArray[Any],
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    *rest: object,
) -> NDArray[Any]:
    """A tensor; numpy checks that it stays inside of its storage."""
    item = storage.itemsize
    strides = tuple(item * step for step in stride)
    return np.ndarray(size, storage.dtype, cast(Any, storage), item * offset, strides)


KNOWN_NAMES: Mapping[tuple[str, str], Any] = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _empty_array for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
    ("numpy", "ndarray"): "ndarray",  # named, never called
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _latin1,
    ("torch._utils", "_rebuild_tensor_v2"): _strided,
    ("collections", "OrderedDict"): dict,
}
