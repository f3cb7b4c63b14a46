"""Files of a known format made wrong from within: still JSON, still an array file, and so on."""

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tests.fuzz.damage import INTEGERS, WORDS, damage, put_in_place

VALUES: tuple[Any, ...] = (
    *INTEGERS,
    *WORDS,
    None,
    True,
    False,
    [],
    {},
    [[]],
    0.5,
    1e308,
    float("nan"),
    float("inf"),
    2**64,
    10**400,
    ["a", 1],
    {"a": None},
)


def damage_json(content: bytes, rng: Random) -> bytes:
    """One value or key of the document replaced, dropped or repeated."""
    document = json.loads(content)
    place, keys = document, list[Any]()
    while isinstance(place, dict | list) and place and (not keys or rng.random() < 0.7):
        parent = place
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        keys.append(key)
        place = place[key]
    if not keys:
        return damage(content, rng)
    match rng.randrange(4):
        case 0:
            del parent[key]
        case 1 if isinstance(parent, dict):
            parent[rng.choice(WORDS)] = parent.pop(key)
        case _:
            parent[key] = rng.choice(VALUES)
    return json.dumps(document).encode()


def damage_toml(content: bytes, rng: Random) -> bytes:
    """One line of the settings replaced, moved or repeated."""
    lines = content.decode().splitlines()
    number = rng.randrange(len(lines))
    key = lines[number].partition("=")[0]
    value = rng.choice(VALUES)
    literal = "inf" if value == float("inf") else json.dumps(value, ensure_ascii=rng.random() < 0.5)
    match rng.randrange(5):
        case 0:
            del lines[number]
        case 1:
            lines.insert(rng.randrange(len(lines)), lines[number])
        case 2:
            lines[number] = f"{rng.choice(WORDS)!r} = {literal}"
        case _:
            lines[number] = f"{key}= {literal}"
    return "\n".join(lines).encode(errors="surrogatepass")


def damage_array(content: bytes, rng: Random) -> bytes:
    """Values, type, shape or header of an array file."""
    array = np.load(io.BytesIO(content))
    if rng.random() < 0.2:
        return _claim(content, rng)
    changes: tuple[Callable[[], NDArray[Any]], ...] = (
        lambda: _with_values(array, rng),
        lambda: _with_values(array, rng),
        lambda: np.full_like(array, _fitting(array.dtype, rng)),
        lambda: array.astype(rng.choice(("<i2", "<i4", "<i8", ">i4", "<f4", "<f8", "<c8", "?"))),
        lambda: array.astype(rng.choice(("U3", "S3"))),
        lambda: array.T.copy(),
        lambda: array.ravel(),
        lambda: array[..., None],
        lambda: array[: rng.randrange(len(array) + 1)] if array.ndim else array,
        lambda: np.concatenate([array, array]),
        lambda: array[::-1],
        lambda: np.asfortranarray(array),
        lambda: np.array(rng.choice(INTEGERS)),
        lambda: np.empty((0,) * rng.randrange(1, 4), array.dtype),
        lambda: np.zeros(3, dtype=[("a", "i4"), ("b", "f8")]),
    )
    buffer = io.BytesIO()
    np.save(buffer, rng.choice(changes)())
    return buffer.getvalue()


def _with_values(array: NDArray[Any], rng: Random) -> NDArray[Any]:
    changed = array.copy()
    for _ in range(rng.choice((1, 1, 3)) if changed.size else 0):
        changed.reshape(-1)[rng.randrange(changed.size)] = _fitting(array.dtype, rng)
    return changed


def _fitting(dtype: np.dtype[Any], rng: Random) -> Any:
    """An extreme value that the type can have."""
    if dtype.kind == "f":
        return rng.choice((np.nan, np.inf, -np.inf, 3e38, -1e-40, 0.0))
    if dtype.kind == "b":
        return rng.random() < 0.5
    return np.array(rng.choice(INTEGERS)).astype(dtype)


def _claim(content: bytes, rng: Random) -> bytes:
    """A header that says something else than is there."""
    length = struct.unpack("<H", content[8:10])[0]
    header = {
        "descr": rng.choice(("<i4", "<i8", "|O", "<f4", "|V0", "<U9999999", "x", [("a", "<i4")])),
        "fortran_order": rng.choice((True, False, 3, None)),
        "shape": rng.choice(
            ((2**40,), (-1, 3), (0, 2**62), (2**31, 2**31), (), (3, "x"), 5, (1.5,))
        ),
    }
    text = f"{header!r}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content[10 + length :]


def damage_safetensors(content: bytes, rng: Random) -> bytes:
    """The header of a file of tensors, or the numbers in it."""
    length = struct.unpack("<Q", content[:8])[0]
    header, body = content[8 : 8 + length], content[8 + length :]
    match rng.randrange(4):
        case 0:
            return content[: 8 + length] + damage(body, rng)
        case 1:
            return struct.pack("<Q", rng.choice(INTEGERS) % 2**64) + header + body
        case 2:
            values = rng.choice((b"\xff", b"\x00", b"\x7f\x7f\x80\xff"))
            return content[: 8 + length] + (values * len(body))[: len(body)]
    header = damage_json(header, rng)
    return struct.pack("<Q", len(header)) + header + body


def damage_arrow(content: bytes, rng: Random) -> bytes:
    """The column of names in an Arrow file."""
    with pa.ipc.open_file(pa.BufferReader(content)) as reader:
        table = reader.read_all()
    values = table.column(0).to_pylist()
    place = rng.randrange(len(values)) if values else 0
    changes: tuple[Callable[[], pa.Array], ...] = (
        lambda: pa.array([*values, "more"], pa.large_string()),
        lambda: pa.array(values[:place], pa.large_string()),
        lambda: pa.array([None if n == place else name for n, name in enumerate(values)]),
        lambda: pa.array([values[0] if n == place else name for n, name in enumerate(values)]),
        lambda: pa.array(values[::-1], pa.large_string()),
        lambda: pa.array(values, pa.string()),
        lambda: pa.array(range(len(values))),
        lambda: pa.array([[name] for name in values]),
        lambda: pa.array(values).dictionary_encode(),
        lambda: pa.nulls(len(values)),
    )
    column = rng.choice(changes)()
    name = rng.choice((table.column_names[0], "other"))
    made = pa.table({name: column, "second": column} if rng.random() < 0.2 else {name: column})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, made.schema) as writer:
        writer.write_table(made)
    return bytes(sink.getvalue())


BY_ENDING: dict[str, Callable[[bytes, Random], bytes]] = {
    ".json": damage_json,
    ".toml": damage_toml,
    ".npy": damage_array,
    ".safetensors": damage_safetensors,
    ".arrow": damage_arrow,
}


def damage_file(path: Path, rng: Random) -> str:
    """Damage a file where it is, as its ending allows; what was done."""
    content = path.read_bytes()
    if rng.random() < 0.04:
        put_in_place(path, rng)
        return f"{path.name}: something else in its place"
    change = BY_ENDING.get(path.suffix, damage) if rng.random() < 0.6 else damage
    path.write_bytes(change(content, rng))
    return f"{path.name}: {change.__name__}"
