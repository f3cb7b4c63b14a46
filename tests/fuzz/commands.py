"""The command line with random arguments, in this process."""

import contextlib
import io
import os
import shutil
import sys
from pathlib import Path
from random import Random
from typing import Any, get_args, get_type_hints

import typer
from tests.fuzz.damage import WORDS, damage
from tests.fuzz.folders import damage_some
from tests.fuzz.materials import TASKS

from nodepiece.cli import app, main
from nodepiece.errors import InputError

NUMBERS = ("-1", "0", "1", "2", "3", "7", "0.5", "1.5", "nan", "inf", "1e9", "x", "", "99999999999")
CHOICES = ("nearest", "random", "global", "per-node", "token", "anchor", "refuse", "mean", "test")
NAMES = ("n1", "n2", "somebody", "likes", "knows", "inverse of likes", "c1", "valid", "train")
FILES = ("graph.tsv", "graph.csv", "graph.nt", "new.tsv", "names.txt", "labels.tsv", "labels.json")
FOLDERS = ("vocabulary", "dataset", "inductive", "labelled", "unseen", "ogb", *TASKS)
SETTINGS = (
    "training.epochs=0",
    "training.epochs=-1",
    "training.learning_rate=nan",
    "training.learning_rate=1e30",
    "training.batch_size=0",
    "training.loss=x",
    "training.metric=hits@10",
    "encoder.dim=0",
    "encoder.dim=7",
    "encoder.kind=lookup",
    "encoder.dropout=1.5",
    "decoder.kind=rotate",
    "decoder.kind=x",
    "graph.layers=1",
    "graph.kind=compgcn",
    "walks.steps=2",
    "evaluation.candidates=all",
    "evaluation.test_facts=0",
    "evaluation.num_negatives=-5",
    "tokenizer.num_anchors=0",
    "tokenizer.num_anchors=1000",
    "tokenizer.anchors_per_node=-3",
    "tokenizer.mix={degree=2}",
    "task=x",
    "task=node-classification",
    "seed=-1",
    "seed=1e3",
    "dataset=nowhere",
    "x=1",
    "=",
    "training=3",
    "a.b.c=1",
)
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def command(rng: Random, materials: Path, place: Path) -> None:
    """Any command with some of its arguments and options, right and wrong ones."""
    name = rng.choice(sorted(COMMANDS))
    arguments = [name]
    for parameter in COMMANDS[name].params:
        is_argument = parameter.param_type_name == "argument"
        if is_argument or parameter.required or rng.random() < 0.15:
            value = random_value(parameter, name, rng, materials, place)
            arguments += (
                [value]
                if is_argument
                else [rng.choice(parameter.opts), *value_of(value, parameter)]
            )
    if rng.random() < 0.05:
        arguments.insert(
            rng.randrange(len(arguments)), rng.choice(("--x", "-", "--", "--debug", ""))
        )
    if name == "demo":  # takes long where nothing is wrong
        arguments.append("--nothing")
    if name == "train":
        arguments += ["--set", "training.epochs=1"]
    run_command(arguments, place, stdin=b"n1\tlikes\tn2\n" * rng.randrange(2))


def value_of(value: str, parameter: Any) -> list[str]:
    return [] if getattr(parameter, "is_flag", False) else [value]


def random_value(
    parameter: Any, command_name: str, rng: Random, materials: Path, place: Path
) -> str:
    name = parameter.name or ""
    if rng.random() < 0.05:
        return rng.choice((*WORDS, *NUMBERS)).replace("\0", "0")
    if name in ("output", "tensorboard", "plot"):
        return rng.choice(("out", "out", "new/out", "file", "out.parquet", "out.png", "."))
    if name == "overrides":
        return rng.choice(SETTINGS)
    if name == "device":
        return rng.choice(("cpu",) * 6 + ("cuda", "cuda:7", "gpu", "meta", "mps"))
    if name == "minutes":  # more of them would be spent
        return rng.choice(("-1", "0", "nan", "inf", "x", "0.01"))
    if name == "action":
        return rng.choice(("list", "verify", "x"))
    if (
        name in ("run", "vocabulary", "graph", "experiment", "source", "labels")
        or kind_of(parameter, command_name) is Path
    ):
        return some_path(name, command_name, rng, materials, place)
    if kind_of(parameter, command_name) in (int, float):
        return rng.choice(NUMBERS if rng.random() < 0.5 else ("1", "2", "0.3"))
    if name in ("head", "tail", "node", "relation"):
        return rng.choice(NAMES)
    return rng.choice((*NAMES, *CHOICES, *NUMBERS, *FILES))


def kind_of(parameter: Any, command_name: str) -> object:
    """The type that the function of the command asks for."""
    hint = get_type_hints(COMMANDS[command_name].callback)[parameter.name]
    return next((kind for kind in get_args(hint) if kind is not type(None)), hint)


def some_path(name: str, command_name: str, rng: Random, materials: Path, place: Path) -> str:
    """A file or folder that fits more often than not, copied here and maybe damaged."""
    fitting = {
        "run": tuple(TASKS),
        "vocabulary": ("vocabulary",),
        "labels": ("labels.tsv", "labels.csv", "labels.json"),
        "experiment": tuple(f"{task}.toml" for task in TASKS),
    }.get(
        name, ("graph.tsv", "graph.csv", "graph.nt", "graph.npy", "new.tsv", "dataset", "names.txt")
    )
    if rng.random() < 0.05:
        return rng.choice(("nowhere", "-", "countries", "umls", ".", str(materials / "..")))
    source = rng.choice(fitting if rng.random() < 0.9 else (*FILES, *FOLDERS))
    copy = place / source
    if not copy.exists():
        if (materials / source).is_dir():
            shutil.copytree(materials / source, copy)
            if rng.random() < 0.2:
                damage_some(copy, rng)
        else:
            content = (materials / source).read_bytes()
            copy.write_bytes(damage(content, rng) if rng.random() < 0.2 else content)
    return str(copy) if rng.random() < 0.5 else source


def run_command(arguments: list[str], place: Path, *, stdin: bytes) -> None:
    """Run it in `place`; a status other than 0 and 2 is an error, and so is a silent refusal."""
    out, err = io.StringIO(), io.StringIO()
    (place / "file").write_text("in the way")
    before = Path.cwd(), sys.argv, sys.stdin
    os.chdir(place)
    sys.argv = ["nodepiece", *arguments]
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    status: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        status = end.code or 0
    finally:
        os.chdir(before[0])
        sys.argv, sys.stdin = before[1:]
    if status == 2 and err.getvalue().strip():
        raise InputError(err.getvalue().strip().splitlines()[-1])
    if status != 0:
        raise AssertionError(f"{arguments} ended with {status}: {err.getvalue()[-2000:]}")


COMMAND_KINDS = {"command": command}
