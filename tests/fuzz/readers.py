"""Bad files and dataset folders, given to the functions that read them."""

import gzip
import io
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.damage import WORDS, damage
from tests.fuzz.formats import damage_array, damage_file, damage_json, damage_toml
from tests.fuzz.pickles import pt_file

from nodepiece.data.blocks import ReadOptions
from nodepiece.data.label_file import read_label_file
from nodepiece.data.open import (
    open_dataset,
    open_graph,
    open_inductive,
    open_labelled,
    open_negatives,
    open_out_of_sample,
)
from nodepiece.data.torch_arrays import load_arrays
from nodepiece.data.unpack import unpack
from nodepiece.settings import load_experiment, to_toml

GRAPHS = ("tsv", "csv", "parquet", "nt", "ttl", "jsonl", "rdf", "npy", "tsv.gz")
DATASETS: dict[str, Callable[[str], object]] = {
    "dataset": open_dataset,
    "inductive": open_inductive,
    "labelled": open_labelled,
    "unseen": open_out_of_sample,
}
COLUMNS = ("head,relation,tail", "0,2,1", "-1,0,1", "head,head,x", "0,1", "", ",,", ("head", 1, 2))
PARTS = {part: (f"{part}.txt",) for part in ("train", "valid", "test")}


def graph_file(rng: Random, materials: Path, place: Path) -> None:
    """A damaged file of facts, under its own or another ending, with random options."""
    ending = rng.choice(GRAPHS)
    content = (materials / f"graph.{ending}").read_bytes()
    changed = damage_array(content, rng) if ending == "npy" else damage(content, rng)
    if rng.random() < 0.15:
        changed = gzip.compress(changed)
    path = place / f"graph.{ending if rng.random() < 0.8 else rng.choice((*GRAPHS, 'txt'))}"
    path.write_bytes(changed)
    options = random_options(rng) if rng.random() < 0.4 else ReadOptions()
    open_graph(str(path), options=options, data=None)


def random_options(rng: Random) -> ReadOptions:
    columns: Any = rng.choice((None, (0, 1, 2), (2, 1, 0), (1, 1, 1), (0, 1, 9), *COLUMNS))
    return ReadOptions(
        delimiter=rng.choice((None, None, "tab", ",", "blanks", *WORDS)),
        header=rng.choice((None, True, False)),
        columns=columns,
        format=rng.choice(
            (None, None, "tsv", "csv", "jsonl", "parquet", "nt", "ttl", "nq", "trig", "rdf", "x")
        ),
    )


def odd_names(rng: Random, materials: Path, place: Path) -> None:
    """Text that is nearly a table: words of every kind between delimiters."""
    delimiter = rng.choice(("\t", ",", " ", ";", "|"))
    rows = [
        delimiter.join(
            rng.choice(WORDS[: -4 if rng.random() < 0.9 else None]) or "a" for _ in range(n)
        )
        for n in rng.choices((1, 2, 3, 4), (1, 1, 20, 1), k=rng.randrange(1, 8))
    ]
    path = place / f"graph.{rng.choice(('tsv', 'csv', 'txt', 'nt', 'ttl'))}"
    path.write_bytes(rng.choice(("\n", "\r\n", "\r")).join(rows).encode("utf-8", "surrogatepass"))
    open_graph(str(path), options=ReadOptions(), data=None)


def torch_file(rng: Random, materials: Path, place: Path) -> None:
    path = place / "train.pt"
    path.write_bytes(pt_file(rng))
    load_arrays(path)


def ogb_folder(rng: Random, materials: Path, place: Path) -> None:
    """The layout of OGB with one of its files damaged, and its negatives read."""
    folder = place / "ogb"
    shutil.copytree(materials / "ogb", folder)
    path = rng.choice(sorted(file for file in folder.rglob("*") if file.is_file()))
    if path.suffix == ".pt" and rng.random() < 0.5:
        path.write_bytes(pt_file(rng))
    elif path.suffix == ".gz" and rng.random() < 0.7:
        path.write_bytes(gzip.compress(damage(gzip.decompress(path.read_bytes()), rng)))
    else:
        damage_file(path, rng)
    dataset = open_dataset(str(folder))
    open_negatives(str(folder), rng.choice(("valid", "test")), num_nodes=dataset.train.num_nodes)


