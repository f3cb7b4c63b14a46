"""Libraries for approximate nearest neighbours on node vectors: recall, time, memory, new rows.

    pip install usearch hnswlib faiss-cpu
    python -m benchmarks.neighbour_index --run RUN -o results/neighbour-index.json

Each library builds the same kind of index (HNSW, 16 links a node) over the vectors of a run, by
cosine, and finds the ten nearest of some nodes; the exact ones are computed. Then some rows are
replaced by others, and the ten nearest of these are compared again. Each is a separate process.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

LINKS, BUILD, SEARCH = 16, 128, 64  # of a node; candidates while building, while searching
TOP, NUM_QUERIES, REPLACED = 10, 2000, 0.01
SEED = 0


class Index(Protocol):
    """What a library has to do."""

    def build(self, vectors: Vectors) -> None: ...
    def search(self, vectors: Vectors, top: int) -> NDArray[Any]: ...
    def replace(self, rows: NDArray[np.int64], vectors: Vectors) -> None: ...
    def save(self, path: Path) -> None: ...


class Usearch:
    def build(self, vectors: Vectors) -> None:
        from usearch.index import Index

        self.index = Index(
            ndim=vectors.shape[1],
            metric="cos",
            dtype="f32",
            connectivity=LINKS,
            expansion_add=BUILD,
            expansion_search=SEARCH,
        )
        self.index.add(np.arange(len(vectors)), vectors, threads=2)

    def search(self, vectors: Vectors, top: int) -> NDArray[Any]:
        return np.asarray(self.index.search(vectors, top, threads=2).keys)

    def replace(self, rows: NDArray[np.int64], vectors: Vectors) -> None:
        self.index.remove(rows, threads=2)
        self.index.add(rows, vectors, threads=2)

    def save(self, path: Path) -> None:
        self.index.save(str(path))


class Hnswlib:
    def build(self, vectors: Vectors) -> None:
        import hnswlib

        self.index = hnswlib.Index("cosine", vectors.shape[1])
        self.index.init_index(
            len(vectors),
            ef_construction=BUILD,
            M=LINKS,
            random_seed=SEED,
            allow_replace_deleted=True,
        )
        self.index.set_num_threads(2)
        self.index.add_items(vectors, np.arange(len(vectors)))
        self.index.set_ef(SEARCH)

    def search(self, vectors: Vectors, top: int) -> NDArray[Any]:
        return np.asarray(self.index.knn_query(vectors, top)[0])

    def replace(self, rows: NDArray[np.int64], vectors: Vectors) -> None:
        self.index.add_items(vectors, rows)  # an id that is there gets the new vector

    def save(self, path: Path) -> None:
        self.index.save_index(str(path))


class Faiss:
    def build(self, vectors: Vectors) -> None:
        import faiss

        faiss.omp_set_num_threads(2)
        self.faiss = faiss
        self.index = faiss.IndexHNSWFlat(vectors.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
        self.index.hnsw.efConstruction, self.index.hnsw.efSearch = BUILD, SEARCH
        self.index.add(unit(vectors))

    def search(self, vectors: Vectors, top: int) -> NDArray[Any]:
        return np.asarray(self.index.search(unit(vectors), top)[1])

    def replace(self, rows: NDArray[np.int64], vectors: Vectors) -> None:
        raise NotImplementedError("IndexHNSWFlat neither removes nor replaces rows")

    def save(self, path: Path) -> None:
        self.faiss.write_index(self.index, str(path))


LIBRARIES: dict[str, type[Usearch] | type[Hnswlib] | type[Faiss]] = {
    "usearch": Usearch,
    "hnswlib": Hnswlib,
    "faiss-cpu": Faiss,
}


def unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.maximum(lengths, 1e-12), np.float32)


def nearest(vectors: Vectors, queries: Vectors) -> NDArray[np.int64]:
    """Exact: (num_queries, TOP)."""
    directions = unit(vectors)
    return np.concatenate(
        [
            np.argpartition(-(part @ directions.T), TOP, axis=1)[:, :TOP]
            for part in np.array_split(unit(queries), 20)
        ]
    )


def recall(found: NDArray[Any], exact: NDArray[np.int64]) -> float:
    same = [len(np.intersect1d(*rows)) for rows in zip(found, exact, strict=True)]
    return round(float(np.mean(same)) / TOP, 4)


def resident_mb() -> float:
    """Memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * resource.getpagesize() / 1e6


def measure(name: str, path: Path) -> dict[str, Any]:
    vectors = np.load(path)
    rng = np.random.default_rng(SEED)
    queries = vectors[rng.choice(len(vectors), NUM_QUERIES, replace=False)]
    exact = nearest(vectors, queries)
    before = resident_mb()
    index: Index = LIBRARIES[name]()
    start, cpu = perf_counter(), process_time()
    index.build(vectors)
    found: dict[str, Any] = {
        "build_seconds": round(perf_counter() - start, 1),
        "build_cpu_seconds": round(process_time() - cpu, 1),
        "memory_mb": round(resident_mb() - before),
    }
    start, cpu = perf_counter(), process_time()
    keys = index.search(queries, TOP)
    found["search_cpu_ms_per_query"] = round(1000 * (process_time() - cpu) / NUM_QUERIES, 3)
    found["recall"] = recall(keys, exact)
    saved = path.with_suffix(f".{name}")
    index.save(saved)
    found["file_mb"] = round(saved.stat().st_size / 1e6)
    rows = rng.choice(len(vectors), int(REPLACED * len(vectors)), replace=False)
    changed = (
        vectors[rows[::-1]]
        + 0.3
        * rng.standard_normal((len(rows), vectors.shape[1])).astype(np.float32)
        * vectors.std()
    )
    vectors[rows] = changed
    try:
        start, cpu = perf_counter(), process_time()
        index.replace(rows, changed)
    except NotImplementedError as error:
        return found | {"replaced": str(error)}
    found["replace_cpu_ms_per_row"] = round(1000 * (process_time() - cpu) / len(rows), 3)
    few = changed[:500]
    found["recall_of_replaced"] = recall(index.search(few, TOP), nearest(vectors, few))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", type=Path)
    parser.add_argument("--library", choices=LIBRARIES, help=argparse.SUPPRESS)
    parser.add_argument("--vectors", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.library:
        print(json.dumps(measure(options.library, options.vectors)))
        return
    import nodepiece

    vectors = nodepiece.load(options.run).embed()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        np.save(path, vectors)
        found = {}
        for name in LIBRARIES:
            words = [sys.executable, "-m", "benchmarks.neighbour_index", "--library", name]
            ran = subprocess.run(
                [*words, "--vectors", str(path)], capture_output=True, text=True, check=True
            )
            found[name] = json.loads(ran.stdout)
            print(name, json.dumps(found[name]), flush=True)
    if options.output is not None:
        from nodepiece.files import write_json

        sizes = {"nodes": len(vectors), "dim": vectors.shape[1], "top": TOP}
        command = "python -m benchmarks.neighbour_index --run RUN"
        write_json(options.output, {"command": command, **sizes, "libraries": found})


if __name__ == "__main__":
    main()
