"""Programs for the reader of .pt files: from nearly right to hostile."""

import io
import struct
import zipfile
from random import Random

import numpy as np
import torch
from tests.fuzz.damage import INTEGERS, WORDS, damage

GLOBALS = (
    "torch LongStorage",
    "torch IntStorage",
    "torch._utils _rebuild_tensor_v2",
    "numpy dtype",
    "numpy ndarray",
    "numpy.core.multiarray _reconstruct",
    "numpy._core.numeric _frombuffer",
    "_codecs encode",
    "__builtin__ bytes",
    "collections OrderedDict",
    "os system",
    "builtins eval",
)


def pt_file(rng: Random) -> bytes:
    """A file that claims to hold the columns of facts."""
    whole = io.BytesIO()
    columns = [np.array([0, 2]), np.array([0, 1]), np.array([1, 0])]
    if rng.random() < 0.3:
        columns[rng.randrange(3)] = np.array([rng.choice(INTEGERS)] * rng.randrange(4))
    content = dict(zip(("head", "relation", "tail"), columns, strict=True))
    torch.save(
        content
        if rng.random() < 0.7
        else {key: torch.tensor(each) for key, each in content.items()},
        whole,
        pickle_protocol=rng.choice((2, 3, 4, 5)),
        _use_new_zipfile_serialization=rng.random() < 0.6,
    )
    match rng.randrange(3):
        case 0:
            return damage(whole.getvalue(), rng)
        case 1:
            return rezipped(whole.getvalue(), rng)
    return zipped(program(rng), rng)


def rezipped(content: bytes, rng: Random) -> bytes:
    """The same archive with its pickle damaged, but otherwise whole."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return damage(content, rng)
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for entry in old.infolist():
            part = old.read(entry)
            new.writestr(entry.filename, damage(part, rng) if "data" in entry.filename else part)
    return made.getvalue()


def zipped(pickle: bytes, rng: Random) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", rng.choice((0, 0, 0, zipfile.ZIP_DEFLATED))) as archive:
        archive.writestr("x/data.pkl", pickle)
        archive.writestr("x/data/0", bytes(rng.choice((0, 8, 16, 100_000))))
    return made.getvalue()


def program(rng: Random) -> bytes:
    """Operations at random, most of them on a stack that fits."""
    return b"\x80\x02" + b"".join(operation(rng) for _ in range(rng.choice((3, 10, 40)))) + b"."


def operation(rng: Random) -> bytes:
    note = bytes([rng.randrange(4)])
    word = rng.choice(("0", "i8", "<", "head", "latin1", "storage", *WORDS)).encode()
    module, name = rng.choice(GLOBALS).split()
    number = rng.choice(INTEGERS)
    return rng.choice(
        (
            b"(",
            b")",
            b"}",
            b"]",
            b"\x8f",
            b"N",
            b"\x88",
            b"K" + note,
            b"J" + struct.pack("<i", max(-(2**31), min(number, 2**31 - 1))),
            b"\x8a\x09" + number.to_bytes(9, "little", signed=True),
            b"\x8b" + struct.pack("<i", max(-(2**31), min(number, 2**31 - 1))),
            b"G" + struct.pack(">d", rng.choice((0.5, 1e300, float("nan")))),
            b"X" + struct.pack("<I", len(word)) + word,
            b"X" + struct.pack("<I", number % 2**32),
            b"\x8e" + struct.pack("<Q", number % 2**64),
            b"C\x08" + bytes(8),
            f"c{module}\n{name}\n".encode(),
            b"q" + note,
            b"h" + note,
            b"h" + note + b"h" + note + b"\x86q" + note,  # twice as large each time
            b"t",
            b"\x85",
            b"\x86",
            b"\x87",
            b"R",
            b"b",
            b"s",
            b"u",
            b"e",
            b"a",
            b"l",
            b"d",
            b"Q",
            b"0",
            b"2",
            b"\x81",
            b"\x90",
            b"\x91",
            b"\x93",
            b"\x94",
            b"\x95" + struct.pack("<Q", number % 2**64),
            rng.randbytes(1),
        )
    )
