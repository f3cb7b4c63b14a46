"""Facts by ids as blocks of nodes with all their edges, one row for each block."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodepiece.engines.block_edges import build_block
from nodepiece.engines.nearest_steps import joined
from nodepiece.engines.node_blocks import NodeBlocks
from nodepiece.engines.work_folder import WorkFolder

EDGES_AT_ONCE = 1 << 22  # of a task, before they are passed on
EDGES_SCHEMA = "block int, sources binary, relations binary, targets binary"
EDGES = pa.schema(
    [
        ("block", pa.int32()),
        *((name, pa.large_binary()) for name in ("sources", "relations", "targets")),
    ]
)
ARRAYS = ("bounds", "targets", "offsets", "sources", "degrees", "set_counts", "set_values")
BLOCK_SCHEMA = (
    "block int, " + ", ".join(f"{name} binary" for name in ARRAYS) + ", num_duplicates long"
)
BLOCK = pa.schema(
    [
        ("block", pa.int32()),
        *((name, pa.large_binary()) for name in ARRAYS),
        ("num_duplicates", pa.int64()),
    ]
)
ADJACENCY = ("block", "bounds", "targets", "offsets", "sources")


def write_blocks(
    work: WorkFolder, facts: Any, blocks: NodeBlocks, num_direct: int, *, drop_duplicates: bool
) -> None:
    """The step `blocks`: edges by target, degrees and sets of relations of every block."""
    if work.has("blocks"):
        return
    all_blocks = work.spark.range(blocks.num_blocks).selectExpr("cast(id as int) block")
    edges = facts.mapInArrow(make_pack(blocks, num_direct), EDGES_SCHEMA)
    build = make_build(blocks, num_direct, drop_duplicates)
    built = edges.groupBy("block").cogroup(all_blocks.groupBy("block"))
    work.write(built.applyInArrow(build, BLOCK_SCHEMA), "blocks")


def make_pack(
    blocks: NodeBlocks, num_direct: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function from facts to their edges both ways, in one row for each block."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[NDArray[np.int32]] = []
        for batch in batches:
            waiting.append(np.stack([batch.column(place).to_numpy() for place in range(3)]))
            if sum(part.shape[1] for part in waiting) >= EDGES_AT_ONCE:
                yield packed(blocks, num_direct, np.concatenate(waiting, axis=1))
                waiting = []
        if waiting:
            yield packed(blocks, num_direct, np.concatenate(waiting, axis=1))

    return pack


def packed(blocks: NodeBlocks, num_direct: int, facts: NDArray[np.int32]) -> pa.RecordBatch:
    head, relation, tail = facts
    source = np.concatenate([head, tail])
    relations = np.concatenate([relation, relation + np.int32(num_direct)])
    targets = np.concatenate([tail, head])
    block, number = blocks.split(source)
    order = np.argsort(block, kind="stable")
    ends = np.searchsorted(block[order], np.arange(blocks.num_blocks + 1))
    rows: list[list[Any]] = [[], [], [], []]
    for place in range(blocks.num_blocks):
        part = order[ends[place] : ends[place + 1]]
        if len(part):
            cells = (place, *(each[part].tobytes() for each in (number, relations, targets)))
            for column, cell in zip(rows, cells, strict=True):
                column.append(cell)
    return pa.record_batch(rows, schema=EDGES)


def make_build(
    blocks: NodeBlocks, num_direct: int, drop_duplicates: bool
) -> Callable[[tuple[Any, ...], pa.Table, pa.Table], pa.Table]:
    """A function from the edges of a block to its row; a block may have no edges."""

    def build(key: tuple[Any, ...], edges: pa.Table, block: pa.Table) -> pa.Table:
        number = key[0].as_py()
        arrays = joined(edges["sources"]), joined(edges["relations"]), joined(edges["targets"])
        built = build_block(
            blocks, number, arrays, num_direct=num_direct, drop_duplicates=drop_duplicates
        )
        values = [getattr(built.edges, name) for name in ARRAYS[:4]]
        values += [getattr(built, name) for name in ARRAYS[4:]]
        cells = [[number], *([value.tobytes()] for value in values), [built.num_duplicates]]
        return pa.table(cells, schema=BLOCK)

    return build


def kept_adjacency(work: WorkFolder) -> Any:
    """The edges of all blocks, kept by the executors and not sent again in later steps."""
    from pyspark import StorageLevel

    partitions = int(work.spark.conf.get("spark.sql.shuffle.partitions"))
    edges = work.read("blocks", *ADJACENCY).repartition(partitions, "block")
    return edges.sortWithinPartitions("block").persist(StorageLevel.MEMORY_AND_DISK)
