"""The nearest anchors of all nodes on Spark, hop by hop."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodepiece.engines.nearest_steps import (
    MESSAGE_SCHEMA,
    STATE_SCHEMA,
    Search,
    TableFunction,
    first_state,
    make_receive,
    make_send,
)
from nodepiece.engines.work_folder import WorkFolder
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.nearest import MAX_DISTANCE

TOTALS = ("block", "full", "num_new", "num_messages", "message_bytes")
Stage = Callable[[str], AbstractContextManager[list[str]]]  # prints what is done and how it went


def exchange(
    adjacency: Any,
    newest: Any,
    states: Any,
    send: TableFunction,
    receive: TableFunction,
    schema: str,
) -> Any:
    """One exchange of messages between all blocks: the DataFrame of the next states.

    Only messages and states pass the network; the edges stay where they are.
    """
    messages = adjacency.groupBy("block").cogroup(newest.groupBy("block"))
    sent = messages.applyInArrow(send, MESSAGE_SCHEMA)
    received = sent.groupBy("block").cogroup(states.groupBy("block"))
    return received.applyInArrow(receive, schema)


def find_nearest(
    work: WorkFolder, adjacency: Any, search: Search, anchors: IntArray, stage: Stage
) -> list[str]:
    """Write a step for each hop; returns the steps. Hops that are there already are kept."""
    steps = [step_of(0)]
    if not work.has(steps[0]):
        work.write(starting_states(work.spark, search, anchors), steps[0])
    rows = work.read(steps[0], *TOTALS).collect()
    while sum(row.num_new for row in rows):
        hop = len(steps)
        if hop > MAX_DISTANCE + 1:
            raise InputError(
                f"some nodes are more than {MAX_DISTANCE:,} hops away from their nearest anchors; "
                "choose more anchors"
            )
        steps.append(step_of(hop))
        if work.has(steps[-1]):
            rows = work.read(steps[-1], *TOTALS).collect()
            continue
        with stage(f"hop {hop}") as remarks:
            take_hop(work, steps, adjacency, search, full_bits(rows))
            rows = work.read(steps[-1], *TOTALS).collect()
            remarks += describe(rows, search)
    return steps


def step_of(hop: int) -> str:
    return f"hop-{hop:05}"


def take_hop(
    work: WorkFolder, steps: list[str], adjacency: Any, search: Search, full: NDArray[np.uint8]
) -> None:
    """Write the last of the steps; nodes that are full are sent to all workers, and get nothing."""
    newest = work.read(steps[-2])
    states = newest if len(steps) == 2 else newest.union(work.read(steps[-3]))
    shared = work.spark.sparkContext.broadcast(full)
    try:
        send, receive = (
            make_send(search, lambda: shared.value),
            make_receive(search, len(steps) - 1),
        )
        work.write(exchange(adjacency, newest, states, send, receive, STATE_SCHEMA), steps[-1])
    finally:
        shared.destroy()


def full_bits(rows: list[Any]) -> NDArray[np.uint8]:
    """The bits of all blocks one after the other: nodes that take no more anchors."""
    ordered = sorted(rows, key=lambda row: row.block)
    return np.concatenate([np.frombuffer(bytes(row.full), np.uint8) for row in ordered])


def describe(rows: list[Any], search: Search) -> list[str]:
    """What a hop did, for progress."""
    num_full = int(np.unpackbits(full_bits(rows)).sum())
    return [
        f"{sum(row.num_messages for row in rows):,} messages",
        f"{sum(row.message_bytes for row in rows) / 1e6:,.1f} MB",
        f"{sum(row.num_new for row in rows):,} anchors accepted",
        f"{num_full:,} of {search.blocks.num_nodes:,} nodes have {search.k}",
    ]


def starting_states(spark: Any, search: Search, anchors: IntArray) -> Any:
    def start(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for block in batch.column(0).to_pylist():
                yield from first_state(search, anchors, block).to_batches()

    return spark.range(search.blocks.num_blocks).mapInArrow(start, STATE_SCHEMA)
