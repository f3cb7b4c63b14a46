"""A safe unpickler for arrays of numbers: it supports only the operations that they need.

Every name in a pickle is resolved in this file, so NumPy receives only checked values. Sizes are
checked before memory is allocated: the bytes of the pickle, the number of operations, the length
of texts, and integers used as sizes are limited.
"""

import math
import pickle
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

STORAGES: dict[str, np.dtype[Any]] = {
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
}
NUMBERS = frozenset(("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"))
MAX_OPERATIONS = 100_000  # of a pickle; one array takes some 30
MAX_DIMENSIONS = 8
MAX_CHARACTERS = 1_000  # of a key, a name or any other text that is not the content of an array

# Of protocols 2 to 5, without operations that make instances or sets, or read numbers as text.
OPERATIONS = (
    pickle.PROTO,
    pickle.FRAME,
    pickle.MARK,
    pickle.STOP,
    pickle.NONE,
    pickle.NEWTRUE,
    pickle.NEWFALSE,
    pickle.EMPTY_DICT,
    pickle.EMPTY_TUPLE,
    pickle.TUPLE,
    pickle.TUPLE1,
    pickle.TUPLE2,
    pickle.TUPLE3,
    pickle.BININT,
    pickle.BININT1,
    pickle.BININT2,
    pickle.LONG1,
    pickle.BINUNICODE,
    pickle.SHORT_BINUNICODE,
    pickle.BINUNICODE8,
    pickle.BINBYTES,
    pickle.SHORT_BINBYTES,
    pickle.BINBYTES8,
    pickle.BYTEARRAY8,
    pickle.GLOBAL,
    pickle.STACK_GLOBAL,
    pickle.REDUCE,
    pickle.BUILD,
    pickle.SETITEM,
    pickle.SETITEMS,
    pickle.BINPUT,
    pickle.LONG_BINPUT,
    pickle.MEMOIZE,
    pickle.BINGET,
    pickle.LONG_BINGET,
    pickle.BINPERSID,
    pickle.EMPTY_LIST,
    pickle.LIST,
    pickle.APPEND,
    pickle.APPENDS,
    pickle.POP,
)


class Operations(dict[int, Callable[[Any], None]]):
    """Operation byte -> function; other operations are refused."""

    def __missing__(self, byte: int) -> Callable[[Any], None]:
        raise pickle.UnpicklingError(
            f"it has the operation {bytes([byte])!r}, which arrays do not need"
        )


class ArrayUnpickler(pickle._Unpickler):
    """Resolves the names that pickled arrays and tensors use, and refuses all others.

    It extends Python's unpickler written in Python: the one in C allocates a memo as large as a
    pickle claims to need, gigabytes for a claim of five bytes. Both read an array in one piece.
    """

    read: Callable[[int], bytes]  # these four are set by load()
    append: Callable[[object], None]
    stack: list[Any]
    pop_mark: Callable[[], list[Any]]
    dispatch: ClassVar[Operations] = Operations(
        (operation[0], pickle._Unpickler.dispatch[operation[0]]) for operation in OPERATIONS
    )

    def __init__(
        self, file: IO[bytes], num_bytes: int, read_storage: Callable[[str], bytes]
    ) -> None:
        """`num_bytes`: the number of bytes left in `file`."""
        self.bounded = BoundedFile(file, num_bytes)
        super().__init__(self.bounded)
        self.read_storage = read_storage
        self.storages: dict[str, bytes] = {}
        self.num_encoded = 0

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in STORAGES:
            return name
        if (module, name) == ("numpy", "ndarray"):
            return name  # an argument, never called
        if (module, name) == ("_codecs", "encode"):
            return AllowedFunction(self._latin1)
        if (module, name) in CALLED:
            return AllowedFunction(CALLED[module, name])
        raise pickle.UnpicklingError(f"it uses {module}.{name}, which arrays do not need")

    def _latin1(self, text: str, encoding: str) -> bytes:
        """The bytes of a text: protocol 2 has no bytes, and writes each once, as text."""
        if type(text) is not str:
            raise pickle.UnpicklingError("it encodes something that is not text")
        self.num_encoded += len(text)
        if self.num_encoded > self.bounded.num_bytes:
            raise pickle.UnpicklingError("it encodes a text repeatedly")
        return text.encode("latin1")

    def load_frame(self) -> None:
        """Skip the length of a frame; its content is read, and counted, like the rest."""
        self.read(8)

    def load_bytearray8(self) -> None:
        """Read a bytearray as bytes: Python would allocate the claimed length before it reads."""
        (length,) = struct.unpack("<Q", self.read(8))
        self.append(self.read(length))

    def load_reduce(self) -> None:
        arguments, callee = self.stack.pop(), self.stack.pop()
        if type(callee) is not AllowedFunction or type(arguments) is not tuple:
            raise pickle.UnpicklingError("it calls something that is not an allowed function")
        self.append(callee.function(*arguments))

    def load_build(self) -> None:
        state, made = self.stack.pop(), self.stack[-1]
        if type(made) not in (PickledType, PickledArray) or type(state) is not tuple:
            raise pickle.UnpicklingError("it sets the state of something that is not an array")
        made.__setstate__(state)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        _put(self.stack[-1], key, value)

    def load_setitems(self) -> None:
        items = self.pop_mark()
        for key, value in zip(items[::2], items[1::2], strict=True):
            _put(self.stack[-1], key, value)

    dispatch[pickle.FRAME[0]] = load_frame
    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8
    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.BUILD[0]] = load_build
    dispatch[pickle.SETITEM[0]] = load_setitem
    dispatch[pickle.SETITEMS[0]] = load_setitems

    def persistent_load(self, pid: Any) -> NDArray[Any]:
        """The storage of a tensor, given as ("storage", its type, key, device, length)."""
        _, kind, key, _, length = pid
        key, kind = _short_text(key), _short_text(kind)
        if key not in self.storages:
            self.storages[key] = self.read_storage(key)
        (length,) = _sizes((length,))
        return np.frombuffer(self.storages[key], STORAGES[kind])[:length]


