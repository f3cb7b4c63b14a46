"""The rows of a large table that one step uses, as a small table with a gradient of its own.

A lookup in a trained table has a gradient as large as the table, nearly all of it zeros. Here the
distinct rows of a step are copied to a small tensor, and the gradient is that of the copy.
"""

import torch
from torch import Tensor, nn


class RowsInUse:
    """Copies the rows of a table that a step uses. `rows` and `values` are those of the step."""

    def __init__(self, table: nn.Parameter) -> None:
        self.table = table  # (num_rows, dim)
        self.rows: Tensor | None = None  # (num_distinct,)
        self.values: Tensor | None = None  # (num_distinct, dim), with a gradient after backward

    def look_up(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """A copy of the distinct rows, and the place of every id in it, shaped like `ids`."""
        if self.rows is not None:
            raise RuntimeError("a step looks up its rows once; clear() before the next step")
        distinct, place = distinct_ids(ids.flatten())
        self.rows = distinct.long()
        self.values = self.table.detach().index_select(0, distinct).requires_grad_()
        return self.values, place.view(ids.shape)

    def clear(self) -> None:
        """Forget the rows, before the next step."""
        self.rows = self.values = None


def distinct_ids(ids: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct ids, and the place of every id among them: (num_distinct,), (num_ids,).

    On a GPU there are as many places as ids, so that shapes do not depend on values: the first
    ones are the distinct ids, ascending, and the others repeat the first.
    """
    if not ids.is_cuda:
        distinct, place = torch.unique(ids, return_inverse=True)
        return distinct, place
    return distinct_of_fixed_size(ids)


def distinct_of_fixed_size(ids: Tensor) -> tuple[Tensor, Tensor]:
    """What `distinct_ids` returns on a GPU; without waiting for the device, on any device."""
    ordered, order = torch.sort(ids, stable=True)
    is_first = torch.ones_like(ordered, dtype=torch.bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    place_in_order = is_first.long().cumsum(0) - 1
    place = torch.empty_like(order).scatter_(0, order, place_in_order)
    distinct = ordered[:1].expand(len(ordered)).clone()
    distinct.scatter_(0, place_in_order, ordered)  # equal ids write the same value
    return distinct, place
