"""The edges of a block of nodes, grouped by the node at the other end."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodepiece.engines.node_blocks import NodeBlocks
from nodepiece.graph.arrays import IntArray, LongArray


@dataclass(frozen=True, eq=False)
class BlockEdges:
    """All edges that leave the nodes of a block, by target.

    Targets of block b are the slice bounds[b]:bounds[b + 1]; the sources of target i are the slice
    offsets[i]:offsets[i + 1], a source twice where two edges lead to the target. A message to a
    target is computed from all its sources in the block at once.
    """

    bounds: LongArray  # (num_blocks + 1,)
    targets: IntArray  # (num_targets,) numbers within their blocks, ascending in each
    offsets: LongArray  # (num_targets + 1,)
    sources: IntArray  # (num_edges,) numbers within this block


@dataclass(frozen=True, eq=False)
class Block:
    """What is known of the nodes of a block: edges, degrees, sets of relations."""

    edges: BlockEdges
    degrees: LongArray  # (num_nodes in the block,)
    set_counts: IntArray  # (num_nodes in the block,) distinct relations of every node
    set_values: IntArray  # (total,) ascending for each node
    num_duplicates: int  # facts that were stated before, counted at their heads


def build_block(
    blocks: NodeBlocks,
    block: int,
    edges: tuple[IntArray, IntArray, IntArray],  # numbers of sources, relations, targets by id
    *,
    num_direct: int,
    drop_duplicates: bool,
) -> Block:
    """The block of given edges, inverses included, in any order."""
    source, relation, target = edges
    size = blocks.size(block)
    order = np.lexsort((target, source.astype(np.int64) * (2 * num_direct) + relation))
    source, relation, target = source[order], relation[order], target[order]
    num_duplicates = 0
    if drop_duplicates and len(source):
        is_new = np.ones(len(source), np.bool_)
        is_new[1:] = (np.diff(source) | np.diff(relation) | np.diff(target)) != 0
        num_duplicates = int((~is_new & (relation < num_direct)).sum())
        source, relation, target = source[is_new], relation[is_new], target[is_new]
    is_first = np.ones(len(source), np.bool_)
    is_first[1:] = (np.diff(source) | np.diff(relation)) != 0
    return Block(
        group_by_target(blocks, source, target),
        np.bincount(source, minlength=size),
        np.bincount(source[is_first], minlength=size).astype(np.int32),
        relation[is_first],
        num_duplicates,
    )


def group_by_target(blocks: NodeBlocks, source: IntArray, target: IntArray) -> BlockEdges:
    block, number = blocks.split(target)
    key = block.astype(np.int64) * blocks.max_size + number
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    targets = ordered[starts]
    limits = np.arange(blocks.num_blocks + 1, dtype=np.int64) * blocks.max_size
    return BlockEdges(
        np.searchsorted(targets, limits),
        (targets % blocks.max_size).astype(np.int32),
        np.concatenate([starts, [len(ordered)]]).astype(np.int64),
        source[order],
    )


def array_of(cell: Any, dtype: Any) -> NDArray[Any]:
    """The array in a binary cell of an Arrow column, without copying it."""
    return np.frombuffer(cell.as_buffer(), dtype)
