"""One hop of the search for the nearest anchors: what a block sends, and what it accepts.

Each function takes and returns Arrow tables whose cells are arrays as bytes, so that a row of Spark
is a block, and a message all that one block sends to another.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodepiece.engines.block_edges import array_of
from nodepiece.engines.block_kernels import fill_rows, receive_anchors, send_anchors
from nodepiece.engines.node_blocks import NodeBlocks
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.nearest import UNREACHED, Distances

MESSAGE_SCHEMA = "block int, source int, nodes binary, counts binary, data binary"
STATE_SCHEMA = (
    "block int, hop int, counts binary, anchors binary, held binary, full binary, "
    "num_new long, num_messages long, message_bytes long"
)
MESSAGE = pa.schema(
    [
        ("block", pa.int32()),  # that receives
        ("source", pa.int32()),  # the block that sends
        ("nodes", pa.large_binary()),  # int32, numbers within the receiving block, ascending
        ("counts", pa.large_binary()),  # int32, anchors for each node; empty: one value each
        ("data", pa.large_binary()),  # int32 anchors, or a value for each node
    ]
)
STATE = pa.schema(
    [
        ("block", pa.int32()),
        ("hop", pa.int32()),
        ("counts", pa.large_binary()),  # int32, anchors that each node found in this hop
        ("anchors", pa.large_binary()),  # int32 positions
        ("held", pa.large_binary()),  # int32, anchors that each node has by now
        ("full", pa.large_binary()),  # bits of the nodes that have k
        ("num_new", pa.int64()),
        ("num_messages", pa.int64()),  # pairs of node and anchor that were received
        ("message_bytes", pa.int64()),
    ]
)

TableFunction = Callable[[pa.Table, pa.Table], pa.Table]


@dataclass(frozen=True)
class Search:
    """What the kernels of all hops need to know."""

    blocks: NodeBlocks
    num_anchors: int
    k: int
    salt: np.uint64 | None  # None: ties by the global order

    @property
    def ties(self) -> tuple[int, bool, np.uint64, int]:
        """The last arguments of both kernels."""
        salt = np.uint64(0) if self.salt is None else self.salt
        return self.k, self.salt is not None, salt, self.num_anchors


def state_table(
    search: Search,
    block: int,
    hop: int,
    counts: IntArray,
    anchors: IntArray,
    held: IntArray,
    *,
    received: tuple[int, int] = (0, 0),
) -> pa.Table:
    full = np.packbits(held >= search.k)
    cells = [[block], [hop], *([each.tobytes()] for each in (counts, anchors, held, full))]
    numbers = [len(anchors), *received]
    return pa.table([*cells, *([number] for number in numbers)], schema=STATE)


def first_state(search: Search, anchors: IntArray, block: int) -> pa.Table:
    """The state of a block before the first hop: an anchor has itself, at distance 0."""
    owner, number = search.blocks.split(anchors)
    position = np.flatnonzero(owner == block).astype(np.int32)
    order = np.argsort(number[position], kind="stable")
    counts = np.zeros(search.blocks.size(block), np.int32)
    counts[number[position]] = 1
    return state_table(search, block, 0, counts, position[order], counts)


def make_send(search: Search, full_bits: Callable[[], NDArray[np.uint8]]) -> TableFunction:
    """A function from the edges of a block and its newest state to messages for other blocks."""

    def send(edges: pa.Table, state: pa.Table) -> pa.Table:
        offsets = offsets_of(array_of(state["counts"][0], np.int32))
        nodes, counts, anchors, ends = send_anchors(
            *edge_arrays(edges),
            offsets,
            array_of(state["anchors"][0], np.int32),
            search.blocks.bit_offsets(),
            full_bits(),
            *search.ties,
        )
        source = state["block"][0].as_py()
        rows = (
            (block, source, nodes[part], counts[part], anchors[slots])
            for block, part, slots in slices(ends)
        )
        return message_table(rows)

    return send


def make_receive(search: Search, hop: int) -> TableFunction:
    """A function from the messages to a block and its last two states to its next state."""

    def receive(messages: pa.Table, states: pa.Table) -> pa.Table:
        by_hop = dict(zip(states["hop"].to_pylist(), range(states.num_rows), strict=True))
        newest, before = by_hop[hop - 1], by_hop.get(hop - 2)
        block = states["block"][newest].as_py()
        held = array_of(states["held"][newest], np.int32)
        one, two = anchors_in(states, newest), anchors_in(states, before, size=len(held))
        nodes, counts, anchors = (joined(messages[name]) for name in ("nodes", "counts", "data"))
        new_counts, new_anchors = receive_anchors(
            *(block, search.blocks.num_blocks, nodes, counts, anchors, held),
            *(*one, *two, *search.ties),
        )
        received = len(anchors), nodes.nbytes + counts.nbytes + anchors.nbytes
        return state_table(
            search, block, hop, new_counts, new_anchors, held + new_counts, received=received
        )

    return receive


def anchors_in(states: pa.Table, row: int | None, size: int = 0) -> tuple[LongArray, IntArray]:
    """What nodes found in the hop of a row; nothing without a row."""
    if row is None:
        return np.zeros(size + 1, np.int64), np.empty(0, np.int32)
    counts = array_of(states["counts"][row], np.int32)
    return offsets_of(counts), array_of(states["anchors"][row], np.int32)


def joined(column: pa.ChunkedArray, dtype: Any = np.int32) -> NDArray[Any]:
    """The arrays in all cells of a column, one after the other."""
    return np.concatenate([np.empty(0, dtype), *(array_of(cell, dtype) for cell in column)])


def offsets_of(counts: IntArray) -> LongArray:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def edge_arrays(edges: pa.Table) -> tuple[LongArray, IntArray, LongArray, IntArray]:
    """Bounds, targets, offsets and sources of a block."""
    bounds, offsets = (array_of(edges[name][0], np.int64) for name in ("bounds", "offsets"))
    targets, sources = (array_of(edges[name][0], np.int32) for name in ("targets", "sources"))
    return bounds, targets, offsets, sources


def slices(ends: LongArray) -> Iterator[tuple[int, slice, slice]]:
    """Block, slice of its nodes and slice of their values, for blocks that are sent something."""
    for block in range(len(ends) - 1):
        (first, start), (last, end) = ends[block].tolist(), ends[block + 1].tolist()
        if last > first:
            yield block, slice(first, last), slice(start, end)


def message_table(rows: Any) -> pa.Table:
    columns: list[list[Any]] = [[], [], [], [], []]
    for block, source, *arrays in rows:
        values = (block, source, *(each.tobytes() for each in arrays))
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    return pa.table(columns, schema=MESSAGE)


def anchor_rows(search: Search, block: int, states: pa.Table) -> tuple[IntArray, Distances]:
    """The anchors and distances of all nodes of a block, from the states of all hops."""
    size = search.blocks.size(block)
    nearest = np.full((size, search.k), UNREACHED, np.int32)
    distance = np.full((size, search.k), UNREACHED, np.int16)
    filled = np.zeros(size, np.int32)
    for hop, row in sorted(zip(states["hop"].to_pylist(), range(states.num_rows), strict=True)):
        counts, anchors = (array_of(states[name][row], np.int32) for name in ("counts", "anchors"))
        fill_rows(counts, anchors, hop, filled, nearest, distance)
    return nearest, distance
