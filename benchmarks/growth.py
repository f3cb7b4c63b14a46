"""How tokenization grows with the graph, from 10^5 to 3 * 10^7 edges.

    python -m benchmarks.growth -o results/tokenize-growth.json [--largest 30000000]

Facts are in an array file, which is mapped; every size runs in a separate process. There are 6.4
edges for each node, as in WikiKG2, and 1 % of the nodes are anchors, 20,000 at most. Memory is the
private memory of the process, without the mapped file. Run it on an otherwise idle machine.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
from benchmarks.generate import HUB_SHARE, generate_graph
from benchmarks.measure import prefer_to_be_killed

from nodepiece.data.npy import read_mapped_graph
from nodepiece.files import write_json
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.storage import save_tokens
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary

SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000)  # edges
EDGES_PER_NODE = 6.4
NUM_RELATIONS = 535
TARGETS = ((5_000_000, 32_000_000), (100_000_000, 1_000_000_000))  # nodes, edges: extrapolated to


def own_memory() -> int:
    """Resident bytes that are not mapped from a file."""
    _, resident, shared = Path("/proc/self/statm").read_text().split()[:3]
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


class MemoryPeak:
    """The peak of memory during the block, by sampling: the private memory of this process, or
    what `memory` returns."""

    def __init__(self, memory: Callable[[], int] = own_memory, seconds: float = 0.02) -> None:
        self.memory, self.seconds = memory, seconds

    def __enter__(self) -> "MemoryPeak":
        self.start, self.peak, self.done = self.memory(), 0, Event()
        self.thread = Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.done.set()
        self.thread.join()

    def _watch(self) -> None:
        while not self.done.wait(self.seconds):
            self.peak = max(self.peak, self.memory())


def measure(path: Path, num_nodes: int) -> dict[str, Any]:
    """One size: read, choose anchors, tokenize, save."""
    settings = TokenizerSettings(num_anchors=min(20_000, max(20, num_nodes // 100)))
    rng = np.random.default_rng(0)
    seconds, start = {}, time.perf_counter()
    with MemoryPeak() as memory, tempfile.TemporaryDirectory() as folder:
        for stage in ("adjacency", "anchors", "tokens", "saving"):
            before = time.perf_counter()
            if stage == "adjacency":
                graph = read_mapped_graph(path)
                adjacency = build_adjacency(graph)
            elif stage == "anchors":
                vocabulary = fit_vocabulary(graph, settings, rng=rng, adjacency=adjacency)
            elif stage == "tokens":
                table = tokenize(graph, vocabulary, rng=rng, adjacency=adjacency)
            else:
                save_tokens(table, Path(folder) / "vocabulary")
            seconds[stage] = round(time.perf_counter() - before, 3)
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_triples,
        "anchors": vocabulary.num_anchors,
        "seconds": {**seconds, "whole": round(time.perf_counter() - start, 3)},
        "memory_bytes": memory.peak - memory.start,
        "file_bytes": path.stat().st_size,
    }


def warm_up(folder: Path) -> None:
    """Compile everything on a tiny graph."""
    make_facts(2_000, 12_800, folder / "tiny.npy")
    measure(folder / "tiny.npy", 2_000)


def make_facts(num_nodes: int, num_edges: int, path: Path) -> None:
    rng, hub_degree = np.random.default_rng(0), round(HUB_SHARE * num_edges)
    graph = generate_graph(num_nodes, num_edges, NUM_RELATIONS, hub_degree=hub_degree, rng=rng)
    np.save(path, graph.triples)


def extrapolate(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By the two largest sizes: time and memory grow with the edges, or a little faster."""
    before, last = rows[-2], rows[-1]
    found = []
    for num_nodes, num_edges in TARGETS:
        ratio = num_edges / last["edges"]
        row: dict[str, Any] = {"nodes": num_nodes, "edges": num_edges}
        for name, one, two in (
            ("seconds", before["seconds"]["whole"], last["seconds"]["whole"]),
            ("memory_bytes", before["memory_bytes"], last["memory_bytes"]),
        ):
            power = np.log(two / one) / np.log(last["edges"] / before["edges"])
            row[name] = round(two * ratio ** max(1.0, float(power)))
            row[f"power_of_{name}"] = round(float(power), 3)
        found.append(row)
    return found


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/scale.md."""
    lines = [
        "| edges | nodes | anchors | seconds | memory | bytes an edge |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        memory = row["memory_bytes"]
        lines.append(
            f"| {row['edges']:,} | {row['nodes']:,} | {row['anchors']:,} | "
            f"{row['seconds']['whole']:.1f} | {memory / 1e9:.2f} GB | {memory / row['edges']:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="How tokenization grows with the graph.")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="edges")
    parser.add_argument("--measure", type=Path, help="(one size, in a process of its own)")
    parser.add_argument("-o", "--out", type=Path, help="a JSON file; printed as well")
    options = parser.parse_args()
    if options.measure:
        prefer_to_be_killed()
        warm_up(options.measure.parent)
        num_nodes = int(np.load(options.measure, mmap_mode="r")[:, [0, 2]].max()) + 1
        print(json.dumps(measure(options.measure, num_nodes)))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for num_edges in (size for size in SIZES if size <= options.largest):
            path = Path(folder) / "facts.npy"
            make_facts(round(num_edges / EDGES_PER_NODE), num_edges, path)
            command = [sys.executable, "-m", "benchmarks.growth", "--measure", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            print(json.dumps(rows[-1]), flush=True)
    content = {
        "command": f"python -m benchmarks.growth --largest {options.largest}",
        "cpus": os.cpu_count(),
        "anchors_per_node": 20,
        "relations_per_node": 12,
        "measured": rows,
        "extrapolated": extrapolate(rows) if len(rows) > 1 else [],
    }
    print(markdown(rows), json.dumps(content["extrapolated"], indent=1), sep="\n")
    if options.out is not None:
        write_json(options.out, content)


if __name__ == "__main__":
    main()
