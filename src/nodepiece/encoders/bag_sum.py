"""Sums over bags of rows, forwards and backwards without atomics.

The factorized MLP needs one operation: `bag_sum(rows, bags)[i]` is the sum of the rows in bag i.
Its gradient is the same operation over the transposed bags (for each row, the bags it is in), so
both directions only read rows, with a fixed order of additions: the same result on every run, no
atomics, and no copy of a row for each of its uses.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

CHUNK = 128  # a GPU program adds up at most so many rows; longer bags are cut into chunks
HAS_TRITON = find_spec("triton") is not None  # comes with PyTorch for CUDA


def has_kernel(*rows: Tensor) -> bool:
    """Whether our Triton kernel, which sums in float32, can sum these rows."""
    return HAS_TRITON and all(part.is_cuda and part.dtype != torch.float64 for part in rows)


@dataclass(frozen=True)
class Bags:
    """The rows in each bag. All shapes depend only on sizes, never on the contents."""

    members: Tensor  # (num_members,) row ids, bag after bag
    offsets: Tensor  # (num_bags + 1,) where each bag starts and the last one ends
    num_rows: int
    width: int | None = None  # members of every bag, where all have equally many

    @property
    def num_bags(self) -> int:
        return len(self.offsets) - 1

    def copy_from(self, other: "Bags") -> None:
        """Copy the contents of bags of equal sizes in place, at the addresses of a CUDA graph."""
        self.members.copy_(other.members)
        self.offsets.copy_(other.offsets)
        if "chunks" in vars(self):  # otherwise not computed yet
            for mine, theirs in zip(self.chunks, other.chunks, strict=True):
                mine.copy_(theirs)

    @cached_property
    def chunks(self) -> tuple[Tensor, Tensor]:
        return cut_into_chunks(self)

    def transposed(self) -> "Bags":
        """For every row, the bags that hold it, in ascending order. Costs one stable sort."""
        members, order = torch.sort(self.members, stable=True)
        if self.width is not None:
            bag_of = (order // max(1, self.width)).int()
        else:
            bag_of = torch.searchsorted(self.offsets, order.int(), right=True, out_int32=True) - 1
        rows = torch.arange(self.num_rows + 1, device=members.device, dtype=members.dtype)
        offsets = torch.searchsorted(members, rows, out_int32=True)
        return Bags(bag_of, offsets, self.num_bags)


def bags_of_width(members: Tensor, num_rows: int) -> Bags:
    """Bags that all hold equally many rows: members (num_bags, width)."""
    num_bags, width = members.shape
    offsets = torch.arange(num_bags + 1, device=members.device, dtype=torch.int32) * width
    return Bags(members.int().flatten(), offsets, num_rows, width=width)


def bag_sum(rows: Tensor, bags: Bags, transposed: Bags) -> Tensor:
    """(num_rows, dim) -> (num_bags, dim); callers keep `transposed`, which is bags.transposed()."""
    return _BagSum.apply(rows, bags, transposed)  # type: ignore[no-untyped-call]


class _BagSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, bags: Bags, transposed: Bags) -> Tensor:
        ctx.transposed = transposed
        return sum_members(rows, bags)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return sum_members(gradient.contiguous(), ctx.transposed), None, None


def sum_members(rows: Tensor, bags: Bags) -> Tensor:
    """The sum of each bag; on a GPU in two levels, so that no program gets a long bag."""
    if not rows.is_cuda:
        return sum_rows(rows, bags.members, bags.offsets)
    if bags.width is not None and bags.width <= CHUNK:
        return sum_rows(rows, bags.members, bags.offsets)
    return sum_chunks(bags, lambda chunks: sum_rows(rows, bags.members, chunks))


def sum_chunks(bags: Bags, sums_of: Callable[[Tensor], Tensor]) -> Tensor:
    """The sum of each bag in two levels: `sums_of` sums chunks, given their offsets; then these."""
    chunks, bag_chunks = bags.chunks
    partial = sums_of(chunks)
    if has_kernel(partial):
        from nodepiece.encoders import bag_sum_cuda  # imports Triton

        return bag_sum_cuda.sum_runs(partial, bag_chunks)
    every = torch.arange(len(partial), device=partial.device, dtype=torch.int32)
    return sum_rows(partial, every, bag_chunks)


def sum_rows(rows: Tensor, members: Tensor, offsets: Tensor) -> Tensor:
    """One level of sums, by the kernel for the device."""
    if has_kernel(rows):
        from nodepiece.encoders import bag_sum_cuda  # imports Triton

        return bag_sum_cuda.sum_rows(rows, members, offsets)
    return embedding_bag(members, rows, offsets, mode="sum", include_last_offset=True)


def cut_into_chunks(bags: Bags) -> tuple[Tensor, Tensor]:
    """Offsets of chunks of at most CHUNK members, and for every bag where its chunks start.

    There are as many chunks as there could be at most for these sizes; those left over are empty.
    """
    sizes = bags.offsets.diff()
    per_bag = (sizes + CHUNK - 1) // CHUNK
    bag_chunks = torch.nn.functional.pad(per_bag.cumsum(0, dtype=torch.int32), (1, 0))
    most = bags.num_bags + len(bags.members) // CHUNK
    chunk = torch.arange(most + 1, device=sizes.device, dtype=torch.int32)
    bag_of = torch.searchsorted(bag_chunks, chunk, right=True, out_int32=True) - 1
    inside = bag_of < bags.num_bags
    bag_of = bag_of.clamp_max(bags.num_bags - 1)
    start = bags.offsets[bag_of] + CHUNK * (chunk - bag_chunks[bag_of])
    end = torch.full_like(start, len(bags.members))
    return torch.where(inside, torch.minimum(start, bags.offsets[bag_of + 1]), end), bag_chunks
