"""From a run folder, or from an experiment, to a run that answers."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from nodepiece.errors import InputError
from nodepiece.files import read_whole
from nodepiece.inference.classes import ClassRun
from nodepiece.inference.inductive import InductiveRun
from nodepiece.inference.links import LinkRun
from nodepiece.inference.opened_run import Prediction, Run
from nodepiece.settings import Experiment, with_overrides
from nodepiece.tasks.run_folder import read_config
from nodepiece.tasks.runner import load_model
from nodepiece.tasks.task_names import task_of
from nodepiece.tasks.train import choose_device, train_experiment

__all__ = ["RUNS", "Prediction", "Run", "load", "train"]

RUNS: dict[str, Callable[..., Run]] = {  # what a run of each task answers with
    "link-prediction": LinkRun,
    "relation-prediction": LinkRun,
    "inductive-link-prediction": InductiveRun,
    "node-classification": ClassRun,
    "out-of-sample": LinkRun,
}


def load(
    folder: str | Path, *, device: torch.device | str = "cpu", overrides: Sequence[str] = ()
) -> Run:
    """Open a finished run folder: a run that answers what its task is about.

    `overrides` change how it is judged, such as "evaluation.candidates=all"; the rest was trained.
    """
    path = Path(folder)
    return read_whole(path, lambda: _open(path, overrides)).to(device)


def _open(path: Path, overrides: Sequence[str]) -> Run:
    experiment = with_overrides(read_config(path), overrides)
    if trained := [change for change in overrides if not change.startswith("evaluation.")]:
        raise InputError(
            f"{trained[0]} would change what was trained; only evaluation.* can be set"
        )
    task = task_of(experiment).read(experiment, path)
    return RUNS[experiment.task](path, task, load_model(task, path))


def load_links(folder: str | Path, *, device: torch.device | str = "cpu") -> LinkRun:
    """The same for those who will ask for facts; a run of another kind is refused."""
    run = load(folder, device=device)
    if not isinstance(run, LinkRun):
        raise InputError(f"{folder} is a run of {run.experiment.task}: it completes no facts")
    return run


def train(
    experiment: str | Path | Experiment,
    output: str | Path,
    *,
    data: str | Path | None = None,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    overrides: Sequence[str] = (),
) -> Run:
    """Train and evaluate an experiment, and open the run folder it wrote.

    `experiment` is a record, a TOML file, or a name such as "fb15k-237-paper"; `overrides` change
    settings of the latter two, such as "training.epochs=5". A run that is in `output` already is
    refused, unless it should go on from its checkpoint (`resume`) or be replaced, updates included,
    when this one is finished (`overwrite`). `history.jsonl` in `output` has a line for every epoch
    that is done, `metrics.json` the result.
    """
    if isinstance(experiment, Experiment) and overrides:
        raise InputError(
            "overrides change an experiment given by name or file; "
            "change a record with dataclasses.replace"
        )
    train_experiment(
        experiment,
        Path(output),
        data=None if data is None else Path(data),
        overrides=overrides,
        device=device,
        resume=resume,
        overwrite=overwrite,
    )
    return load(output, device=choose_device(device))
