"""Files of some hundred bytes that would take gigabytes or forever if they were believed."""

import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from copy import copy
from pathlib import Path

import pytest

from nodepiece.data.array_pickle import MAX_OPERATIONS
from nodepiece.data.torch_arrays import load_arrays
from nodepiece.errors import InputError

STORAGE = (
    b"(X\x07\x00\x00\x00storagectorch\nLongStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQ"
)
NUMBER = b"J" + (2**30).to_bytes(4, "little")


def nested(depth: int) -> bytes:
    """A tuple of one tuple twice, `depth` times: hashing or writing it takes 2**depth steps."""
    return b")" + b"".join(b"q%c0h%ch%c\x86" % (note, note, note) for note in range(depth))


def text(content: bytes) -> bytes:
    return b"X" + struct.pack("<I", len(content)) + content


def call(name: str, arguments: bytes) -> bytes:
    module, function = name.rsplit(".", 1)
    return f"c{module}\n{function}\n".encode() + b"(" + arguments + b"tR"


def tensor(size: bytes, *, offset: bytes = b"K\x00", stride: bytes = b"K\x01\x85") -> bytes:
    return call("torch._utils._rebuild_tensor_v2", STORAGE + offset + size + stride)


def head(value: bytes) -> bytes:
    return b"}" + text(b"head") + value + b"s."


HOSTILE: dict[str, Callable[[], bytes]] = {
    "a text among sizes": lambda: head(tensor(NUMBER + text(b"abc") + b"\x86")),
    "a list among sizes": lambda: head(tensor(NUMBER + b"(NNN" + b"l\x86")),
    "a text for a stride": lambda: head(
        tensor(b"K\x01\x85", stride=text(b"x" * 200) + b"\x85", offset=NUMBER)
    ),
    "a negative size": lambda: head(tensor(b"J\xff\xff\xff\xff\x85")),
    "a fraction for a size": lambda: head(tensor(b"G" + struct.pack(">d", 1e300) + b"\x85")),
    "many long integers for sizes": lambda: head(
        tensor(b"(" + (b"\x8a\xff" + b"\x7f" * 255) * 200 + b"t")
    ),
    "nested tuples for a key": lambda: b"}" + nested(60) + b"Ns.",
    "nested tuples in a set": lambda: b"\x8f(" + nested(60) + b"\x90.",
    "nested tuples for a storage": lambda: b"(Nctorch\nLongStorage\n" + nested(60) + b"NK\x01tQ.",
    "nested tuples for a type": lambda: call("numpy.dtype", nested(60)) + b".",
    "nested tuples for items of a dict": lambda: (
        call("collections.OrderedDict", b"(" + nested(60) + b"N\x86l") + b"."
    ),
    "nested tuples that are called": lambda: nested(60) + b")R.",
    "many operations": lambda: b"]" * (MAX_OPERATIONS + 1) + b".",
    "a text encoded many times": lambda: (
        text(bytes(100_000))
        + b"q\x00c_codecs\nencode\nq\x010"
        + b"h\x01h\x00N\x86R" * 10_000
        + b"."
    ),
    "a dict copied many times": lambda: (
        b"}q\x00("
        + b"".join(text(b"%d" % i) + b"N" for i in range(1000))
        + b"u0ccollections\nOrderedDict\nq\x01"
        + b"h\x01h\x00\x85R" * 10_000
        + b"."
    ),
    "a text of a claimed length": lambda: b"X\xff\xff\xff\xff.",
    "bytes of a claimed length": lambda: b"\x8e" + struct.pack("<Q", 2**33) + b".",
    "an integer of a claimed length": lambda: b"\x8b\xff\xff\xff\x7f.",
    "zeros of a claimed number": lambda: call("__builtin__.bytes", NUMBER) + b".",
}


def write(path: Path, program: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02" + program)
        archive.writestr("x/data/0", bytes(8))
    return path


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_pickle_is_refused_in_no_time_and_no_memory(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / "x.pt", HOSTILE[kind]())
    tracemalloc.start()
    with pytest.raises(InputError, match="cannot be read as plain arrays") as refused:
        load_arrays(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**25
    assert len(str(refused.value)) < 500


def test_entries_that_share_their_bytes_are_not_read_more_often_than_the_file_is_long(
    tmp_path: Path,
) -> None:
    storages = b"".join(
        b"(" + text(b"storage") + b"ctorch\nLongStorage\n" + text(b"%d" % i) + b"NK\x01tQ0"
        for i in range(50)
    )
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02" + storages + b"}.")
        archive.writestr("x/data/0", bytes(100_000))
        for i in range(1, 50):
            twin = copy(archive.getinfo("x/data/0"))
            twin.filename = f"x/data/{i}"
            archive.filelist.append(twin)
    with pytest.raises(InputError, match="cannot be read as plain arrays"):
        load_arrays(path)
