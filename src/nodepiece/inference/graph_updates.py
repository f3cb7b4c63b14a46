"""The current graph of a run, after its updates, on disk in the run folder.

RUN/live/base-000003/        all of it after batch 3: a vocabulary folder (tokenizer/storage.py) and
                             facts.npy, present.npy, and vectors.npy, which is mapped into memory
RUN/live/000004.safetensors  a batch: facts, names, and the rows of tokens and vectors it changed
RUN/live/lock                held by the process that writes

Files are written under a temporary name, then renamed, and never changed: a batch is committed by
its rename, or not at all if the process dies before. A process that has opened the graph keeps the
state it opened, and one that opens it gets the latest. At times the batches are compacted into a
new base; a reader that misses a file because of this tries again.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodepiece.errors import InputError
from nodepiece.files import atomic_folder, remove_leftovers, sync
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.inference.graph_update import (
    FORMAT_VERSION,
    StoredBatch,
    Vectors,
    check_version,
    read_batch,
    write_batch,
)
from nodepiece.inference.stored_values import check_base, check_batch
from nodepiece.locks import has_writer, kept, try_lock
from nodepiece.tokenizer.storage import HEADER, load_tokens, write_tokens, write_vocabulary
from nodepiece.tokenizer.tokens import TokenTable

UPDATES_FOLDER = "live"
BATCH_SUFFIX = ".safetensors"
BASE_PREFIX = "base-"
COMPACT_AFTER = 100  # batches, or
COMPACT_SHARE = 4  # when one row in this many has changed
ATTEMPTS = 20


class UpdateUnderWay(InputError):
    """Another process or thread updates the run."""


@dataclass(frozen=True, eq=False)
class StoredState:
    """A base and the batches after it."""

    number: int  # of the last batch
    base_number: int
    facts: IntArray  # (num_facts, 3) of the base
    is_present: NDArray[np.bool_]  # (num_nodes,) of the base
    table: TokenTable  # of the base
    vectors: Vectors  # (num_nodes, dim) of the base, mapped into memory
    batches: tuple[StoredBatch, ...]
    folder_id: tuple[int, int]  # device and inode of the folder that it was read from

    @property
    def needs_compaction(self) -> bool:
        return len(self.batches) >= COMPACT_AFTER or self.has_many_rows

    @property
    def has_many_rows(self) -> bool:
        """Whether the batches have changed a large share of the vectors."""
        num_rows = sum(len(batch.vectors.nodes) for batch in self.batches)
        return num_rows * COMPACT_SHARE > len(self.vectors)


def has_updates(run: Path) -> bool:
    return bool(_bases(run / UPDATES_FOLDER))


def last_number(run: Path) -> int | None:
    """The number of the last batch; None if the graph of the run never changed."""
    bases, batches = _numbers(run / UPDATES_FOLDER)
    return max(bases + batches) if bases else None


def is_latest(run: Path, state: StoredState) -> bool:
    """Whether no process has committed a batch after a state.

    A later base is noticed because the base of the state is removed then. False also where this
    is not enough to decide: `last_number` reads the whole folder.
    """
    folder = run / UPDATES_FOLDER
    try:
        found = folder.stat()
    except OSError:
        return False
    return (
        (found.st_dev, found.st_ino) == state.folder_id
        and _base_folder(folder, state.base_number).exists()
        and not _batch_file(folder, state.number + 1).exists()
    )


def last_base(run: Path) -> int | None:
    """The number of the last base; None if the graph of the run never changed."""
    return max(_bases(run / UPDATES_FOLDER), default=None)


def open_updates(run: Path, model_hash: str) -> StoredState:
    """The latest state of an updated run. `model_hash`: that of the weights it must belong to."""
    folder = run / UPDATES_FOLDER
    for _ in range(ATTEMPTS):
        base_number = max(_bases(folder), default=0)
        try:
            return _open(folder, base_number, model_hash)
        except Exception as error:  # a damaged header may raise anything that a parser can
            if base_number != max(_bases(folder), default=0):
                continue  # it was compacted meanwhile
            if isinstance(error, InputError) and str(folder) in str(error):
                raise
            raise InputError(
                f"{_base_folder(folder, base_number)} is damaged ({error}); restore it, "
                f"or remove {folder}, and the updates with it"
            ) from error
    raise InputError(f"{folder} changes faster than it can be read; try again later")


def write_trained_base(
    run: Path, graph: KnowledgeGraph, table: TokenTable, vectors: Vectors, model_hash: str
) -> None:
    """Write the graph and the vectors of a run as it was trained."""
    is_present = np.ones(graph.num_nodes, np.bool_)
    write_base(run, 0, graph.triples, is_present, table, vectors, model_hash)


def write_base(
    run: Path,
    number: int,
    facts: IntArray,
    is_present: NDArray[np.bool_],
    table: TokenTable,
    vectors: Vectors,
    model_hash: str,
) -> None:
    """Write a new base and remove the files that it replaces.

    Earlier bases are removed before their batches, so a reader that misses a batch also finds its
    base gone, and tries again.
    """
    with atomic_folder(_base_folder(run / UPDATES_FOLDER, number), marker=HEADER) as partial:
        write_vocabulary(table.vocabulary, partial)
        write_tokens(table, partial)
        np.save(partial / "facts.npy", facts)
        np.save(partial / "present.npy", is_present)
        np.save(partial / "vectors.npy", vectors)
        (partial / "live.json").write_text(json.dumps(_header(model_hash)) + "\n")
    for old in _bases(run / UPDATES_FOLDER):
        if old < number:
            rmtree(_base_folder(run / UPDATES_FOLDER, old), ignore_errors=True)
    remove_all_leftovers(run / UPDATES_FOLDER)
    for old in _batches(run / UPDATES_FOLDER):
        if old <= number:
            _batch_file(run / UPDATES_FOLDER, old).unlink(missing_ok=True)


def remove_all_leftovers(folder: Path) -> None:
    """Remove what killed processes left of bases and batches."""
    for name in {path.name[1:].partition(".partial-")[0] for path in folder.glob(".*.partial-*")}:
        remove_leftovers(folder / name)


def commit_batch(run: Path, number: int, batch: StoredBatch, *, cleans: bool = False) -> None:
    """Commit a batch by the rename of its file; cleans: remove what killed processes left."""
    write_batch(_batch_file(run / UPDATES_FOLDER, number), batch, cleans=cleans)


@contextmanager
def write_lock(run: Path) -> Iterator[None]:
    """Hold the lock of a run's live graph; a second writer is refused."""
    folder = run / UPDATES_FOLDER
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        sync(run)
    if (folder / "lock").is_dir():
        raise InputError(f"{folder / 'lock'} is a folder, where a file is expected; remove it")
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    with kept(descriptor):
        if not try_lock(descriptor):
            raise UpdateUnderWay(f"another update of {run} is under way; try again when it is done")
        # Training takes its own lock first and then checks for this one: one of both is refused.
        if has_writer(run):
            raise InputError(
                f"{run} is being trained, and an update might be lost; try again when that is done"
            )
        yield


