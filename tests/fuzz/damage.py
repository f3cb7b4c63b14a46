"""Bytes, numbers and texts made wrong, whatever the format."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

NUMBERS = (
    b"-1",
    b"0",
    b"1",
    b"255",
    b"2147483647",
    b"2147483648",
    b"-2147483649",
    b"4294967296",
    b"9223372036854775807",
    b"18446744073709551616",
    b"1" + b"0" * 400,
    b"1e308",
    b"-1e-320",
    b"nan",
    b"inf",
    b"0.5",
    b"0x10",
    b"",
    b"true",
    b"null",
    b'"1"',
    b"[]",
)
WORDS = (
    "",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\0",
    '"',
    "'",
    "\\",
    "#",
    "[red]",
    "..",
    "../../x",
    "/",
    "-",
    "--",
    "é",
    "e\u0301",
    "\u202e",
    "\ufeff",
    "\U0001f600",
    "x" * 5000,
    "None",
    "nan",
    "[PAD]",
    "inverse of ",
)
INTEGERS = (-(2**63), -(2**31), -2_000_000_000, -2, -1, 0, 1, 7, 2**15, 2**31 - 1, 2**62, 2**63 - 1)


def flip_bits(content: bytes, rng: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 8, 64)) if changed else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut_off(content: bytes, rng: Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def cut_out(content: bytes, rng: Random) -> bytes:
    start, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:start] + content[end:]


def repeat(content: bytes, rng: Random) -> bytes:
    start, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:end] + content[start:end] * rng.choice((1, 2, 20)) + content[end:]


def overwrite(content: bytes, rng: Random) -> bytes:
    length = rng.choice((1, 2, 4, 8))
    value = (rng.choice(INTEGERS) % 256**length).to_bytes(length, rng.choice(("little", "big")))
    start = rng.randrange(len(content) + 1)
    return content[:start] + value + content[start + length :]


def append(content: bytes, rng: Random) -> bytes:
    return content + rng.randbytes(rng.choice((1, 10, 1000)))


def put_word(content: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(content) + 1)
    return content[:start] + rng.choice(WORDS).encode() + content[start:]


def put_bytes(content: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(content) + 1)
    return content[:start] + rng.randbytes(rng.choice((1, 3, 50))) + content[start:]


def replace_number(content: bytes, rng: Random) -> bytes:
    """A number of a text, or of the header of a binary file."""
    places = list(re.finditer(rb"-?\d+(\.\d+)?", content))
    if not places:
        return put_word(content, rng)
    place = rng.choice(places)
    return content[: place.start()] + rng.choice(NUMBERS) + content[place.end() :]


def anything(content: bytes, rng: Random) -> bytes:
    """Something else altogether."""
    others: tuple[Callable[[], bytes], ...] = (
        lambda: b"",
        lambda: rng.randbytes(rng.choice((1, 8, 200, 4096))),
        lambda: bytes(rng.choice((1, 64, 4096))),
        lambda: content.decode("latin1").encode("utf-16"),
        lambda: gzip.compress(content),
        lambda: gzip.compress(content)[:-5],
        lambda: content[::-1],
        lambda: b"[" * 100_000,
        lambda: b'{"a":' * 100_000,
        lambda: b"PK\x03\x04" + content,
        lambda: b"\x1f\x8b" + content,
        lambda: content.replace(b"\n", b"\r"),
        lambda: content.replace(b"\n", b""),
    )
    return rng.choice(others)()


DAMAGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    flip_bits,
    flip_bits,
    cut_off,
    cut_out,
    repeat,
    overwrite,
    append,
    put_word,
    put_bytes,
    replace_number,
    replace_number,
    anything,
)


def damage(content: bytes, rng: Random) -> bytes:
    """The content with one to three things wrong."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        content = rng.choice(DAMAGES)(content, rng)
    return content


def put_in_place(path: Path, rng: Random) -> None:
    """Something that is no file, or no file, in the place of a file."""
    path.unlink()
    kind = rng.randrange(4)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        path.symlink_to(path)
    elif kind == 2:
        path.symlink_to(path.with_name("nowhere"))
