"""An index of node vectors, for the nearest neighbours of all nodes of a large graph.

RUN/index/KEY.usearch, with a checksum beside it, holds the vectors of one base state; KEY names the
weights and the base, whose vectors never change. Rows that were changed since, by updates or
assumed facts, are not in it: they are compared exactly, and their outdated entries are left out. So
an update makes no index invalid; a new base, into which updates are compacted, gets a new one at
its next use.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.errors import MissingExtra
from nodepiece.evaluation.ranking import Progress
from nodepiece.evaluation.top_scores import TopScores, top_scores
from nodepiece.files import atomic_file
from nodepiece.graph.arrays import LongArray

log = logging.getLogger("nodepiece")

FOLDER, SUFFIX = "index", ".usearch"
LINKS, BUILD, SEARCH = 16, 128, 64  # of a node; candidates while building, while searching
ROWS_AT_ONCE = 1 << 14
FIRST_ROWS = 1_000  # by one thread: several would leave some of the first without links to them
ANSWERS = "answers-"  # at the start of the keys of indices of approximate answers
SPARE = 4  # more neighbours are searched for than wanted, as some are outdated or the node itself


@dataclass(frozen=True)
class IndexPlace:
    """Where the index of some vectors is stored."""

    folder: Path  # of the run
    key: str  # names the vectors

    @property
    def path(self) -> Path:
        return self.folder / FOLDER / f"{self.key}{SUFFIX}"

    def is_same_kind(self, key: str) -> bool:
        """Whether another key names an index for the same purpose."""
        return key.startswith(ANSWERS) == self.key.startswith(ANSWERS)

    def for_answers(self) -> "IndexPlace":
        """The place of the index of approximate answers of the same vectors."""
        return IndexPlace(self.folder, ANSWERS + self.key)

    @property
    def checksum(self) -> Path:
        """A file with the SHA-256 of the index, written after it."""
        return self.path.with_suffix(".sha256")

    def is_whole(self) -> bool:
        """Whether the index is there, as it was written: a damaged one is not to be read."""
        try:
            return self.checksum.read_text(encoding="utf-8") == _hash(self.path)
        except (OSError, UnicodeDecodeError):
            return False


@dataclass(frozen=True)
class VectorIndexSettings:
    """What is compared in an index, and how it is stored."""

    metric: str = "cos"
    dtype: str = "f32"
    more_dims: int = 0  # than the vectors have


class NeighbourIndex:
    """Approximate nearest neighbours of vectors (HNSW; Malkov and Yashunin, 2018).

    By cosine, or by another metric and of vectors that `stored` makes of the given ones.
    """

    def __init__(
        self,
        vectors: Tensor,
        place: IndexPlace | None,
        settings: VectorIndexSettings | None = None,
        stored: Callable[[Tensor], NDArray[np.float32]] | None = None,
    ) -> None:
        self.vectors, self.place = vectors, place
        self.stored = stored or (lambda part: part.cpu().numpy())
        self.index = _new_index(vectors.shape[1], settings or VectorIndexSettings())

    def prepare(self, progress: Progress | None = None) -> None:
        """Load the index, or build it, and store it if it has a place."""
        if self.place is not None and self.place.is_whole():
            self.index.view(str(self.place.path))  # which several processes share
            return
        starts = [0, *range(FIRST_ROWS, len(self.vectors), ROWS_AT_ONCE)]
        for start, end in pairwise([*starts, len(self.vectors)]):
            part = self.stored(self.vectors[start:end])
            threads = 1 if start == 0 else 0  # 0: as many as there are cores
            self.index.add(np.arange(start, end), part, threads=threads)
            if progress is not None:
                progress(end, len(self.vectors))
        if self.place is not None:
            try:
                _store(self.index, self.place)
            except OSError as error:
                log.warning(
                    "%s was not stored (%s) and will be built again", self.place.path, error
                )

    def search(self, queries: Tensor, top: int) -> tuple[LongArray, NDArray[np.float32]]:
        """Rows and cosines, (num_queries, top) each or fewer columns; -1 and -inf: no more."""
        top = min(top, len(self.vectors))
        found = self.index.search(queries.cpu().numpy(), top)
        keys = np.atleast_2d(np.asarray(found.keys)).astype(np.int64)
        distances = np.atleast_2d(np.asarray(found.distances)).astype(np.float32)
        counts = np.array(getattr(found, "counts", keys.shape[1]))  # one query has no counts
        is_found = np.arange(keys.shape[1]) < counts.reshape(-1, 1)
        # Behind what was found, both arrays have any numbers.
        return np.where(is_found, keys, -1), 1 - np.where(is_found, distances, np.inf)


def nearest_by_index(
    index: NeighbourIndex,
    vectors: Tensor,  # (num_nodes, dim) as they are now
    nodes: LongArray,
    top: int,
    *,
    changed: LongArray,  # nodes that are not in the index as they are now, ascending
    is_present: NDArray[np.bool_],
) -> Iterator[tuple[LongArray, TopScores]]:
    """Some nodes at a time, and the nearest of each; candidates are node ids."""
    is_outdated = ~is_present
    is_outdated[changed] = True
    fresh = changed[is_present[changed]]
    fresh_vectors = torch.nn.functional.normalize(vectors[torch.from_numpy(fresh)], dim=1)
    for start in range(0, len(nodes), ROWS_AT_ONCE):
        some = nodes[start : start + ROWS_AT_ONCE]
        queries = torch.nn.functional.normalize(vectors[torch.from_numpy(some)], dim=1)
        keys, cosines = _current(index, queries, some, top, is_outdated)
        if len(fresh):
            exact = (queries @ fresh_vectors.T).cpu().numpy()
            exact[some[:, None] == fresh] = -np.inf
            keys = np.concatenate([keys, np.broadcast_to(fresh, exact.shape)], axis=1)
            cosines = np.concatenate([cosines, exact], axis=1)
        best = top_scores(torch.from_numpy(cosines), top)
        yield some, best._replace(candidate=keys[best.row, best.candidate].astype(np.int32))


def _current(
    index: NeighbourIndex,
    queries: Tensor,
    nodes: LongArray,
    top: int,
    is_outdated: NDArray[np.bool_],
) -> tuple[LongArray, NDArray[np.float32]]:
    """Neighbours from the index that are current, and -inf for others; `top` for each, if any."""
    wanted = top + SPARE
    while True:
        keys, cosines = index.search(queries, wanted)
        is_out = is_outdated[keys] | (keys == nodes[:, None]) | (keys < 0)
        enough = (~is_out).sum(axis=1) >= top
        if enough.all() or wanted >= len(index.vectors):
            return keys, np.where(is_out, -np.inf, cosines).astype(np.float32)
        wanted = min(4 * wanted, len(index.vectors))


def _new_index(dim: int, settings: VectorIndexSettings) -> Any:
    try:
        from usearch.index import Index
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "this needs an index of vectors",
            "index",
            "ask for exact answers: similar --exact, whose time grows with the square of the "
            "number of nodes, or serve without --approximate",
        ) from error
    return Index(
        ndim=dim + settings.more_dims,
        metric=settings.metric,
        dtype=settings.dtype,
        connectivity=LINKS,
        expansion_add=BUILD,
        expansion_search=SEARCH,
    )


def _store(index: Any, place: IndexPlace) -> None:
    """Write an index atomically, and remove those of the same kind of other vectors."""
    with atomic_file(place.path) as partial:
        index.save(str(partial))
    with atomic_file(place.checksum) as partial:
        partial.write_text(_hash(place.path), encoding="utf-8")
    for other in place.path.parent.iterdir():
        is_index = other.suffix in (SUFFIX, ".sha256")
        if is_index and other.stem != place.key and place.is_same_kind(other.stem):
            other.unlink(missing_ok=True)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
