"""The labels that a run was trained and evaluated on, inside its folder.

RUN/labels/classes.json         the names of the classes, by their ids
RUN/labels/SPLIT_nodes.npy      the labelled nodes of a split, of train only those that were sampled
RUN/labels/SPLIT_classes.npy    pairs: position in the nodes, class id
"""

import json
from pathlib import Path

import numpy as np

from nodepiece.data.dataset import SPLITS
from nodepiece.data.labelled_graph import LabelledGraph, NodeLabels
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.tasks.run_folder import damaged

FOLDER, CLASSES = "labels", "classes.json"


def write_label_folder(dataset: LabelledGraph, run: Path) -> None:
    folder = run / FOLDER
    folder.mkdir()
    text = json.dumps(dataset.classes, ensure_ascii=False, indent=0)
    (folder / CLASSES).write_text(text + "\n", encoding="utf-8")
    for part in SPLITS:
        np.save(folder / f"{part}_nodes.npy", dataset.labels[part].nodes)
        np.save(folder / f"{part}_classes.npy", dataset.labels[part].classes)


def read_label_folder(
    run: Path, *, num_nodes: int
) -> tuple[tuple[str, ...], dict[str, NodeLabels]]:
    """The names of the classes, and the labels of every split."""
    path = run / FOLDER / CLASSES
    try:
        classes = tuple(json.loads(path.read_text(encoding="utf-8")))
        labels = {}
        for part in SPLITS:
            path = run / FOLDER / f"{part}_nodes.npy"
            nodes: IntArray = np.load(path, allow_pickle=False)
            _check(nodes, (num_nodes,))
            path = run / FOLDER / f"{part}_classes.npy"
            pairs: IntArray = np.load(path, allow_pickle=False)
            _check(pairs, (len(nodes), len(classes)))
            labels[part] = NodeLabels(nodes, pairs)
    except Exception as error:  # a damaged header may raise anything that a parser can
        raise damaged(path, error) from error
    return classes, labels


def _check(ids: IntArray, limits: tuple[int, ...]) -> None:
    shape = (len(ids),) if len(limits) == 1 else (len(ids), len(limits))
    if ids.dtype != np.int32 or ids.shape != shape:
        raise InputError(f"int32 of shape {shape} was expected, not {ids.dtype} of {ids.shape}")
    if len(ids) and (ids.min() < 0 or (ids.reshape(len(ids), -1).max(axis=0) >= limits).any()):
        raise InputError("an id in it is too large")
