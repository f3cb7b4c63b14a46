"""Tokens of blocks, put together to chunks of consecutive nodes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nodepiece.compiled import njit
from nodepiece.engines.block_edges import array_of
from nodepiece.engines.nearest_steps import Search, anchor_rows, offsets_of
from nodepiece.graph.arrays import IntArray
from nodepiece.tokenizer.context import sample_row
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.tokens import NO_DISTANCE, Salts
from nodepiece.tokenizer.vocabulary import Vocabulary

PARTS = ("anchors", "distances", "relations", "set_counts", "set_values")
DTYPES = (np.int32, np.int16, np.int32, np.int32, np.int32)
CHUNK_SCHEMA = "chunk int, block int, " + ", ".join(f"{name} binary" for name in PARTS)
CHUNK = pa.schema(
    [
        ("chunk", pa.int32()),
        ("block", pa.int32()),  # -1: of all blocks
        ("anchors", pa.large_binary()),  # int32 tokens, k for each node
        ("distances", pa.large_binary()),  # int16
        ("relations", pa.large_binary()),  # int32 tokens, m for each node
        ("set_counts", pa.large_binary()),  # int32
        ("set_values", pa.large_binary()),  # int32
    ]
)


@dataclass(frozen=True)
class TokenPlan:
    """What is needed to write the tokens of a node."""

    search: Search
    settings: TokenizerSettings
    num_relations: int  # direct and inverse
    salts: Salts

    @property
    def vocabulary(self) -> Vocabulary:
        """A vocabulary with token ids, but without the anchors themselves."""
        none = np.zeros(self.search.num_anchors, np.int32)
        num_nodes = self.search.blocks.num_nodes
        return Vocabulary(none, self.num_relations, num_nodes, "", self.settings)


def make_tokens_of_block(
    plan: TokenPlan,
) -> Callable[[tuple[Any, ...], pa.Table, pa.Table], pa.Table]:
    """A function from the hops of a block and its sets of relations to rows of tokens by chunk."""

    def tokens_of_block(key: tuple[Any, ...], states: pa.Table, block: pa.Table) -> pa.Table:
        number, vocabulary, settings = key[0].as_py(), plan.vocabulary, plan.settings
        nearest, distances = anchor_rows(plan.search, number, states)
        anchors = vocabulary.anchor_tokens(nearest)
        if not settings.distances:
            distances[:] = NO_DISTANCE
        counts, values = (array_of(block[name][0], np.int32) for name in PARTS[3:])
        sampled = sample_block(
            number,
            plan.search.blocks.num_blocks,
            offsets_of(counts),
            values,
            settings.relations_per_node,
            plan.num_relations,
            plan.salts.relations,
            settings.relation_order == "ascending",
        )
        return rows_by_chunk(
            plan, number, (anchors, distances, vocabulary.relation_tokens(sampled)), counts, values
        )

    return tokens_of_block


@njit(cache=True)
def sample_block(block, num_blocks, offsets, values, m, padding, salt, ascending):  # type: ignore[no-untyped-def]
    """m relations of every node of a block, as on one machine: (num_nodes in the block, m)."""
    sample = np.full((len(offsets) - 1, m), padding, np.int32)
    for number in range(len(offsets) - 1):
        candidates = values[offsets[number] : offsets[number + 1]]
        sample_row(
            candidates, np.int64(number) * num_blocks + block, salt, ascending, sample[number]
        )
    return sample


def rows_by_chunk(
    plan: TokenPlan, block: int, tokens: tuple[Any, ...], counts: IntArray, values: IntArray
) -> pa.Table:
    rows: list[list[Any]] = [[], [], *([] for _ in PARTS)]
    step, offsets = plan.search.blocks.chunk_rows, offsets_of(counts)
    for chunk, start in enumerate(range(0, len(counts), step)):
        part = slice(start, min(start + step, len(counts)))
        arrays = [each[part] for each in tokens]
        arrays += [counts[part], values[offsets[part.start] : offsets[part.stop]]]
        for column, cell in zip(rows, (chunk, block, *(a.tobytes() for a in arrays)), strict=True):
            column.append(cell)
    return pa.table(rows, schema=CHUNK)


def make_whole_chunk(plan: TokenPlan) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    """A function from the rows of a chunk, one for each block, to one row in the order of ids."""
    blocks, settings = plan.search.blocks, plan.settings
    widths = settings.anchors_per_node, settings.anchors_per_node, settings.relations_per_node

    def whole_chunk(key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        chunk = key[0].as_py()
        size = len(blocks.chunk_nodes(chunk))
        tables = [
            np.empty((size, width), dtype) for width, dtype in zip(widths, DTYPES, strict=False)
        ]
        counts = np.empty(size, np.int32)
        of_block = {block: row for row, block in enumerate(rows["block"].to_pylist())}
        for block, row in of_block.items():
            part = slice(block, None, blocks.num_blocks)
            for table, name, dtype in zip(tables, PARTS, DTYPES, strict=False):
                table[part] = array_of(rows[name][row], dtype).reshape(-1, table.shape[1])
            counts[part] = array_of(rows["set_counts"][row], np.int32)
        values, offsets = np.empty(counts.sum(), np.int32), offsets_of(counts)
        for block, row in of_block.items():
            part = slice(block, None, blocks.num_blocks)
            own = array_of(rows["set_values"][row], np.int32)
            place_values(offsets[:-1][part], counts[part], own, values)
        arrays = [*tables, counts, values]
        return pa.table([[chunk], [-1], *([each.tobytes()] for each in arrays)], schema=CHUNK)

    return whole_chunk


@njit(cache=True)
def place_values(starts, counts, values, target):  # type: ignore[no-untyped-def]
    """Copy runs of values, one after the other, to where they start in the target."""
    position = 0
    for run in range(len(starts)):
        for place in range(counts[run]):
            target[starts[run] + place] = values[position]
            position += 1
