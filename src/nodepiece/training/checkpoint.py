"""Checkpoints: the state of training between two steps, to resume from."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.files import atomic_file
from nodepiece.renamed import current_tensor
from nodepiece.training.trainer import MidEpoch, Trainer

FORMAT_VERSION = 2  # 1: before `nodepiece.renamed`
HEADER = "nodepiece"


@dataclass
class Progress:
    """The progress of training so far."""

    epoch: int = 0  # epochs done
    best_metric: float | None = None  # of validation
    best_epoch: int | None = None
    since_best: int = 0  # validations
    seconds: float = 0.0  # of training so far
    capacity: int = 0  # of the batches, see Batches
    history: list[dict[str, Any]] = field(default_factory=list)  # one record an epoch
    step: int = 0  # steps done of the next epoch
    num_steps: int = 0  # steps done in all
    best_step: int | None = None  # steps done when the best weights were validated
    stages: list[int] = field(default_factory=list)  # see `training/stages.py`
    validate_steps: int = 0
    is_timed: bool = False  # whether a clock decided them
    minutes: float | None = None  # that the run was given, evaluation included, if it was
    minutes_left: float | None = None  # of these
    ranked: dict[str, int] = field(default_factory=dict)  # how many facts, by these minutes


def save_checkpoint(
    path: Path, trainer: Trainer[Any], progress: Progress, best: dict[str, Tensor] | None
) -> None:
    """Write weights, best weights so far, optimizer, generator and progress to one file.

    With several processes only the first one writes, as all have the same weights.
    """
    if not trainer.processes.is_first:
        return
    progress.capacity = trainer.batches.capacity
    tensors = {f"model/{name}": value for name, value in trainer.model.state_dict().items()}
    tensors |= {f"best/{name}": value for name, value in (best or {}).items()}
    for index, state in trainer.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{index}/{name}": value for name, value in state.items()}
    for number, rows in enumerate(trainer.row_optimizers):
        tensors |= {f"rows/{number}/{name}": value for name, value in rows.state().items()}
    tensors["generator"] = trainer.generator.get_state()
    progress.step = trainer.steps_done
    if progress.step:  # to prepare the same epoch again, and go on in it
        tensors["epoch_generator"] = trainer.epoch_generator
        tensors["loss_sum"] = trainer.loss_sum
    header = {"format_version": str(FORMAT_VERSION), "progress": json.dumps(asdict(progress))}
    save_tensors(tensors, path, header)


def load_checkpoint(path: Path, trainer: Trainer[Any]) -> tuple[Progress, dict[str, Tensor] | None]:
    """Restore the state of a trainer; returns the progress and the best weights so far."""
    tensors, header = load_tensors(path)
    progress = progress_in(header, path)
    if "generator" not in tensors:
        raise not_a_checkpoint(path)
    groups: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}, "rows": {}}
    for name, value in tensors.items():
        group, _, rest = name.partition("/")
        if group in groups:
            groups[group][rest] = value
    state = by_index(groups["optimizer"])
    load_weights(trainer.model, groups["model"], path)
    param_groups = trainer.optimizer.state_dict()["param_groups"]
    trainer.optimizer.load_state_dict({"state": state, "param_groups": param_groups})
    of_rows = by_index(groups["rows"])
    for number, rows in enumerate(trainer.row_optimizers):
        rows.load(of_rows.get(number, {}))
    trainer.generator.set_state(tensors["generator"].cpu())
    if progress.step:
        trainer.resumed_at = MidEpoch(
            progress.step, tensors["loss_sum"].to(trainer.device), tensors["generator"].cpu()
        )
        trainer.generator.set_state(tensors["epoch_generator"].cpu())
    trainer.batches.reserve(progress.capacity)
    trainer.discard_captured()  # the optimizer and the batches have new tensors
    best = {name: value.to(trainer.device) for name, value in groups["best"].items()}
    return progress, best or None


def read_progress(path: Path) -> Progress:
    """The progress in a checkpoint, read without its tensors."""
    with opened_tensors(path) as (_, header):
        return progress_in(header, path)


def progress_in(header: dict[str, str], path: Path) -> Progress:
    if "progress" not in header:
        raise not_a_checkpoint(path)
    return Progress(**json.loads(header["progress"]))


def not_a_checkpoint(path: Path) -> InputError:
    return InputError(f"{path} is not a checkpoint; train again without --resume")


def by_index(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """Tensors named INDEX/NAME, grouped by the index."""
    groups: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, _, key = name.partition("/")
        groups.setdefault(int(index), {})[key] = value
    return groups


def save_tensors(tensors: dict[str, Tensor], path: Path, header: dict[str, str]) -> None:
    """Write a safetensors file atomically.

    The header is one entry of the file's metadata, as several would have a random order. So the
    same tensors and header give the same bytes.
    """
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    with atomic_file(path) as partial:
        save_file(tensors, partial, metadata={HEADER: json.dumps(header)})


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    with opened_tensors(path) as (file, header):
        return {current_tensor(n): file.get_tensor(n) for n in file.keys()}, header  # noqa: SIM118


@contextmanager
def opened_tensors(path: Path) -> Iterator[tuple[Any, dict[str, str]]]:
    """A safetensors file, opened, and its header."""
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get(HEADER, "{}"))
            refuse_newer(header, path)
            yield file, header
    except InputError:
        raise
    except (OSError, ValueError, RecursionError, SafetensorError) as error:
        raise InputError(f"cannot read {path}: {error}; train again without --resume") from error


def refuse_newer(header: dict[str, str], path: Path) -> None:
    if int(header.get("format_version", 0)) > FORMAT_VERSION:
        raise InputError(
            f"{path} was written by a newer nodepiece (format version {header['format_version']}, "
            f"this one reads up to {FORMAT_VERSION}); install a newer nodepiece"
        )


def load_weights(model: torch.nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise InputError(f"the weights in {path} do not fit the model: {first}") from error
