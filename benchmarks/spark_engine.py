"""Tokenizing on Spark: a master and two workers on this machine, and the result of one process.

    python -m benchmarks.spark_engine --largest 10000000 -o results/spark-engine.json \\
        --page docs/scale.md

Graphs are those of `benchmarks.growth`: 6.4 edges a node, skewed degrees, 1 % of the nodes as
anchors, k = 20, m = 12; facts by id in Parquet. A row has the messages and the shuffled bytes of
every hop beside the bound of 2 k |E| messages. Memory is that of all processes of the cluster, and
separately that of the driver: this process and its JVM. Both tables are compared. The result is
written after each size, and with --page the tables of docs/scale.md are replaced. Run it on an
otherwise idle machine.
"""

import argparse
import json
import os
import re
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.growth import EDGES_PER_NODE, MemoryPeak, make_facts
from benchmarks.one_machine import write_table
from benchmarks.spark_cluster import Cluster, memory_of_groups

from nodepiece.data.npy import read_mapped_graph
from nodepiece.engines.spark_session import (
    SparkOptions,
    open_session,
    quiet_imports,
    spark_errors,
)
from nodepiece.engines.spark_tokenize import SparkJob, tokenize_on_spark
from nodepiece.files import write_json
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.storage import load_tokens, save_tokens
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary

SIZES = (100_000, 1_000_000, 10_000_000)  # edges
MARK = "<!-- tables of benchmarks.spark_engine -->"
SETTINGS = {
    "spark.sql.shuffle.partitions": "8",
    "spark.default.parallelism": "4",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "2g",
    "spark.ui.retainedStages": "10000",
}


class Stages:
    """Times of stages, and what they shuffled, by Spark's own count."""

    def __init__(self, spark: Any) -> None:
        context = spark.sparkContext
        self.address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
        self.rows: list[dict[str, Any]] = []

    def shuffled(self) -> int:
        with urllib.request.urlopen(self.address, timeout=60) as answer:
            return sum(stage["shuffleWriteBytes"] for stage in json.load(answer))

    @contextmanager
    def __call__(self, doing: str) -> Iterator[list[str]]:
        start, before, remarks = time.perf_counter(), self.shuffled(), list[str]()
        yield remarks
        seconds = round(time.perf_counter() - start, 2)
        row = {"stage": doing.partition(" /")[0], "seconds": seconds}
        row |= {"shuffled_bytes": self.shuffled() - before}
        if found := re.match(r"([\d,]+) messages", remarks[0] if remarks else ""):
            row["messages"] = int(found[1].replace(",", ""))
        self.rows.append(row)
        print(row, *remarks, sep="; ", flush=True)


