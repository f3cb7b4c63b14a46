"""Array files cut into parts, and mapped into memory as one array.

The parts NAME.npy.00000, NAME.npy.00001, ... hold the bytes of NAME.npy one after the other: `cat`
joins them, `split` makes them. Each but the last has the same size, a multiple of `PART_UNIT`, so
that they are mapped to consecutive addresses. The result is an ordinary array, of which only the
pages in use are read; a part may be a symbolic link to a file on another disk.
"""

import ctypes
import mmap
import os
import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import finalize

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from nodepiece.errors import InputError

PART_UNIT = 1 << 16  # bytes: a multiple of the pages of all usual systems
HEADER_BYTES = 1 << 14  # more than an array file's header has
MAP_FIXED, NO_ACCESS = 0x10, 0
FAILED = ctypes.c_void_p(-1).value


def part_path(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number:05}")


def part_paths(path: Path) -> list[Path]:
    """The parts of an array file in order; none where it is one file or missing."""
    if path.exists() or not part_path(path, 0).exists():
        return []
    pattern = re.compile(rf"{re.escape(path.name)}\.\d{{5}}")
    found = sorted(each for each in path.parent.iterdir() if pattern.fullmatch(each.name))
    for number, each in enumerate(found):
        if each.name != part_path(path, number).name:
            raise ValueError(f"its part {part_path(path, number).name} is missing")
    return found


def checked_part_bytes(part_bytes: int) -> int:
    """The size of parts, rounded down to whole units."""
    if part_bytes < PART_UNIT:
        raise InputError(
            f"parts of files have at least {PART_UNIT:,} bytes, got {part_bytes:,}; choose more"
        )
    return part_bytes // PART_UNIT * PART_UNIT


class PartWriter:
    """A file to write to, whose bytes go to parts of `part_bytes` each."""

    def __init__(self, path: Path, part_bytes: int) -> None:
        self.path, self.part_bytes = path, checked_part_bytes(part_bytes)
        self.number, self.free = 0, self.part_bytes
        self.file = part_path(path, 0).open("wb")

    def write(self, data: Any) -> None:
        rest = memoryview(data).cast("B")
        while len(rest):
            if not self.free:
                self.file.close()
                self.number, self.free = self.number + 1, self.part_bytes
                self.file = part_path(self.path, self.number).open("wb")
            now = rest[: self.free]
            self.file.write(now)
            self.free -= len(now)
            rest = rest[len(now) :]

    def __enter__(self) -> "PartWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.file.close()


def load_parts(paths: Sequence[Path], *, writable: bool = False) -> NDArray[Any]:
    """The array whose file was cut into these parts, mapped; ValueError where bytes are missing."""
    with paths[0].open("rb") as file:
        start = BytesIO(file.read(HEADER_BYTES))
    version = npy_format.read_magic(start)
    if version != (1, 0):
        raise ValueError(f"version {version} of array files is not known")
    shape, is_fortran, dtype = npy_format.read_array_header_1_0(start)
    if is_fortran or dtype.hasobject:
        raise ValueError("it is not a plain array")
    num_bytes = start.tell() + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    sizes = [path.stat().st_size for path in paths]
    if sum(sizes) != num_bytes:
        raise ValueError(f"its parts have {sum(sizes):,} bytes instead of {num_bytes:,}")
    if any(size % PART_UNIT for size in sizes[:-1]):
        raise ValueError(f"a part before the last has no multiple of {PART_UNIT:,} bytes")
    mapped = np.asarray(Mapping(paths, sizes, writable=writable))
    array: NDArray[Any] = mapped[start.tell() :].view(dtype).reshape(shape)
    return array


class Mapping:
    """Files at consecutive addresses, as bytes of an array; released with its last view."""

    def __init__(self, paths: Sequence[Path], sizes: Sequence[int], *, writable: bool) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        library.mmap.restype = ctypes.c_void_p
        library.mmap.argtypes = [
            *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
            ctypes.c_long,
        ]
        library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        reserved = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        start = library.mmap(None, sum(sizes), NO_ACCESS, reserved, -1, 0)
        if start == FAILED:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        finalize(self, library.munmap, start, sum(sizes)).atexit = False  # threads may read it
        access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        place = start
        for path, size in zip(paths, sizes, strict=True):
            descriptor = os.open(path, os.O_RDWR if writable else os.O_RDONLY)
            try:
                kind = mmap.MAP_SHARED | MAP_FIXED
                if library.mmap(place, size, access, kind, descriptor, 0) == FAILED:
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number), str(path))
            finally:
                os.close(descriptor)
            place += size
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (sum(sizes),),
            "data": (start, not writable),
        }
