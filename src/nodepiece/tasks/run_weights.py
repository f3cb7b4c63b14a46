"""The weights of a run folder, finished or not."""

import logging
from pathlib import Path

from torch import nn

from nodepiece.errors import InputError
from nodepiece.locks import has_writer
from nodepiece.tasks.run_folder import CONFIG, MODEL, damaged, hash_config
from nodepiece.tasks.run_place import is_without_work
from nodepiece.tasks.task import Model, Task
from nodepiece.threads import stop_spinning
from nodepiece.tokenizer.storage import load_tokens
from nodepiece.tokenizer.tokens import TokenTable
from nodepiece.training.checkpoint import (
    FORMAT_VERSION,
    Progress,
    load_tensors,
    load_weights,
    save_tensors,
)

log = logging.getLogger("nodepiece")


def save_model(model: nn.Module, folder: Path, *, unfinished: Progress | None = None) -> None:
    """Write the weights, with which ones they are if the run is not finished."""
    header = {"format_version": str(FORMAT_VERSION), "config_sha256": hash_config(folder)}
    if unfinished is not None:
        header["unfinished"] = describe_weights(unfinished)
    save_tensors(model.state_dict(), folder / MODEL, header)


def load_trained(task: Task[Model], folder: Path) -> tuple[Model, TokenTable]:
    """The trained model of a run folder, and the tokens that it was built on, mapped."""
    stop_spinning()
    if is_without_work(folder):
        if has_writer(folder):
            raise InputError(f"{folder} is being trained, and has no model yet; try again later")
        raise InputError(
            f"{folder} has no trained model, as its training was stopped before it saved a "
            f"checkpoint; train it again with the same command"
        )
    if not (folder / MODEL).is_file():
        raise InputError(
            f"{folder} has no trained model yet; finish it with: "
            f"nodepiece train {folder / CONFIG} --resume -o {folder}"
        )
    try:
        table = load_tokens(folder / "vocabulary", graph=task.graph)
        table.check()
    except InputError as error:
        raise damaged(folder / "vocabulary", error) from error
    model = task.build_model(table)
    try:
        weights, header = load_tensors(folder / MODEL)
    except InputError as error:
        raise damaged(folder / MODEL, error) from error
    if header.get("config_sha256", hash_config(folder)) != hash_config(folder):
        raise InputError(
            f"{folder / CONFIG} is not the one that {MODEL} was trained with; restore that one, or "
            "train this run again"
        )
    try:
        load_weights(model, weights, folder / MODEL)
    except InputError as error:
        raise damaged(folder / MODEL, error) from error
    if unfinished := header.get("unfinished"):
        log.warning(
            "training of %s was stopped before the end; its weights are %s. Finish it with: "
            "nodepiece train %s --resume -o %s",
            *(folder, unfinished, folder / CONFIG, folder),
        )
    model.eval()
    return model, table


def describe_weights(progress: Progress) -> str:
    """Which weights an unfinished run has, in words."""
    if progress.best_step is not None:
        return f"the best on validation so far, of step {progress.best_step:,}"
    return f"those of step {progress.num_steps:,}, without validation"