def _header(model_hash: str) -> dict[str, Any]:
    return {"format_version": FORMAT_VERSION, "model_sha256": model_hash}


def _base_folder(folder: Path, number: int) -> Path:
    return folder / f"{BASE_PREFIX}{number:06}"


def _batch_file(folder: Path, number: int) -> Path:
    return folder / f"{number:06}{BATCH_SUFFIX}"


def _numbers(folder: Path) -> tuple[list[int], list[int]]:
    """The numbers of bases and of batches, ascending; none if there is no such folder."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 (much faster where there are many)
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    bases = (name.removeprefix(BASE_PREFIX) for name in names if name.startswith(BASE_PREFIX))
    batches = (name.removesuffix(BATCH_SUFFIX) for name in names if name.endswith(BATCH_SUFFIX))
    return (
        sorted(int(name) for name in bases if name.isdigit()),
        sorted(int(name) for name in batches if name.isdigit()),
    )


def _bases(folder: Path) -> list[int]:
    return _numbers(folder)[0]


def _batches(folder: Path) -> list[int]:
    return _numbers(folder)[1]


def open_base(run: Path, number: int, model_hash: str) -> StoredState:
    """The state of a base alone, without later batches."""
    return _open_base(run / UPDATES_FOLDER, number, model_hash)


def _open_base(folder: Path, number: int, model_hash: str) -> StoredState:
    base = _base_folder(folder, number)
    header = json.loads((base / "live.json").read_text())
    check_version(base, int(header["format_version"]))
    if header["model_sha256"] != model_hash:
        raise InputError(
            f"{folder} holds the vectors of other weights than the run has now; remove the folder, "
            "and the updates with it, or restore the weights"
        )
    table = load_tokens(base)
    facts = np.load(base / "facts.npy", mmap_mode="r" if table.num_nodes else None)
    is_present = np.load(base / "present.npy")
    vectors = np.load(base / "vectors.npy", mmap_mode="r")
    check_base(facts, is_present, vectors, table)
    found = folder.stat()
    place = found.st_dev, found.st_ino
    return StoredState(number, number, facts, is_present, table, vectors, (), place)


def batches_after(run: Path, state: StoredState) -> list[StoredBatch] | None:
    """The batches that follow a state; None: it must be opened again.

    That is if the folder was removed and written again, or if later batches were compacted.
    """
    folder = run / UPDATES_FOLDER
    try:
        found = folder.stat()
        later = [number for number in _batches(folder) if number > state.number]
        if (found.st_dev, found.st_ino) != state.folder_id:
            return None
        if later != list(range(state.number + 1, state.number + 1 + len(later))):
            return None
        batches = [read_batch(_batch_file(folder, number)) for number in later]
        if max(_bases(folder), default=-1) > state.number + len(later):
            return None
        if max(_bases(folder) + _batches(folder), default=-1) < state.number:
            return None
    except (OSError, InputError):
        return None  # a file is missing because of a compaction, or is damaged: opening says so
    num_nodes = len(state.is_present) + sum(len(b.change.new_nodes) for b in state.batches)
    for batch in batches:
        num_nodes = check_batch(batch, num_nodes, state.vectors.shape[1], state.table)
    return batches


def _open(folder: Path, base_number: int, model_hash: str) -> StoredState:
    base = _open_base(folder, base_number, model_hash)
    last, num_nodes = base_number, base.table.num_nodes
    batches = []
    for number in _batches(folder):
        if number <= base_number:
            continue
        if number != last + 1:
            raise InputError(f"{folder} lacks batch {last + 1}; restore it, or remove later ones")
        path = _batch_file(folder, number)
        batch = read_batch(path)
        try:
            num_nodes = check_batch(batch, num_nodes, base.vectors.shape[1], base.table)
        except InputError as error:
            raise InputError(f"{path} is damaged ({error}); restore it from a copy") from error
        batches.append(batch)
        last = number
    return replace(base, number=last, batches=tuple(batches))
