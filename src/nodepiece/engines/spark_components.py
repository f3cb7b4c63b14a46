"""Anchors for components that have none, on Spark: the node of highest degree of each.

Every node keeps the least key that it knows of its component, and sends it on when it becomes less.
Keys order nodes by degree, highest first, then by id; that of an anchor is below all others. In the
end a node whose key is its own has the highest degree of a component without anchors.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from nodepiece.engines.block_edges import array_of
from nodepiece.engines.block_kernels import least_of_sources
from nodepiece.engines.nearest_steps import edge_arrays, message_table
from nodepiece.engines.node_blocks import NodeBlocks
from nodepiece.engines.spark_search import exchange
from nodepiece.engines.work_folder import WorkFolder
from nodepiece.graph.arrays import IntArray, LongArray

OF_ANCHORS = np.iinfo(np.int64).min
ID_BITS = 32
LABEL_SCHEMA = "block int, keys binary, is_new binary, num_new long"
LABEL = pa.schema(
    [
        ("block", pa.int32()),
        ("keys", pa.large_binary()),  # int64
        ("is_new", pa.large_binary()),  # bool: the key became less in this step
        ("num_new", pa.int64()),
    ]
)
KEYS_SCHEMA = "keys binary"
Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def anchors_of_unreached(
    work: WorkFolder, adjacency: Any, blocks: NodeBlocks, anchors: IntArray
) -> IntArray:
    """What `tokenizer.anchors.anchors_of_unreached_components` returns."""
    step = work.last_number("label-")
    if step is None:
        table, step = work.read("blocks", "block", "degrees"), 0
        work.write(table.mapInArrow(make_first_keys(blocks, anchors), LABEL_SCHEMA), label_step(0))
    while work.read(label_step(step)).selectExpr("sum(num_new)").first()[0]:
        newest = work.read(label_step(step))
        step += 1
        table = exchange(adjacency, newest, newest, send_least, receive_least, LABEL_SCHEMA)
        work.write(table, label_step(step))
        if step > 1:
            work.remove(label_step(step - 2))
    rows = work.read(label_step(step), "block", "keys").mapInArrow(make_own(blocks), KEYS_SCHEMA)
    found = [np.frombuffer(bytes(row.keys), np.int64) for row in rows.collect()]
    return ids_of(np.sort(np.concatenate([np.empty(0, np.int64), *found])))


def label_step(number: int) -> str:
    return f"label-{number:05}"


def ids_of(keys: LongArray) -> IntArray:
    return (keys & ((1 << ID_BITS) - 1)).astype(np.int32)


def first_keys(blocks: NodeBlocks, block: int, degrees: LongArray, anchors: IntArray) -> LongArray:
    """The keys of all nodes of a block before the first step."""
    ids = np.arange(len(degrees), dtype=np.int64) * blocks.num_blocks + block
    keys = ids - (degrees << ID_BITS)
    owner, number = blocks.split(anchors)
    keys[number[owner == block]] = OF_ANCHORS
    return keys


def make_first_keys(blocks: NodeBlocks, anchors: IntArray) -> Batches:
    def start(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row, block in enumerate(batch.column("block").to_pylist()):
                degrees = array_of(batch.column("degrees")[row], np.int64)
                keys = first_keys(blocks, block, degrees, anchors)
                yield label_table(block, keys, np.ones(len(keys), np.bool_)).to_batches()[0]

    return start


def label_table(block: int, keys: LongArray, is_new: Any) -> pa.Table:
    cells = [[block], [keys.tobytes()], [is_new.tobytes()], [int(is_new.sum())]]
    return pa.table(cells, schema=LABEL)


def send_least(edges: pa.Table, state: pa.Table) -> pa.Table:
    """The least new key among the sources of every target that has such sources."""
    bounds, targets, offsets, sources = edge_arrays(edges)
    keys, is_new = (
        array_of(state[name][0], dtype)
        for name, dtype in (("keys", np.int64), ("is_new", np.bool_))
    )
    least, is_sent = least_of_sources(offsets, sources, keys, is_new)
    nothing, source = np.empty(0, np.int32), state["block"][0].as_py()
    rows = []
    for block, (first, end) in enumerate(
        zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ):
        places = first + np.flatnonzero(is_sent[first:end])
        if len(places):
            rows.append((block, source, targets[places], nothing, least[places]))
    return message_table(rows)


def receive_least(messages: pa.Table, states: pa.Table) -> pa.Table:
    before = array_of(states["keys"][0], np.int64)
    keys = before.copy()
    for row in range(messages.num_rows):
        nodes = array_of(messages["nodes"][row], np.int32)
        keys[nodes] = np.minimum(keys[nodes], array_of(messages["data"][row], np.int64))
    return label_table(states["block"][0].as_py(), keys, keys < before)


def own_keys(blocks: NodeBlocks, block: int, keys: LongArray) -> LongArray:
    """The keys that nodes of a block have of themselves."""
    ids = np.arange(len(keys), dtype=np.int64) * blocks.num_blocks + block
    return keys[(ids_of(keys) == ids) & (keys != OF_ANCHORS)]


def make_own(blocks: NodeBlocks) -> Batches:
    def own(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row, block in enumerate(batch.column("block").to_pylist()):
                keys = own_keys(blocks, block, array_of(batch.column("keys")[row], np.int64))
                cells = [pa.array([keys.tobytes()], pa.large_binary())]
                yield pa.record_batch(cells, names=["keys"])

    return own