class BoundedFile:
    """The bytes of a pickle, with limits on the bytes and on the number of reads."""

    def __init__(self, file: IO[bytes], num_bytes: int) -> None:
        self.file, self.num_bytes = file, num_bytes
        self.num_left, self.num_reads = num_bytes, 0

    def read(self, size: int) -> bytes:
        if size > self.num_left:  # a buffer of that size would be allocated first
            raise EOFError(f"it claims {size:,} bytes and {self.num_left:,} are left")
        self._count()
        content = self.file.read(size)
        self.num_left -= len(content)
        return content

    def readline(self) -> bytes:
        self._count()
        line = self.file.readline(MAX_CHARACTERS)
        self.num_left -= len(line)
        return line

    def _count(self) -> None:
        self.num_reads += 1
        if self.num_reads > MAX_OPERATIONS:
            raise pickle.UnpicklingError(f"it has more than {MAX_OPERATIONS:,} operations")


@dataclass(frozen=True)
class AllowedFunction:
    """A function that a pickle may call; it can call nothing else."""

    function: Callable[..., Any]


class PickledType:
    """The dtype of a pickled array; its byte order follows as its state."""

    __slots__ = ("dtype",)

    def __init__(self, code: str, *rest: object) -> None:
        if _short_text(code) not in NUMBERS:
            raise pickle.UnpicklingError(f"it holds an array of {code!r}, which are not numbers")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] not in ("<", ">", "|", "="):
            raise pickle.UnpicklingError("it holds an array of an unknown byte order")
        self.dtype = self.dtype.newbyteorder(state[1])


class PickledArray:
    """A pickled NumPy array; its content follows as its state."""

    __slots__ = ("array",)

    def __init__(self, *rest: object) -> None:
        self.array: NDArray[Any] = np.empty(0, dtype=np.int8)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, is_fortran, content = state
        self.array = _from_buffer(content, kind, shape, "F" if is_fortran is True else "C")


def _from_buffer(
    buffer: bytes, kind: PickledType, shape: tuple[int, ...], order: str
) -> NDArray[Any]:
    """An array that shares the memory of the bytes."""
    if type(buffer) is not bytes or type(kind) is not PickledType:
        raise pickle.UnpicklingError("it holds an array whose content is not bytes")
    return np.frombuffer(buffer, kind.dtype).reshape(
        _sizes(shape), order="F" if order == "F" else "C"
    )


def _strided(
    storage: NDArray[Any],
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    *rest: object,
) -> NDArray[Any]:
    """A tensor as an array; NumPy checks that it stays within its storage."""
    if type(storage) is not np.ndarray:
        raise pickle.UnpicklingError("it holds a tensor without a storage")
    size, stride, (offset,) = _sizes(size), _sizes(stride), _sizes((offset,))
    if math.prod(size) > len(storage):  # with a stride of 0, one number would have any size
        raise ValueError(f"a tensor of {size} numbers is larger than its storage")
    item = storage.itemsize
    strides = tuple(item * step for step in stride)
    return np.ndarray(size, storage.dtype, storage.data, item * offset, strides)


def _sizes(values: object) -> tuple[int, ...]:
    """The values, if they are valid sizes, strides or offsets.

    The types are checked because a text times an integer could be gigabytes long.
    """
    if type(values) is not tuple or len(values) > MAX_DIMENSIONS:
        raise pickle.UnpicklingError("it holds an array whose shape is not a short list of sizes")
    if any(type(value) is not int or not 0 <= value < 2**60 for value in values):
        raise pickle.UnpicklingError("it holds an array whose sizes are not integers of 0 or more")
    return values


def _short_text(value: object) -> str:
    """The value, if it is a short text: hashing or printing anything else could take very long."""
    if type(value) is not str or len(value) > MAX_CHARACTERS:
        raise pickle.UnpicklingError(
            f"it has a name that is a {type(value).__name__}, or too long, and not a short text"
        )
    return value


def _put(target: object, key: object, value: object) -> None:
    if type(target) is not dict:
        raise pickle.UnpicklingError("it sets items of something that is not a dict")
    target[_short_text(key)] = value


def _no_bytes() -> bytes:
    """`bytes()` as protocol 2 uses it: without the argument that would allocate zeros."""
    return b""


def _no_items() -> dict[str, Any]:
    """`OrderedDict()` as tensors use it for their hooks: empty."""
    return {}


CALLED: Mapping[tuple[str, str], Callable[..., Any]] = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): PickledArray for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
    ("numpy", "dtype"): PickledType,
    ("__builtin__", "bytes"): _no_bytes,
    ("torch._utils", "_rebuild_tensor_v2"): _strided,
    ("collections", "OrderedDict"): _no_items,
}
