"""Epochs of training; the same code for CPU and CUDA."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import torch
from torch import Tensor, nn

from nodepiece.encoders.parameters import use_generator
from nodepiece.encoders.rows_in_use import RowsInUse
from nodepiece.errors import InputError
from nodepiece.training.batches import Batches
from nodepiece.training.distribution import current_processes
from nodepiece.training.row_adam import RowAdam
from nodepiece.training.settings import TrainingSettings

Batch = TypeVar("Batch")


@dataclass(frozen=True)
class MidEpoch:
    """Where an epoch was stopped, to go on from there."""

    step: int  # steps done
    loss_sum: Tensor  # () of these steps
    generator: Tensor  # the state of the generator after them


WARMUP_STEPS = 3  # run before a CUDA graph is captured, so that libraries are initialized


class Trainer(Generic[Batch]):
    """The state of training: weights, optimizer, generator, position in the epoch.

    On CUDA the whole step (take the batch, loss, gradients, clipping, Adam) is captured once as
    a CUDA graph and replayed; the host waits for the device once an epoch. So neither `loss` nor
    `after_step` may wait for the device or have shapes that depend on values. Several processes
    capture a step in two parts and average their gradients in between.
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Batches[Batch],
        loss: Callable[[Batch], Tensor],  # of the model, (): minimized by each step
        settings: TrainingSettings,
        *,
        generator: torch.Generator,  # on the device of the model; its dropout draws from it too
        after_step: Callable[[], None] | None = None,  # such as a projection of the weights
        rows_in_use: Sequence[RowsInUse] = (),  # of tables of which only these are updated
    ) -> None:
        self.model, self.batches, self.loss, self.settings = model, batches, loss, settings
        self.generator, self.after_step = generator, after_step
        self.seed, self.processes = generator.initial_seed(), current_processes()
        is_alone = self.processes.count == 1
        self.dropout_generator = generator if is_alone else torch.Generator(generator.device)
        use_generator(model, self.dropout_generator)
        self.processes.broadcast(model.state_dict().values())
        self.device = generator.device
        self.on_cuda = self.device.type == "cuda"
        rate = settings.learning_rate
        self.row_optimizers = [RowAdam(used) for used in rows_in_use]
        by_rows = {id(used.table) for used in rows_in_use}
        self.optimizer = torch.optim.Adam(
            [parameter for parameter in model.parameters() if id(parameter) not in by_rows],
            lr=torch.tensor(rate, device=self.device) if self.on_cuda else rate,
            fused=True,
            capturable=self.on_cuda,
        )
        self.step_of_epoch = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.loss_sum = torch.zeros((), device=self.device)
        self.steps_done = 0  # in this epoch, also known to the host
        self.epoch_generator = generator.get_state()  # when this epoch began
        self.resumed_at: MidEpoch | None = None  # where the next epoch goes on
        self.captured: list[Callable[[], None]] = []  # the captured parts of a step, on CUDA
        self.num_warmup_steps = 0  # run with the current shapes
        self.stream = torch.cuda.Stream(self.device) if self.on_cuda else None  # type: ignore[no-untyped-call]

    def start_epoch(self, epoch: int) -> None:
        """Prepare the generators of an epoch; called before anything is drawn.

        Several processes draw batches and negatives alike, as one process does, and take their
        parts; dropout differs between them. Its seed follows from the epoch, so that a run can be
        resumed from the checkpoint of the first process. The state of the generator is kept, so
        that an epoch that is stopped can be prepared again as it was.
        """
        if self.processes.count > 1:
            self.dropout_generator.manual_seed(self.processes.seed(self.seed, epoch))
        self.epoch_generator = self.generator.get_state()

    def run_epoch(self, epoch: int, between_steps: Callable[[int, int], None]) -> float:
        """Train one epoch (counted from 0) to its end and return its mean loss."""
        loss = self.run_steps(epoch, between_steps, should_stop=lambda: False)
        assert loss is not None, "nobody asked for a stop"
        return loss

    def run_steps(
        self,
        epoch: int,
        between_steps: Callable[[int, int], None],
        *,
        should_stop: Callable[[], bool],
        rate: Callable[[], float] | None = None,
    ) -> float | None:
        """Train one epoch (counted from 0), or the rest of one that was stopped.

        Returns its mean loss, or None where `should_stop`, called after every step but the last,
        returned True. `between_steps(done, total)` is called after every step, for progress.
        `rate()` is the learning rate of the next step; without it, an epoch has one rate.
        """
        self._prepare_epoch(epoch)
        total = self.batches.num_batches
        with matmul_precision(self.settings.precision):
            while self.steps_done < total:
                if rate is not None:
                    self.set_learning_rate(rate())
                self._step_or_replay()
                self.steps_done += 1
                between_steps(self.steps_done, total)
                if self.steps_done < total and should_stop():
                    return None
        self.steps_done = 0
        self._average_loss_and_share_buffers()
        mean_loss = float(self.loss_sum) / total
        if not math.isfinite(mean_loss) or not self.has_finite_weights():
            raise InputError(
                f"training diverged in epoch {epoch + 1} (its loss is {mean_loss}); lower "
                "training.learning_rate, or set training.clip_gradient = 1.0"
            )
        return mean_loss

    def _prepare_epoch(self, epoch: int) -> None:
        """Write the batches of an epoch; one that goes on has the batches it had."""
        self.model.train()
        self.set_learning_rate(learning_rate(self.settings, epoch))
        if self.batches.start_epoch(generator=self.generator):
            self.discard_captured()  # its shapes have changed
        self.step_of_epoch.zero_()
        self.loss_sum.zero_()
        self.steps_done = 0
        if (at := self.resumed_at) is not None:
            self.resumed_at, self.steps_done = None, at.step
            self.step_of_epoch.fill_(at.step)
            self.loss_sum.copy_(at.loss_sum)
            self.generator.set_state(at.generator)

    @property
    def mean_loss(self) -> float:
        """Of the steps of this epoch so far; waits for the device."""
        return float(self.loss_sum) / max(1, self.steps_done)

    def discard_captured(self) -> None:
        """Discard the captured step, as its tensors changed; the next steps capture it again."""
        self.captured, self.num_warmup_steps = [], 0

    def _average_loss_and_share_buffers(self) -> None:
        """Average the loss over the processes, and broadcast the buffers of the model."""
        self.processes.average([self.loss_sum])
        trained = dict(self.model.named_parameters())
        state = self.model.state_dict().items()
        self.processes.broadcast(value for name, value in state if name not in trained)

    def has_finite_weights(self) -> bool:
        """Whether all weights are finite, also after the last step, which no loss reflects yet."""
        parts = [parameter.isfinite().all() for parameter in self.model.parameters()]
        return bool(torch.stack(parts).all())

    def set_learning_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if self.on_cuda:
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def _step_or_replay(self) -> None:
        if not self.on_cuda:
            self._step()
            return
        if not self.captured and self.num_warmup_steps < WARMUP_STEPS:
            self._warmup_step()
            self.num_warmup_steps += 1
            return
        if not self.captured:
            self._capture_graph()
        for part in self.captured:
            part()

    def _warmup_step(self) -> None:
        """Run a step on a side stream, as CUDA graph capture requires of the steps before it."""
        with self._side_stream() as stream, torch.cuda.stream(stream):
            self._step()

    @contextmanager
    def _side_stream(self) -> Iterator[torch.cuda.Stream]:
        """A side stream, ordered after earlier and before later work of the current stream."""
        current = torch.cuda.current_stream(self.device)
        stream = cast(torch.cuda.Stream, self.stream)
        stream.wait_stream(current)
        yield stream
        current.wait_stream(stream)

    def _capture_graph(self) -> None:
        """Capture the step as a CUDA graph, or as two around the averaging of gradients."""
        self.optimizer.zero_grad(set_to_none=True)
        if self.processes.count == 1:
            self.captured = [self._capture(self._step).replay]
            return
        compute = self._capture(self._compute_gradients)
        update = self._capture(self._update_weights)
        self.captured = [compute.replay, self._average_gradients, update.replay]

    def _capture(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """A CUDA graph that does `work` when it is replayed.

        PyTorch writes the seed and offset of the generator to the device: for the capture on the
        capturing stream, and before each replay on the current stream. The streams are ordered so
        that the offset of the capture, 0, does not overwrite that of a replay. Without this order
        it did, while other processes used the GPU.
        """
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        if self.dropout_generator is not self.generator:
            graph.register_generator_state(self.dropout_generator)
        with self._side_stream() as stream, torch.cuda.graph(graph, stream=stream):
            work()
        return graph

    def _step(self) -> None:
        self._compute_gradients()
        self._average_gradients()
        self._update_weights()

    def _compute_gradients(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        for each in self.row_optimizers:
            each.used.clear()
        mixed = self.settings.precision == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=mixed):
            loss = self.loss(self.batches.take(self.step_of_epoch))
        loss.backward()  # type: ignore[no-untyped-call]
        self.loss_sum += loss.detach()

    def _average_gradients(self) -> None:
        parameters = self.model.parameters()
        self.processes.average(p.grad for p in parameters if p.grad is not None)

    def _update_weights(self) -> None:
        if self.settings.clip_gradient:
            in_use = [each.used.values for each in self.row_optimizers]
            clipped = [*self.model.parameters(), *(rows for rows in in_use if rows is not None)]
            torch.nn.utils.clip_grad_norm_(clipped, self.settings.clip_gradient)
        self.optimizer.step()
        for each in self.row_optimizers:
            each.update(self.optimizer.param_groups[0]["lr"])
        if self.after_step is not None:
            with torch.no_grad():
                self.after_step()
        self.step_of_epoch += 1


def learning_rate(settings: TrainingSettings, epoch: int) -> float:
    """The learning rate of an epoch, counted from 0."""
    rate = settings.learning_rate
    if epoch < settings.warmup_epochs:
        return rate * (epoch + 1) / (settings.warmup_epochs + 1)
    if settings.schedule == "cosine":
        return rate * (1 + math.cos(math.pi * epoch / settings.epochs)) / 2
    if settings.schedule == "step" and 2 * epoch >= settings.epochs:
        return rate / 10
    return rate


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Allow TF32 for float32 products inside the block, unless `precision` is "float32"."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
