"""Anchors on Spark: nodes by degree, by PageRank, and at random."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodepiece.engines.block_edges import array_of
from nodepiece.engines.block_kernels import sum_over_sources
from nodepiece.engines.nearest_steps import TableFunction, edge_arrays, message_table
from nodepiece.engines.node_blocks import NodeBlocks
from nodepiece.engines.spark_search import Stage, exchange
from nodepiece.engines.work_folder import WorkFolder
from nodepiece.graph.arrays import IntArray
from nodepiece.tokenizer.anchors import split_count

DAMPING, TOLERANCE, MAX_ITERATIONS = 0.85, 1e-8, 200  # of `graph.pagerank`
RANK_SCHEMA = (
    "block int, ranks binary, previous binary, degrees binary, change double, total double"
)
RANK = pa.schema(
    [
        ("block", pa.int32()),
        ("ranks", pa.large_binary()),  # float64
        ("previous", pa.large_binary()),  # those that `change` and `total` are of
        ("degrees", pa.large_binary()),  # int64
        ("change", pa.float64()),
        ("total", pa.float64()),
    ]
)
TOP_SCHEMA = "nodes binary, scores binary"
TOP = pa.schema([("nodes", pa.large_binary()), ("scores", pa.large_binary())])
Scores = Callable[[pa.RecordBatch, int], NDArray[Any]]  # of the block in a row of a batch


def select_anchors(
    work: WorkFolder,
    adjacency: Any,
    blocks: NodeBlocks,
    num_anchors: int,
    mix: Mapping[str, float],
    *,
    rng: np.random.Generator,
    stage: Stage,
) -> IntArray:
    """The anchors that `tokenizer.anchors.select_anchors` chooses: degree, PageRank, random.

    A PageRank is a sum of floating-point numbers, here in another order than on one machine: nodes
    whose ranks are equal in float32, or next to it, could come in another order.
    """
    counts = split_count(num_anchors, mix)
    chosen = np.empty(0, np.int32)
    if counts["degree"]:
        with stage("anchors by degree"):
            found = top_nodes(
                work.read("blocks", "block", "degrees"),
                degrees_of,
                blocks,
                counts["degree"],
                chosen,
            )
            chosen = np.concatenate([chosen, found])
    if counts["pagerank"]:
        with stage("anchors by PageRank") as remarks:
            ranks, total, num_iterations = pagerank(work, adjacency, blocks)
            remarks.append(f"{num_iterations} iterations")
            found = top_nodes(ranks, make_rank_scores(total), blocks, counts["pagerank"], chosen)
            chosen = np.concatenate([chosen, found])
    if counts["random"]:
        order = np.arange(blocks.num_nodes, dtype=np.int32)
        rng.shuffle(order)  # as rng.permutation, in half of its memory
        is_taken = np.zeros(blocks.num_nodes, np.bool_)
        is_taken[chosen] = True
        chosen = np.concatenate([chosen, order[~is_taken[order]][: counts["random"]]])
    return chosen.astype(np.int32)


def top_nodes(
    table: Any, scores: Scores, blocks: NodeBlocks, count: int, taken: IntArray
) -> IntArray:
    """The `count` nodes of highest score that are not taken, highest first, equal ones by id.

    The driver gets at most `count` nodes of every block.
    """
    rows = table.mapInArrow(make_top(scores, blocks, count, taken), TOP_SCHEMA).collect()
    nodes = np.concatenate([np.frombuffer(bytes(row.nodes), np.int32) for row in rows])
    found = np.concatenate([np.frombuffer(bytes(row.scores), np.float64) for row in rows])
    return nodes[np.lexsort((nodes, -found))[:count]]


def make_top(
    scores: Scores, blocks: NodeBlocks, count: int, taken: IntArray
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    owner, number = blocks.split(taken)

    def top(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row, block in enumerate(batch.column("block").to_pylist()):
                found = scores(batch, row)
                is_free = np.ones(len(found), np.bool_)
                is_free[number[owner == block]] = False
                free = np.flatnonzero(is_free)
                best = free[np.argsort(-found[free], kind="stable")[:count]]
                nodes = (best * blocks.num_blocks + block).astype(np.int32)
                cells = [[nodes.tobytes()], [found[best].astype(np.float64).tobytes()]]
                yield pa.record_batch(cells, schema=TOP)

    return top


def degrees_of(batch: pa.RecordBatch, row: int) -> NDArray[Any]:
    return array_of(batch.column("degrees")[row], np.int64)


def make_rank_scores(total: float) -> Scores:
    """Ranks as a share of all, in float32, which drops differences by the order of sums."""

    def scores(batch: pa.RecordBatch, row: int) -> NDArray[Any]:
        return (array_of(batch.column("previous")[row], np.float64) / total).astype(np.float32)

    return scores


def pagerank(work: WorkFolder, adjacency: Any, blocks: NodeBlocks) -> tuple[Any, float, int]:
    """The iteration of `graph.pagerank`, a step for each; the ranks are in the column `previous`.

    Returns the rows of the last step, the sum of all ranks, and the number of iterations.
    """
    done = [number for number in range(MAX_ITERATIONS + 1) if work.has(rank_step(number))]
    iteration = max(done, default=0)
    if not done:
        table = work.read("blocks", "block", "degrees")
        first = make_first_ranks(blocks, total_degree(work))
        work.write(table.mapInArrow(first, RANK_SCHEMA), rank_step(0))
    weights = chebyshev_weights()
    while True:
        newest = work.read(rank_step(iteration))
        if iteration:
            change, total = newest.selectExpr("sum(change)", "sum(total)").first()
            if change < TOLERANCE * total or iteration == MAX_ITERATIONS:
                return newest, total, iteration
        receive = make_receive_shares(weights[iteration])
        iteration += 1
        table = exchange(adjacency, newest, newest, send_shares, receive, RANK_SCHEMA)
        work.write(table, rank_step(iteration))
        if iteration > 1:
            work.remove(rank_step(iteration - 2))


def chebyshev_weights() -> list[float]:
    """The weights of the iterations; the first step is a plain one."""
    weights = [1.0]
    for number in range(MAX_ITERATIONS):
        weights.append(1 / (1 - DAMPING**2 * weights[-1] / (2 if number == 0 else 4)))
    return weights


def rank_step(iteration: int) -> str:
    return f"rank-{iteration:03}"


def total_degree(work: WorkFolder) -> int:
    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            totals = [int(array_of(cell, np.int64).sum()) for cell in batch.column("degrees")]
            yield pa.record_batch([pa.array(totals, pa.int64())], names=["total"])

    table = work.read("blocks", "degrees").mapInArrow(add, "total long")
    return int(table.selectExpr("sum(total)").first()[0])


def make_first_ranks(
    blocks: NodeBlocks, num_edges: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def start(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row, block in enumerate(batch.column("block").to_pylist()):
                degrees = array_of(batch.column("degrees")[row], np.int64)
                factor = DAMPING / (1 - DAMPING) * blocks.num_nodes / max(1, num_edges)
                ranks = 1 + degrees * factor
                yield rank_row(block, ranks, ranks, degrees, 0.0, 0.0).to_batches()[0]

    return start


def rank_row(
    block: int,
    ranks: NDArray[Any],
    previous: NDArray[Any],
    degrees: NDArray[Any],
    change: float,
    total: float,
) -> pa.Table:
    cells = [[block], *([each.tobytes()] for each in (ranks, previous, degrees)), [change], [total]]
    return pa.table(cells, schema=RANK)


def send_shares(edges: pa.Table, state: pa.Table) -> pa.Table:
    """What the nodes of a block give to each target: the sum of their shares."""
    bounds, targets, offsets, sources = edge_arrays(edges)
    ranks, degrees = (
        array_of(state["ranks"][0], np.float64),
        array_of(state["degrees"][0], np.int64),
    )
    share = ranks * (DAMPING / np.maximum(degrees, 1))
    sums = sum_over_sources(offsets, sources, share)
    source, nothing = state["block"][0].as_py(), np.empty(0, np.int32)
    ends = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    parts = ((block, slice(*part)) for block, part in enumerate(ends) if part[0] < part[1])
    return message_table((b, source, targets[part], nothing, sums[part]) for b, part in parts)


def make_receive_shares(weight: float) -> TableFunction:
    def receive(messages: pa.Table, states: pa.Table) -> pa.Table:
        ranks, before, degrees = (
            array_of(states[name][0], dtype)
            for name, dtype in (
                ("ranks", np.float64),
                ("previous", np.float64),
                ("degrees", np.int64),
            )
        )
        received = np.zeros(len(ranks))
        for row in np.argsort(messages["source"].to_numpy()).tolist():  # one order of additions
            nodes = array_of(messages["nodes"][row], np.int32)
            received[nodes] += array_of(messages["data"][row], np.float64)
        received += 1
        change, total = float(np.abs(received - ranks).sum()), float(ranks.sum())
        updated = (received - before) * weight + before
        return rank_row(states["block"][0].as_py(), updated, ranks, degrees, change, total)

    return receive