def label_file(rng: Random, materials: Path, place: Path) -> None:
    ending = rng.choice(("tsv", "csv", "json"))
    content = (materials / f"labels.{ending}").read_bytes()
    changed = (
        damage_json(content, rng)
        if ending == "json" and rng.random() < 0.5
        else damage(content, rng)
    )
    is_gzip = rng.random() < 0.2
    path = place / f"labels.{ending}{'.gz' if is_gzip or rng.random() < 0.05 else ''}"
    path.write_bytes(gzip.compress(changed) if is_gzip else changed)
    read_label_file(path)


def dataset_folder(rng: Random, materials: Path, place: Path) -> None:
    """A folder with one of its files damaged, or of another kind than is asked for."""
    kind = rng.choice(tuple(DATASETS))
    folder = place / kind
    shutil.copytree(materials / kind, folder)
    path = rng.choice(sorted(file for file in folder.rglob("*") if file.is_file()))
    match rng.randrange(8):
        case 0:
            path.unlink()
        case 1:
            path.rename(
                path.with_name(rng.choice(("x.tsv", "train.csv", "edges.nt", "valid.txt.gz")))
            )
        case _:
            damage_file(path, rng)
    reader = DATASETS[kind if rng.random() < 0.9 else rng.choice(tuple(DATASETS))]
    reader(str(folder))


def experiment_file(rng: Random, materials: Path, place: Path) -> None:
    content = (materials / "run-links" / "config.toml").read_bytes()
    path = place / "experiment.toml"
    path.write_bytes(damage_toml(content, rng) if rng.random() < 0.7 else damage(content, rng))
    if rng.random() < 0.1:
        path.write_text(f"extends = {rng.choice(('x', './experiment.toml', 'countries', ''))!r}\n")
    to_toml(load_experiment(path))


def archive(rng: Random, materials: Path, place: Path) -> None:
    """An archive of a download: damaged, too large, or with odd members."""
    members = {f"{part}.txt": b"a\tlikes\tb\n" * 20 for part in PARTS}
    if rng.random() < 0.3:
        members[rng.choice(tuple(members))] = bytes(rng.choice((10**5, 10**7)))
    if rng.random() < 0.3:
        members[rng.choice(("../x", "/x", "a/train.txt", "a\\b", "C:x", ".", "x" * 300))] = b"x"
    is_zip = rng.random() < 0.5
    content = zip_of(members, rng) if is_zip else tar_of(members, rng)
    if rng.random() < 0.6:
        content = damage(content, rng)
    path = place / ("x.zip" if is_zip else "x.tar.gz")
    path.write_bytes(gzip.compress(content) if not is_zip else content)
    into = place / "into"
    into.mkdir()
    unpack(path, PARTS, into, max_bytes=10**6)
    if sum(file.stat().st_size for file in into.rglob("*")) > 10**6:
        raise AssertionError("more was unpacked than was stated")


def zip_of(members: dict[str, bytes], rng: Random) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", rng.choice((0, zipfile.ZIP_DEFLATED))) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return made.getvalue()


def tar_of(members: dict[str, bytes], rng: Random) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=rng.choice((0, 1, 2))) as opened:
        for name, content in members.items():
            entry = tarfile.TarInfo(name[:90])
            entry.size = len(content)
            entry.type = rng.choice((tarfile.REGTYPE,) * 9 + (tarfile.SYMTYPE, tarfile.XHDTYPE))
            opened.addfile(entry, io.BytesIO(content))
    return made.getvalue()


READERS = {
    "graph file": graph_file,
    "odd names": odd_names,
    ".pt file": torch_file,
    "OGB folder": ogb_folder,
    "label file": label_file,
    "dataset folder": dataset_folder,
    "experiment": experiment_file,
    "archive": archive,
}