def measure(spark: Any, cluster: Cluster, num_edges: int, folder: Path) -> dict[str, Any]:
    num_nodes = round(num_edges / EDGES_PER_NODE)
    settings = TokenizerSettings(num_anchors=min(20_000, max(20, num_nodes // 100)))
    make_facts(num_nodes, num_edges, folder / "facts.npy")
    facts = np.load(folder / "facts.npy", mmap_mode="r")
    columns = {role: pa.array(facts[:, at]) for at, role in enumerate(("head", "relation", "tail"))}
    pq.write_table(pa.table(columns), folder / "facts.parquet", row_group_size=num_edges // 8 + 1)
    job = SparkJob(
        *(str(folder / "facts.parquet"), folder / "spark", settings, 0),
        (folder / "work").as_uri(),
        by_ids=True,
    )
    stages, start = Stages(spark), time.perf_counter()
    with (
        MemoryPeak(cluster.memory, 0.5) as memory,
        MemoryPeak(memory_of_driver, 0.5) as driver,
        quiet_imports(),
        spark_errors(),
    ):
        tokenize_on_spark(spark, job, stages)
    seconds = time.perf_counter() - start
    native = seconds_of_one_process(folder, settings)
    hops = hops_of({"stages": stages.rows})
    return {
        "nodes": num_nodes,
        "edges": num_edges,
        "anchors": settings.num_anchors,
        "seconds": round(seconds, 1),
        "seconds_of_one_process": native,
        "cluster_memory_bytes": memory.peak,
        "driver_memory_bytes": driver.peak,
        "messages": sum(row["messages"] for row in hops),
        "bound_of_messages": 2 * settings.anchors_per_node * num_edges,
        "stages": stages.rows,
        "is_same": is_same(folder),
    }


def memory_of_driver() -> int:
    """The memory of this process and of its JVM, which is in the same process group."""
    return memory_of_groups({os.getpgrp()})


def seconds_of_one_process(folder: Path, settings: TokenizerSettings) -> float:
    start, rng = time.perf_counter(), np.random.default_rng(0)
    graph = read_mapped_graph(folder / "facts.npy")
    adjacency = build_adjacency(graph)
    vocabulary = fit_vocabulary(graph, settings, rng=rng, adjacency=adjacency)
    table = tokenize(graph, vocabulary, rng=rng, adjacency=adjacency)
    save_tokens(table, folder / "native")
    return round(time.perf_counter() - start, 1)


def is_same(folder: Path) -> bool:
    one, other = (load_tokens(folder / name) for name in ("native", "spark"))
    arrays = ("anchors", "distances", "relations")
    is_equal = [np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays]
    return all(is_equal) and np.array_equal(one.vocabulary.anchors, other.vocabulary.anchors)


def markdown(content: dict[str, Any]) -> str:
    """The tables of docs/scale.md: a row for each size, and the hops of the largest."""
    rows = content["measured"]
    lines = [
        "| edges | nodes | messages | bound 2 k E | shuffled by hops | by PageRank | seconds | "
        "one process | memory of the cluster | of the driver |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        shuffled = shuffled_by(row, "hop")
        driver = "not measured"
        if "driver_memory_bytes" in row:
            driver = f"{row['driver_memory_bytes'] / 1e9:.1f} GB"
        lines.append(
            f"| {row['edges']:,} | {row['nodes']:,} | {row['messages']:,} | "
            f"{row['bound_of_messages']:,} | {shuffled / 1e6:,.1f} MB | "
            f"{shuffled_by(row, 'anchors by PageRank') / 1e6:,.0f} MB | {row['seconds']:.0f} | "
            f"{row['seconds_of_one_process']:.1f} | {row['cluster_memory_bytes'] / 1e9:.1f} GB | "
            f"{driver} |"
        )
    last = rows[-1]
    share = last["messages"] / last["bound_of_messages"]
    size = shuffled_by(last, "hop") / last["messages"]
    if "note" in content:
        lines += ["", f"Note: {content['note']}."]
    if last["edges"] < SIZES[-1]:
        lines += ["", f"{SIZES[-1]:,} edges were not run."]
    lines += [
        "",
        f"The hops of the last row: {share:.0%} of the bound was sent, and a message took "
        f"{size:.1f} bytes of shuffle, with the states of nodes of two hops.",
    ]
    lines += ["", "| hop | messages | shuffled | seconds |", "|---|---|---|---|"]
    for hop in hops_of(last):
        number, megabytes = hop["stage"].removeprefix("hop "), hop["shuffled_bytes"] / 1e6
        lines.append(
            f"| {number} | {hop['messages']:,} | {megabytes:,.1f} MB | {hop['seconds']:.1f} |"
        )
    return "\n".join(lines)


def shuffled_by(row: dict[str, Any], stage: str) -> int:
    """The bytes that were shuffled by all stages whose names begin so."""
    return sum(each["shuffled_bytes"] for each in row["stages"] if each["stage"].startswith(stage))


def hops_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [stage for stage in row["stages"] if stage["stage"].startswith("hop")]


def write_result(options: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    content = {
        "what": "tokenizing on a Spark cluster of two workers on one machine",
        "command": f"python -m benchmarks.spark_engine --largest {options.largest}",
        "cpus": os.cpu_count(),
        "anchors_per_node": 20,
        "relations_per_node": 12,
        "measured": rows,
    }
    if options.note:
        content["note"] = options.note
    if options.out is not None:
        write_json(options.out, content)
    if options.page is not None:
        write_table(options.page, markdown(content), mark=MARK)
    print(markdown(content), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Tokenizing on a Spark cluster of two workers.")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="edges")
    parser.add_argument("--note", help="about the machine; goes into the result")
    parser.add_argument("--page", type=Path, help="a page whose tables are replaced: docs/scale.md")
    parser.add_argument("-o", "--out", type=Path, help="a JSON file; printed as well")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        cluster = Cluster(Path(place), worker_memory="2500m")
        try:
            cluster.start(num_workers=2)
            spark = open_session(SparkOptions(cluster.url, SETTINGS))
            for num_edges in (size for size in SIZES if size <= options.largest):
                folder = Path(place) / str(num_edges)
                folder.mkdir()
                print(f"{num_edges:,} edges", flush=True)
                rows.append(measure(spark, cluster, num_edges, folder))
                shutil.rmtree(folder)
                print(json.dumps(rows[-1]), flush=True)
                write_result(options, rows)
            spark.stop()
        finally:
            cluster.stop()


if __name__ == "__main__":
    main()
