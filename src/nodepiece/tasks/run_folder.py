"""A run on disk: self-contained, without pickle files, each file written atomically.

RUN/config.toml           the experiment, every default written out
RUN/vocabulary/           vocabulary, names and tokens (see tokenizer/storage.py)
RUN/facts/                train.npy, valid.npy, test.npy: the facts by ids
RUN/inference/            of an inductive run: names and facts of the inference graph
RUN/checkpoint.safetensors    to resume from; RUN/model.safetensors: the trained weights
RUN/history.jsonl         a record for each epoch; RUN/metrics.json: the result
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nodepiece.data.dataset import SPLITS, Dataset
from nodepiece.errors import InputError
from nodepiece.files import atomic_file, check_replaceable, remove_leftovers, staged_folder
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names, load_names, save_names
from nodepiece.settings import Experiment, load_experiment, to_toml
from nodepiece.training.checkpoint import Progress

CONFIG = "config.toml"
CHECKPOINT = "checkpoint.safetensors"
MODEL = "model.safetensors"
HISTORY = "history.jsonl"
METRICS = "metrics.json"
PENDING = ".pending"  # in a folder that will replace another run, until it has
LIVE_LOCK = "live/lock"  # held by a process that updates the run


def start_run(
    place: Path, experiment: Experiment, write: Callable[[Path], None], *, is_pending: bool
) -> None:
    """Create a run folder with the data that `write` writes; an earlier folder is replaced.

    The caller holds the lock. `is_pending`: the run will replace another one.
    """
    check_replaceable(place, CONFIG)
    with staged_folder(place.resolve()) as partial:
        (partial / CONFIG).write_text(to_toml(experiment), encoding="utf-8")
        if is_pending:
            (partial / PENDING).touch()
        write(partial)
    remove_leftovers(place.resolve())


def update_config(folder: Path, experiment: Experiment) -> None:
    """Write the experiment, if the run folder holds another one."""
    text, path = to_toml(experiment), folder / CONFIG
    if path.read_text(encoding="utf-8") != text:
        with atomic_file(path) as partial:
            partial.write_text(text, encoding="utf-8")


def write_facts(dataset: Dataset, folder: Path) -> None:
    """Write the parts of a dataset that a run needs; `read_facts` reads them."""
    save_names(dataset.names, folder / "names")
    (folder / "facts").mkdir()
    for split in SPLITS:
        np.save(folder / "facts" / f"{split}.npy", dataset.part(split))


def read_config(folder: Path) -> Experiment:
    path = folder / CONFIG
    if not path.is_file():
        raise InputError(
            f"{folder} is not a run (there is no {CONFIG} in it); "
            f"make one with: nodepiece train EXPERIMENT -o {folder}"
        )
    try:
        return load_experiment(path)
    except InputError as error:
        raise damaged(path, error) from error


def read_metrics(folder: Path) -> dict[str, Any]:
    path = folder / METRICS
    try:
        metrics: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise damaged(path, error) from error
    return metrics


def read_facts(folder: Path) -> Dataset:
    """The dataset that a run was trained on, from the run folder."""
    names: Names = load_names(folder / "names")
    parts: dict[str, KnowledgeGraph] = {}
    for split in SPLITS:
        path = folder / "facts" / f"{split}.npy"
        try:
            facts: IntArray = np.load(path, allow_pickle=False)
            parts[split] = KnowledgeGraph(facts, len(names.nodes), len(names.relations), names)
        except Exception as error:  # a damaged header may raise anything that a parser can
            raise damaged(path, error) from error
    valid, test = parts["valid"].triples, parts["test"].triples
    return Dataset(folder.name, parts["train"], valid, test, {})


def hash_config(folder: Path) -> str:
    """SHA-256 of config.toml, which the weights store, so that they belong to their settings."""
    return hashlib.sha256((folder / CONFIG).read_bytes()).hexdigest()


def damaged(path: Path, error: Exception) -> InputError:
    """The error for a damaged file: the reason of `error`, and what to do about it."""
    reason = str(error).partition("; ")[0]
    return InputError(f"{path} is damaged or of another run ({reason}); train this run again")


def write_history(folder: Path, history: Sequence[dict[str, Any]]) -> None:
    with atomic_file(folder / HISTORY) as partial:
        partial.write_text("".join(json.dumps(record) + "\n" for record in history))


class HistoryFile:
    """A callback that appends a record for each epoch to history.jsonl.

    The first record rewrites the file: an interrupted run may have left records of epochs after
    its last checkpoint, which are repeated.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_started = False

    def on_step(self, epoch: int, done: int, total: int) -> None:
        pass

    def on_epoch(self, record: dict[str, Any], progress: Progress) -> None:
        if not self.is_started:
            write_history(self.folder, progress.history)
            self.is_started = True
            return
        with (self.folder / HISTORY).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
