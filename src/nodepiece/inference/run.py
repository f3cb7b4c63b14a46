"""Open a run folder, or train an experiment, to get a run that answers queries."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from nodepiece.data.blocks import Column
from nodepiece.errors import InputError
from nodepiece.files import read_whole
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.inference.classes import ClassRun
from nodepiece.inference.forked import refuse_after_fork
from nodepiece.inference.given_data import Parts, reading_columns, with_data
from nodepiece.inference.inductive import InductiveRun
from nodepiece.inference.links import LinkRun
from nodepiece.inference.opened_files import OpenedFiles
from nodepiece.inference.opened_run import Address, Opened, Prediction, Run
from nodepiece.inference.train_progress import (
    NotebookBar,
    ProgressCallback,
    TrainProgress,
    in_notebook,
)
from nodepiece.settings import Experiment, with_overrides
from nodepiece.tasks.machine import parse_memory
from nodepiece.tasks.minutes import minutes_left
from nodepiece.tasks.registry import task_record
from nodepiece.tasks.run_folder import read_config
from nodepiece.tasks.run_weights import load_trained
from nodepiece.tasks.train import choose_device, train_experiment
from nodepiece.tokenizer.changing_graph import NamedFact
from nodepiece.training.interrupts import stop_on_interrupt

log = logging.getLogger("nodepiece")

__all__ = ["RUNS", "Prediction", "Run", "load", "train"]

RUNS: dict[str, Callable[..., Run]] = {  # by what a run answers: `TaskRecord.run`
    "links": LinkRun,
    "any-graph": InductiveRun,
    "classes": ClassRun,
}


def load(
    folder: str | Path, *, device: torch.device | str = "cpu", overrides: Sequence[str] = ()
) -> Run:
    """Open a run folder; the class of the run depends on its task.

    A run that was stopped before the end has its best weights so far, and a warning is logged.

    `overrides` change settings of evaluation, such as "evaluation.candidates=all".
    """
    refuse_after_fork()
    path, chosen = Path(folder), choose_device(device)
    return read_whole(path, lambda: _open(OpenedFiles.of(path), tuple(overrides), chosen))


def _open(files: OpenedFiles, overrides: tuple[str, ...], device: torch.device) -> Run:
    experiment = with_overrides(read_config(files.folder), overrides)
    if trained := [change for change in overrides if not change.startswith("evaluation.")]:
        raise InputError(
            f"{trained[0]} would change what was trained; only evaluation.* can be set"
        )
    record = task_record(experiment)
    task = record.task.read(experiment, files.folder)
    model, table = load_trained(task, files.folder)
    return RUNS[record.run](Opened(files, table, overrides), task, model.to(device))


def reopen(
    address: Address, facts: tuple[NamedFact, ...] = (), left_out: tuple[NamedFact, ...] = ()
) -> Run:
    """Open a pickled run, with its assumed facts, and without those that are left out."""
    run = load(address.folder, device=address.device, overrides=address.overrides)
    if run.opened.files.model_hash != address.model_hash:
        raise InputError(
            f"the files of {address.folder} were replaced since the run was pickled; load it again "
            "and pickle that one"
        )
    run = run.with_facts(facts) if facts else run
    return run.without_facts(left_out) if left_out else run


def reopen_on(address: Address, graph: KnowledgeGraph, unseen_relations: str) -> Run:
    """Open a pickled run of another graph (`on_graph`)."""
    return reopen(address).on_graph(graph, unseen_relations=unseen_relations)


def load_links(folder: str | Path, *, device: torch.device | str = "cpu") -> LinkRun:
    """Open a run that predicts facts; a run of another kind is refused."""
    run = load(folder, device=device)
    if not isinstance(run, LinkRun):
        raise InputError(f"{folder} is a run of {run.experiment.task}: it completes no facts")
    return run


def train(
    experiment: Any,
    output: str | Path,
    *,
    data: Any = None,
    valid: Any = None,
    test: Any = None,
    columns: Sequence[Column] | str | None = None,
    relation: str | None = None,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    overrides: Sequence[str] = (),
    minutes: float | None = None,
    memory: int | str | None = None,
    callback: ProgressCallback | None = None,
) -> Run:
    """Train and evaluate an experiment, and open the run folder it wrote.

    `experiment` is a record, a TOML file, or a name such as "fb15k-237-paper"; `overrides` change
    settings of the latter two, such as "training.epochs=5". It may also be a graph: a file, a
    folder, the name of a benchmark, or facts in memory. Then settings are chosen for its shape, the
    minutes (10 unless given), the memory and the device. `data` is the folder of benchmarks, or
    facts in memory to train on instead of the experiment's dataset: anything that `nodepiece.graph`
    reads, such as triples, a DataFrame or a networkx graph. `valid` and `test` are more of the
    same kind, and `columns` and `relation` say how to read them (`columns` also a file); without
    `valid`, some facts are held out where the settings validate (`evaluation.held_out_share`).

    An existing run in `output` is refused, unless it is to be continued from its checkpoint
    (`resume`), or replaced, updates included, when this one is finished (`overwrite`).
    With `minutes`, all of it takes so long, in place of a number of epochs; `resume` takes those
    that a stopped run has left, `resume` with `minutes` adds more, and a finished run that is
    resumed without them stays as it is. `memory` is the most to use at the peak, in bytes or such
    as "8GB" (on a GPU: of the device), by default most of what is free. `history.jsonl` in `output`
    has a line for every finished epoch, `metrics.json` the result. The logger "nodepiece" logs the
    progress at level INFO. `callback` is called about once a second, and after every epoch or
    validation, with a dictionary: `epoch`, `step`, `steps_per_epoch`, `loss`, `facts_per_second`,
    `seconds` since the start, `seconds_left`, and what was validated (`valid_mrr`). A notebook
    shows a bar.

    Ctrl-C stops after the step, leaves a checkpoint, and raises KeyboardInterrupt.
    """
    if isinstance(experiment, Experiment) and overrides:
        raise InputError(
            "overrides change an experiment given by name or file; "
            "change a record with dataclasses.replace"
        )
    parts = Parts(valid, test, columns, relation)
    settings, source = with_data(experiment, data, parts, overrides)
    if isinstance(settings, str | Path):
        overrides = [*overrides, *reading_columns(columns)]
    shown = minutes
    if minutes is None and resume and not overwrite:
        shown = minutes_left(Path(output))
    epochs = TrainProgress(callback, minutes=shown, bar=NotebookBar() if in_notebook() else None)
    with stop_on_interrupt(
        lambda: epochs.is_under_way, lambda: log.warning("stopping and saving")
    ) as should_stop:
        metrics = train_experiment(
            settings,
            Path(output),
            data=source,
            overrides=() if isinstance(settings, Experiment) else overrides,
            device=device,
            resume=resume,
            overwrite=overwrite,
            callbacks=(epochs,),
            log=epochs.log,
            should_stop=should_stop,
            minutes=minutes,
            memory=parse_memory(memory) if isinstance(memory, str) else memory,
        )
    if metrics is None:
        raise KeyboardInterrupt(f"training was stopped; continue it with resume=True in {output}")
    return load(output, device=choose_device(device))
