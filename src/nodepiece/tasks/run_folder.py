"""A run on disk: self-contained, no pickle, every file whole or not there.

RUN/config.toml           the experiment, every default written out
RUN/vocabulary/           vocabulary, names and tokens (see tokenizer/storage.py)
RUN/facts/                train.npy, valid.npy, test.npy: what is known, by ids
RUN/inference/            of an inductive run: names and facts of the graph it is evaluated on
RUN/checkpoint.safetensors    to resume from; RUN/model.safetensors: the trained weights
RUN/history.jsonl         a record an epoch; RUN/metrics.json: the result
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
PENDING = ".pending"  # in a folder that is to replace another run, until it has
LIVE_LOCK = "live/lock"  # held by who updates the run


def start_run(
    place: Path, experiment: Experiment, write: Callable[[Path], None], *, is_pending: bool
) -> None:
    """Make a fresh run folder with the data that `write` puts there, for who holds its lock.

    `is_pending`: it will replace another run. What is there already is replaced.
    """
    check_replaceable(place, CONFIG)
    with staged_folder(place.resolve()) as partial:
        (partial / CONFIG).write_text(to_toml(experiment), encoding="utf-8")
        if is_pending:
            (partial / PENDING).touch()
        write(partial)
    remove_leftovers(place.resolve())


def write_facts(dataset: Dataset, folder: Path) -> None:
    """All of a dataset that a run needs: `read_facts` gives it back."""
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


def read_facts(folder: Path) -> Dataset:
    """The dataset that a run was trained on, without its files."""
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
    """What ties trained weights to their settings."""
    return hashlib.sha256((folder / CONFIG).read_bytes()).hexdigest()


def damaged(path: Path, error: Exception) -> InputError:
    """The error of a damaged file, with the reason and without the original advice."""
    reason = str(error).partition("; ")[0]
    return InputError(f"{path} is damaged or of another run ({reason}); train this run again")


def write_history(folder: Path, history: Sequence[dict[str, Any]]) -> None:
    with atomic_file(folder / HISTORY) as partial:
        partial.write_text("".join(json.dumps(record) + "\n" for record in history))


class HistoryFile:
    """Appends a record an epoch to history.jsonl, for those who follow along.

    A run that is resumed may have left records of epochs that are now done again: the first
    record comes with all before it.
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
