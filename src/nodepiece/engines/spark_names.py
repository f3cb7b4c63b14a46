"""Ids of nodes and relations by first appearance, as on one machine."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nodepiece.engines.node_blocks import NodeBlocks
from nodepiece.engines.spark_source import COLUMNS, ROW_BITS, Facts
from nodepiece.engines.work_folder import WorkFolder
from nodepiece.errors import InputError
from nodepiece.graph.names import Names

MAX_NODES = 2**31 - 1
CHUNK_SCHEMA = "chunk int, names binary"


@dataclass(frozen=True, eq=False)
class EncodedFacts:
    """Facts by ids, as a DataFrame of three int columns."""

    table: Any
    num_nodes: int
    relations: list[str] | None  # names; None: there are none
    num_relations: int
    num_facts: int
    num_literals: int = 0

    @property
    def has_names(self) -> bool:
        return self.relations is not None


def encode_facts(work: WorkFolder, facts: Any) -> EncodedFacts:
    """Facts by name, with ids by first appearance: head before tail, fact by fact.

    The names with their ids are left in the step `nodes`. Facts without positions, from a table
    without files, get ids in the order of names.
    """
    from pyspark.sql import functions as F

    if not work.has("facts"):
        work.write(facts, "facts")
    stored = work.read("facts")
    kept, is_kept = stored.where(~F.col("is_literal")), ~F.col("is_literal")
    empty = [F.count_if(is_kept & (F.coalesce(F.col(role), F.lit("")) == "")) for role in COLUMNS]
    counts = F.count_if(is_kept), F.count_if(F.col("is_literal"))
    num_facts, num_literals, *num_empty = stored.agg(*counts, *empty).first()
    if not num_facts:
        raise InputError(
            "the files state no fact between nodes; add some: head, relation, tail"
            if not num_literals
            else f"all {num_literals:,} objects are literals, and a graph needs nodes"
        )
    for role, number in zip(COLUMNS, num_empty, strict=True):
        if number:
            raise InputError(
                f"the {role} of {number:,} facts is empty; fill it in or leave them out"
            )
    number_nodes(work, kept)
    nodes, num_nodes = numbered_nodes(work)
    found = kept.groupBy("relation").agg(F.min("position").alias("position")).collect()
    found.sort(key=lambda row: (row.position or 0, row.relation))
    relations = [row.relation for row in found]
    by_name = work.spark.createDataFrame(
        list(enumerate(relations)), "relation_id int, relation string"
    )
    head = nodes.select(F.col("name").alias("head"), F.col("id").alias("head_id"))
    tail = nodes.select(F.col("name").alias("tail"), F.col("id").alias("tail_id"))
    table = (
        kept.join(F.broadcast(by_name), "relation")
        .join(head, "head")
        .join(tail, "tail")
        .select(
            F.col("head_id").alias("head"),
            F.col("relation_id").alias("relation"),
            F.col("tail_id").alias("tail"),
        )
    )
    return EncodedFacts(table, num_nodes, relations, len(relations), num_facts, num_literals)


def number_nodes(work: WorkFolder, facts: Any) -> None:
    """Write every name with its partition and its row there; both together order all names."""
    from pyspark.sql import functions as F

    if work.has("nodes"):
        return
    heads = facts.select(F.col("head").alias("name"), (2 * F.col("position")).alias("position"))
    tails = facts.select(F.col("tail").alias("name"), (2 * F.col("position") + 1).alias("position"))
    first = heads.union(tails).groupBy("name").agg(F.min("position").alias("position"))
    order = [F.col("position"), F.col("name")]
    rows = first.repartitionByRange(*order).sortWithinPartitions(*order)
    row = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << ROW_BITS) - 1))
    work.write(rows.select("name", F.spark_partition_id().alias("part"), row.alias("row")), "nodes")


def numbered_nodes(work: WorkFolder) -> tuple[Any, int]:
    """A DataFrame of names and ids, and the number of nodes."""
    from pyspark.sql import functions as F

    stored = work.read("nodes")
    counts = {row["part"]: row["count"] for row in stored.groupBy("part").count().collect()}
    starts, total = {}, 0
    for part in sorted(counts):
        starts[part], total = total, total + counts[part]
    if total > MAX_NODES:
        raise InputError(
            f"{total:,} nodes are more than ids of 32 bits can number; split the graph"
        )
    parts = work.spark.createDataFrame(list(starts.items()), "part int, first long")
    joined = stored.join(F.broadcast(parts), "part")
    return joined.select("name", (F.col("first") + F.col("row")).cast("int").alias("id")), total


def ids_as_facts(facts: Facts) -> EncodedFacts:
    """Facts by ids, as they are; there are as many nodes and relations as the largest ids say."""
    if facts.sizes is None:
        raise ValueError("facts by name have no sizes yet")
    num_facts, num_nodes, num_relations = facts.sizes
    return EncodedFacts(facts.table, num_nodes, None, num_relations, num_facts)


def write_name_chunks(work: WorkFolder, blocks: NodeBlocks) -> None:
    """The names of each chunk of nodes in one row, in the order of ids."""
    from pyspark.sql import functions as F

    if work.has("names"):
        return
    nodes, _ = numbered_nodes(work)
    chunk = F.floor(F.col("id") / blocks.chunk_size).cast("int").alias("chunk")
    work.write(
        nodes.select("name", "id", chunk).groupBy("chunk").applyInArrow(pack_names, CHUNK_SCHEMA),
        "names",
    )


def pack_names(table: pa.Table) -> pa.Table:
    order = np.argsort(table["id"].to_numpy())
    names = table["name"].cast(pa.large_string()).take(pa.array(order)).combine_chunks()
    cell = as_bytes(names)
    schema = pa.schema([("chunk", pa.int32()), ("names", pa.large_binary())])
    return pa.table([[table["chunk"][0].as_py()], [cell]], schema=schema)


def as_bytes(names: pa.Array | pa.ChunkedArray) -> bytes:
    """A column of names as the bytes of an Arrow stream."""
    table, sink = pa.table({"name": names}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(cell: bytes) -> pa.ChunkedArray:
    return pa.ipc.open_stream(cell).read_all()["name"]


def collect_names(work: WorkFolder, relations: list[str]) -> Names:
    """All names, in the memory of the driver."""
    cells = {row.chunk: row.names for row in work.read("names").toLocalIterator()}
    chunks = [chunk for key in sorted(cells) for chunk in from_bytes(cells[key]).chunks]
    nodes = pa.chunked_array(chunks, pa.large_string()).combine_chunks()
    nodes = nodes.chunk(0) if isinstance(nodes, pa.ChunkedArray) else nodes
    return Names(nodes, pa.array(relations, pa.large_string()))
