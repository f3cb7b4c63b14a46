"""Arrays out of the files that torch.save writes, without running what is pickled in them.

A pickle is a program; it may call whatever it names. Here it may name what arrays of numbers are
made of and nothing else, and every name leads to this file: numpy sees no part of a pickle that was
not checked. Nor can a small file ask for much memory: nothing in it may be compressed, a storage
is read once, and no tensor is larger than its storage.

torch.load can be told to be careful too, but then it knows only the pickle protocol that torch.save
uses by itself (2), and arrays of several gigabytes are written with protocol 4.
"""

import math
import pickle
import struct
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nodepiece.errors import InputError

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C  # opens a file written before torch 1.6
STORAGES: dict[str, np.dtype[Any]] = {
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
}
NUMBERS = frozenset(("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"))


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """A dict of arrays, or of tensors, which are read as arrays; all else in it is refused."""
    try:
        content = _load_zip(path) if zipfile.is_zipfile(path) else _load_legacy(path)
    except Exception as error:  # a damaged pickle may raise anything that a program can
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
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
    with zipfile.ZipFile(path) as archive:
        pickles = [name for name in archive.namelist() if name.endswith("data.pkl")]
        if not pickles:
            raise ValueError("it was not written by torch.save")
        folder = pickles[0].removesuffix("data.pkl")

        def read_storage(key: str) -> bytes:
            return archive.read(_uncompressed(archive, f"{folder}data/{key}"))

        with archive.open(_uncompressed(archive, pickles[0])) as file:
            return ArrayUnpickler(file, read_storage).load()


def _uncompressed(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    entry = archive.getinfo(name)
    if entry.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} in it is compressed, which torch.save does not do")
    return entry


def _load_legacy(path: Path) -> object:
    """Magic number, protocol, system, content: one pickle after the other."""

    def read_storage(key: str) -> bytes:
        raise ValueError("it holds tensors in the layout before torch 1.6; save them again")

    with path.open("rb") as file:
        magic, _, _, content = (ArrayUnpickler(file, read_storage).load() for _ in range(4))
    if magic != LEGACY_MAGIC:
        raise ValueError("it was not written by torch.save")
    return content


class ArrayUnpickler(pickle._Unpickler):
    """Knows the names that pickled arrays and tensors call for, and refuses every other.

    It is the one written in Python: that in C makes room for as many notes as a pickle claims to
    need, gigabytes for a claim of five bytes. Arrays are read in one piece by either.
    """

    read: Callable[[int], bytes]  # both are made by load()
    append: Callable[[object], None]
    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)

    def __init__(self, file: IO[bytes], read_storage: Callable[[str], bytes]) -> None:
        super().__init__(file)
        self.read_storage = read_storage
        self.storages: dict[tuple[str, str], NDArray[Any]] = {}

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in STORAGES:
            return name
        if (module, name) == ("numpy", "ndarray"):
            return name  # named, never called
        if (module, name) in CALLED:
            return partial(CALLED[module, name])  # a new one: a pickle may write to what it names
        raise pickle.UnpicklingError(f"it calls for {module}.{name}, which is no array")

    def load_bytearray8(self) -> None:
        """As bytes: Python would fill a bytearray of the claimed length before it reads."""
        (length,) = struct.unpack("<Q", self.read(8))
        self.append(self.read(length))

    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8

    def persistent_load(self, pid: Any) -> NDArray[Any]:
        """A storage by ("storage", its type, key, device, length)."""
        _, kind, key, _, length = pid
        if (key, kind) not in self.storages:
            content = self.read_storage(str(key))
            self.storages[key, kind] = np.frombuffer(content, STORAGES[kind])
        return self.storages[key, kind][: int(length)]


class PickledType:
    """Stands for numpy's type of an array; the order of its bytes follows as its state."""

    __slots__ = ("dtype",)

    def __init__(self, code: str, *rest: object) -> None:
        if code not in NUMBERS:
            raise pickle.UnpicklingError(f"it holds an array of {code!r}, which are no numbers")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(state[1])


class PickledArray:
    """Stands for an array of numpy, whose content follows as its state."""

    __slots__ = ("array",)

    def __init__(self, *rest: object) -> None:
        self.array: NDArray[Any] = np.empty(0, dtype=np.int8)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, is_fortran, content = state
        self.array = _from_buffer(content, kind, shape, "F" if is_fortran else "C")


def _from_buffer(
    buffer: bytes | bytearray, kind: PickledType, shape: tuple[int, ...], order: str
) -> NDArray[Any]:
    return np.frombuffer(buffer, kind.dtype).reshape(shape, order="F" if order == "F" else "C")


def _latin1(text: str, encoding: str) -> bytes:
    """Protocol 2 has no bytes and writes them as text."""
    return text.encode("latin1")


def _no_bytes() -> bytes:
    """What protocol 2 calls for in place of nothing; of a number it would make so many zeros."""
    return b""


def _strided(
    storage: NDArray[Any],
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    *rest: object,
) -> NDArray[Any]:
    """A tensor; numpy checks that it stays inside of its storage."""
    if math.prod(size) > len(storage):  # a step of 0 makes any size of one number
        raise ValueError(f"a tensor of {size} numbers is larger than its storage")
    item = storage.itemsize
    strides = tuple(item * step for step in stride)
    return np.ndarray(size, storage.dtype, storage.data, item * offset, strides)


CALLED: Mapping[tuple[str, str], Callable[..., Any]] = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): PickledArray for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
    ("numpy", "dtype"): PickledType,
    ("_codecs", "encode"): _latin1,
    ("__builtin__", "bytes"): _no_bytes,
    ("torch._utils", "_rebuild_tensor_v2"): _strided,
    ("collections", "OrderedDict"): dict,
}
