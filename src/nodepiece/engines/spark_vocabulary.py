"""The vocabulary folder of a tokenization on Spark, written by the driver chunk by chunk."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from nodepiece.engines.token_chunks import DTYPES, PARTS, TokenPlan
from nodepiece.engines.work_folder import WorkFolder
from nodepiece.files import atomic_folder
from nodepiece.tokenizer.array_file import save_array, write_header
from nodepiece.tokenizer.array_parts import PartWriter, load_parts, part_path
from nodepiece.tokenizer.storage import HEADER, write_vocabulary
from nodepiece.tokenizer.vocabulary import Vocabulary


def write_folder(
    work: WorkFolder,
    plan: TokenPlan,
    vocabulary: Vocabulary,
    output: Path,
    part_bytes: int | None = None,
) -> None:
    """The files of `tokenizer.storage`, through memory maps: the table is never in memory."""
    with atomic_folder(output, marker=HEADER) as partial:
        write_vocabulary(vocabulary, partial, in_parts=part_bytes is not None)
        folder = partial / "tokens"
        folder.mkdir()
        write_arrays(work, plan, folder, part_bytes)
        np.save(folder / "salts.npy", [plan.salts.relations, plan.salts.anchors])


def write_arrays(work: WorkFolder, plan: TokenPlan, folder: Path, part_bytes: int | None) -> None:
    blocks, settings = plan.search.blocks, plan.settings
    sizes = chunk_values(work)
    starts = np.concatenate([[0], np.cumsum([sizes[chunk] for chunk in range(blocks.num_chunks)])])
    k, m = settings.anchors_per_node, settings.relations_per_node
    files = [
        new_array(folder / f"{name}.npy", (blocks.num_nodes, width), dtype, part_bytes)
        for name, width, dtype in zip(PARTS, (k, k, m), DTYPES, strict=False)
    ]
    offsets, values = (
        new_array(folder / f"relation_sets_{name}.npy", (size,), dtype, part_bytes)
        for name, size, dtype in (
            ("offsets", blocks.num_nodes + 1, np.int64),
            ("values", int(starts[-1]), np.int32),
        )
    )
    offsets[0] = 0
    for row in work.read("tokens").toLocalIterator(prefetchPartitions=True):
        nodes, start = blocks.chunk_nodes(row.chunk), int(starts[row.chunk])
        part = slice(nodes.start, nodes.stop)
        for file, name, dtype in zip(files, PARTS, DTYPES, strict=False):
            file[part] = np.frombuffer(bytes(row[name]), dtype).reshape(len(nodes), -1)
        counts = np.frombuffer(bytes(row.set_counts), np.int32)
        offsets[nodes.start + 1 : nodes.stop + 1] = start + np.cumsum(counts, dtype=np.int64)
        values[start : int(starts[row.chunk + 1])] = np.frombuffer(bytes(row.set_values), np.int32)
    for file in (*files, offsets, values):
        if isinstance(file, np.memmap):
            file.flush()


def chunk_values(work: WorkFolder) -> dict[int, int]:
    """The number of values in the sets of relations of each chunk."""
    lengths = work.read("tokens").selectExpr("chunk", "length(set_values) as size")
    return {row.chunk: row["size"] // 4 for row in lengths.collect()}


def new_array(
    path: Path, shape: tuple[int, ...], dtype: Any, part_bytes: int | None
) -> NDArray[Any]:
    """An array in a new file or in parts of it, mapped; one without elements cannot be mapped.

    Its space is reserved: a full disk is an error here, and would end the process later.
    """
    if 0 in shape:
        save_array(path, np.empty(shape, dtype), part_bytes)
        return np.empty(shape, dtype)
    if part_bytes is not None:
        return load_parts(new_parts(path, shape, dtype, part_bytes), writable=True)
    array = open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    reserve(path, path.stat().st_size)
    return array


def new_parts(path: Path, shape: tuple[int, ...], dtype: Any, part_bytes: int) -> list[Path]:
    """The parts of a new array, with its header and zeros."""
    with PartWriter(path, part_bytes) as file:
        write_header(file, shape, dtype)
    num_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    rest, paths = part_path(path, 0).stat().st_size + num_bytes, list[Path]()
    while rest:
        paths.append(part_path(path, len(paths)))
        paths[-1].touch()
        reserve(paths[-1], min(rest, part_bytes))
        rest -= min(rest, part_bytes)
    return paths


def reserve(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, size)
