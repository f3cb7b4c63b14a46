"""Damaged vocabularies, runs and updates, opened and asked."""

import shutil
from pathlib import Path
from random import Random

import numpy as np
from tests.fuzz.formats import damage_file
from tests.fuzz.materials import TASKS

import nodepiece
from nodepiece.inference.classes import ClassRun
from nodepiece.inference.facts import FactRun
from nodepiece.inference.links import LinkRun


def vocabulary_folder(rng: Random, materials: Path, place: Path) -> None:
    folder = place / "vocabulary"
    shutil.copytree(materials / "vocabulary", folder)
    damage_some(folder, rng)
    table = nodepiece.load_tokens(folder)
    nodepiece.describe_tokens(table)
    for node in (0, table.num_nodes - 1):
        table.pieces(node)
    nodepiece.export_tokens(table, place / "tokens.parquet")


def run_folder(rng: Random, materials: Path, place: Path) -> None:
    """A run of any task, asked what its task is about."""
    folder = place / "run"
    shutil.copytree(materials / rng.choice(tuple(TASKS)), folder)
    damage_some(folder, rng)
    ask(nodepiece.load(folder), rng)


def live_folder(rng: Random, materials: Path, place: Path) -> None:
    """What updates wrote beside a run."""
    folder = place / "run"
    shutil.copytree(materials / "run-links", folder)
    damage_some(folder / "live", rng)
    ask(nodepiece.load(folder), rng)


def damage_some(folder: Path, rng: Random) -> None:
    """One file damaged, two swapped, one from elsewhere, or one gone."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = rng.choice(files)
    match rng.randrange(10):
        case 0:
            path.unlink()
        case 1:
            other = rng.choice(files)
            mine, its = path.read_bytes(), other.read_bytes()
            path.write_bytes(its)
            other.write_bytes(mine)
        case 2:
            path.with_name(rng.choice(files).name).write_bytes(path.read_bytes())
        case _:
            damage_file(path, rng)


def ask(run: nodepiece.Run, rng: Random) -> None:
    """Queries that reach every array of a run."""
    if isinstance(run, ClassRun):
        run.classify("n1")
        check_vectors(run.embed(["n1", "n2"]))
        return
    if isinstance(run, FactRun):
        names = run.dataset.names
        head, tail = names.node(0), names.node(len(names.nodes) - 1)
        run.predict(head=head, relation=names.relation(0), top=3)
        run.predict(head=head, tail=tail, top=3)
        check_vectors(run.embed([head, tail]))
    if isinstance(run, LinkRun):
        new = [("somebody", "likes", "n1"), ("n2", "knows", "somebody")]
        run.with_facts(new).predict(head="somebody", relation="likes", top=3)
        if rng.random() < 0.3:
            nodepiece.update_run(run, add=new, remove_nodes=["n2"])
    if rng.random() < 0.2:
        run.evaluate(rng.choice(("valid", "test")))


def check_vectors(vectors: np.ndarray) -> None:
    if vectors.ndim != 2 or vectors.dtype != np.float32:
        raise AssertionError(f"vectors are {vectors.dtype} of shape {vectors.shape}")


FOLDERS = {
    "vocabulary": vocabulary_folder,
    "run": run_folder,
    "updates": live_folder,
}
