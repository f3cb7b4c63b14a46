"""A run on disk: self-contained, no pickle, every file whole or not there.

RUN/config.toml           the experiment, every default written out
RUN/vocabulary/           vocabulary, names and tokens (see tokenizer/storage.py)
RUN/facts/                train.npy, valid.npy, test.npy: what is known, by ids
RUN/checkpoint.safetensors    to resume from; RUN/model.safetensors: the trained weights
RUN/history.jsonl         a record an epoch; RUN/metrics.json: the result
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nodepiece.data.dataset import Dataset
from nodepiece.errors import InputError
from nodepiece.files import atomic_file, atomic_folder
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names, load_names, save_names
from nodepiece.settings import Experiment, load_experiment, to_toml

CONFIG = "config.toml"
CHECKPOINT = "checkpoint.safetensors"
MODEL = "model.safetensors"
HISTORY = "history.jsonl"
METRICS = "metrics.json"
SPLITS = ("train", "valid", "test")


def start_run(folder: Path, experiment: Experiment, dataset: Dataset) -> None:
    """Make a fresh run folder; an earlier run there is replaced whole."""
    with atomic_folder(folder, marker=CONFIG) as partial:
        (partial / CONFIG).write_text(to_toml(experiment), encoding="utf-8")
        save_names(dataset.names, partial / "names")
        (partial / "facts").mkdir()
        for split in SPLITS:
            np.save(partial / "facts" / f"{split}.npy", dataset.part(split))


def read_config(folder: Path) -> Experiment:
    path = folder / CONFIG
    if not path.is_file():
        raise InputError(
            f"{folder} is not a run (there is no {CONFIG} in it); "
            f"make one with: nodepiece train EXPERIMENT -o {folder}"
        )
    return load_experiment(path)


def read_facts(folder: Path) -> Dataset:
    """The dataset that a run was trained on, without its files."""
    names: Names = load_names(folder / "names")
    parts: dict[str, IntArray] = {}
    for split in SPLITS:
        path = folder / "facts" / f"{split}.npy"
        try:
            parts[split] = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{path} is damaged ({error}); train this run again") from error
    train = KnowledgeGraph(parts["train"], len(names.nodes), len(names.relations), names)
    return Dataset(folder.name, train, parts["valid"], parts["test"], {})


def write_json(path: Path, content: dict[str, Any]) -> None:
    with atomic_file(path) as partial:
        partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def write_history(folder: Path, history: Sequence[dict[str, Any]]) -> None:
    with atomic_file(folder / HISTORY) as partial:
        partial.write_text("".join(json.dumps(record) + "\n" for record in history))


class HistoryFile:
    """Appends a record an epoch to history.jsonl, for those who follow along."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / HISTORY

    def on_step(self, epoch: int, done: int, total: int) -> None:
        pass

    def on_epoch(self, record: dict[str, Any], progress: object) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
