"""Adam on the rows that a step uses, at a cost that does not grow with the table.

Adam without momentum (beta 1 = 0) leaves a row without a gradient where it is, and only its mean
square decays, by the same factor in every step. So the decay of many steps can be applied when the
row is used next, and the result is that of Adam on the whole table. Rows that are used rarely have
no use for momentum, which would go on in the direction of a gradient of long ago.
"""

import numpy as np
import torch
from torch import Tensor

from nodepiece.encoders.rows_in_use import RowsInUse
from nodepiece.errors import InputError
from nodepiece.training.row_adam_cpu import update_rows

DECAY, EPSILON = 0.999, 1e-8  # beta 2 and epsilon, as those of the other weights


class RowAdam:
    """The optimizer of one table, which updates the rows of a step."""

    def __init__(self, used: RowsInUse) -> None:
        table = used.table
        self.used = used
        self.square = torch.zeros_like(table, requires_grad=False)  # mean square of gradients
        self.last = torch.zeros(len(table), dtype=torch.int32, device=table.device)  # step
        self.step = torch.zeros(1, dtype=torch.int32, device=table.device)  # steps so far

    def update(self, rate: Tensor | float) -> None:
        """Update the rows of this step."""
        rows, values = self.used.rows, self.used.values
        if rows is None or values is None or values.grad is None:
            raise RuntimeError("no rows of the table were used in this step")
        self.step += 1
        if rows.is_cuda:
            self._update_on_device(rows, values, values.grad, rate)
        else:
            self._update_on_cpu(rows, values.grad, float(rate))

    def _update_on_cpu(self, rows: Tensor, gradient: Tensor, rate: float) -> None:
        step = int(self.step)
        table = self.used.table.detach().numpy()
        constants = np.array([rate, DECAY, 1 - DECAY**step, EPSILON], table.dtype)
        update_rows(
            table,
            self.square.numpy(),
            self.last.numpy(),
            rows.numpy(),
            gradient.contiguous().numpy(),
            constants,
            step,
        )

    def _update_on_device(
        self, rows: Tensor, values: Tensor, gradient: Tensor, rate: Tensor | float
    ) -> None:
        """Without waiting for the device; shapes depend only on sizes."""
        gradient = with_first_repeated(rows, gradient)
        age = (self.step - self.last.index_select(0, rows)).to(values.dtype)
        square = self.square.index_select(0, rows) * DECAY ** age[:, None]
        square.addcmul_(gradient, gradient, value=1 - DECAY)
        seen = 1 - DECAY ** self.step.double()  # how much of a mean the sums so far are
        scale = (square / seen.to(square.dtype)).sqrt_().add_(EPSILON)
        with torch.no_grad():
            # Rows that are repeated have equal values, so the order of writes is the same to them.
            self.used.table.index_copy_(0, rows, values.detach() - rate * gradient / scale)
        self.square.index_copy_(0, rows, square)
        self.last.index_copy_(0, rows, self.step.expand(len(rows)))

    def state(self) -> dict[str, Tensor]:
        return {"square": self.square, "last": self.last, "step": self.step}

    def load(self, state: dict[str, Tensor]) -> None:
        """Copy a state in place."""
        for name, mine in self.state().items():
            if name not in state or state[name].shape != mine.shape:
                raise InputError(
                    "the checkpoint has no state of the rows that this run updates; train again "
                    "without --resume"
                )
            mine.copy_(state[name])


def with_first_repeated(rows: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of each row, also where it is repeated: after the distinct ones, the first is.

    See `distinct_of_fixed_size`.
    """
    place = torch.arange(len(rows), device=rows.device)
    return gradient.index_select(0, torch.where(rows == rows[:1], 0, place))
