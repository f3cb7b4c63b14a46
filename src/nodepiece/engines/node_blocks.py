"""The nodes of a graph, divided into blocks that one task works on."""

from dataclasses import dataclass

import numpy as np

from nodepiece.graph.arrays import IntArray, LongArray


@dataclass(frozen=True)
class NodeBlocks:
    """Node v is number v // num_blocks of block v % num_blocks.

    First nodes of a file tend to be hubs, so consecutive ids are in different blocks. A chunk is
    a range of consecutive ids: `chunk_rows` nodes of every block.
    """

    num_nodes: int
    num_blocks: int
    chunk_rows: int = 1  # of a block

    def size(self, block: int) -> int:
        """The number of nodes in a block."""
        return (self.num_nodes - block + self.num_blocks - 1) // self.num_blocks

    @property
    def max_size(self) -> int:
        return self.size(0)

    @property
    def chunk_size(self) -> int:
        """The number of nodes in a chunk; the last one may have fewer."""
        return self.chunk_rows * self.num_blocks

    @property
    def num_chunks(self) -> int:
        return -(-self.num_nodes // self.chunk_size)

    def chunk_nodes(self, chunk: int) -> range:
        start = chunk * self.chunk_size
        return range(start, min(start + self.chunk_size, self.num_nodes))

    def split(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """The blocks of nodes, and their numbers within these."""
        number, block = np.divmod(nodes, np.int32(self.num_blocks))
        return block, number

    def bit_offsets(self) -> LongArray:
        """(num_blocks + 1,) bytes before each block, in packed bits of all blocks."""
        sizes = np.array([self.size(block) for block in range(self.num_blocks)], np.int64)
        return np.concatenate([[0], np.cumsum((sizes + 7) // 8)])


def blocks_for(num_nodes: int, num_blocks: int, *, chunk_size: int = 1 << 16) -> NodeBlocks:
    """Blocks of a graph, with chunks of about `chunk_size` nodes."""
    num_blocks = max(1, min(num_blocks, num_nodes))
    return NodeBlocks(num_nodes, num_blocks, max(1, chunk_size // num_blocks))
