"""Tokenizing, training, training that replaces a run, and updates, as they are killed.

A scenario names the next job, reads as others do meanwhile, and checks what a kill left: the state
before or after the job, complete. Each raises Wrong otherwise.
"""

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from tests.crash.jobs import Job, Tokenize, Train, Update
from tests.crash.workers import Trace, Wrong, run_whole
from tests.inference.fresh_vectors import facts_of
from tests.inference.killed_updates import check as check_updated
from tests.tasks.couples import experiment

from nodepiece.errors import InputError
from nodepiece.inference.run import Prediction, load, load_links
from nodepiece.settings import Experiment
from nodepiece.tokenizer.storage import load_tokens

Files = dict[str, object]  # what is in a folder, without the times in it
LEFT_BY_KILLS = (".partial-", ".lock", ".unfinished")


class Scenario(Protocol):
    name: str
    trace: Trace  # of a whole job

    def next_job(self, rng: np.random.Generator) -> Job: ...

    def read(self) -> None: ...

    def check(self) -> None: ...

    def finish(self) -> None:
        """Do the job to its end, and compare with one that was never killed."""


@dataclass(frozen=True)
class Trained:
    """Two runs that were never killed."""

    experiments: tuple[Experiment, Experiment]
    folders: tuple[Path, Path]
    traces: tuple[Trace, Trace]


def train_both(place: Path) -> Trained:
    first, second = (
        experiment(
            epochs=epochs,
            learning_rate=0.005 * epochs,  # one of another length alone would be continued
            validate_every=1,
            shuffle_anchors=True,
            resample_relations=True,
        )
        for epochs in (2, 3)
    )
    folders = place / "first", place / "second"
    traces = run_whole(Train(folders[0], first)), run_whole(Train(folders[1], second))
    return Trained((first, second), folders, traces)


class Tokenizing:
    """Vocabularies of two seeds, which replace each other, or are the first in their place."""

    name = "tokenizing"

    def __init__(self, place: Path, trained: Trained) -> None:
        self.folder, self.seed, self.is_first = place / "vocabulary", 0, True
        whole = [place / "expected-0", place / "expected-1"]
        self.trace = [run_whole(Tokenize(each, seed)) for seed, each in enumerate(whole)][1]
        self.states = [files_in(each) for each in whole]
        self.anchors = [load_tokens(each).anchors for each in whole]

    def next_job(self, rng: np.random.Generator) -> Job:
        if rng.random() < 0.25:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.is_first = not self.folder.exists()
        self.seed = 0 if self.is_first else 1 - self.states.index(files_in(self.folder))
        return Tokenize(self.folder, self.seed)

    def read(self) -> None:
        try:
            found = load_tokens(self.folder).anchors
        except InputError:
            if self.is_first and not self.folder.exists():
                return
            raise
        if not any(np.array_equal(found, anchors) for anchors in self.anchors):
            raise Wrong("a reader got tokens of neither seed")

    def check(self) -> None:
        if self.folder.exists() and files_in(self.folder) not in self.states:
            raise Wrong(f"{self.folder} holds neither vocabulary: {sorted(files_in(self.folder))}")
        if not (self.folder.exists() or self.is_first):
            raise Wrong(f"{self.folder} is gone")

    def finish(self) -> None:
        run_whole(Tokenize(self.folder, self.seed))
        compare(files_in(self.folder), self.states[self.seed])
        check_nothing_left(self.folder)


class Training:
    """A run in a new folder, resumed after every kill until it is finished."""

    name = "training"

    def __init__(self, place: Path, trained: Trained) -> None:
        self.job = Train(place / "run", trained.experiments[1], resume=True)
        self.folder, self.trace, self.was_finished = self.job.folder, trained.traces[1], False
        self.expected = files_in(trained.folders[1])
        self.answers = answers_of(trained.folders[1])

    def next_job(self, rng: np.random.Generator) -> Job:
        if (self.folder / "metrics.json").exists():
            shutil.rmtree(self.folder)
        self.was_finished = False
        return self.job

    def read(self) -> None:
        try:
            answers = answers_of(self.folder)
        except InputError:
            if self.was_finished:
                raise
            return
        self.was_finished = True  # once it answers it does so until it is replaced
        if answers != self.answers:
            raise Wrong("a reader got other answers than those of the run")

    def check(self) -> None:
        self.read()
        if (self.folder / "metrics.json").exists():
            if not self.was_finished:
                raise Wrong("the run has metrics and cannot be opened")
            compare(without_leftovers(files_in(self.folder)), self.expected)

    def finish(self) -> None:
        run_whole(self.job)
        compare(files_in(self.folder), self.expected)
        check_nothing_left(self.folder)


class Replacing:
    """A finished run and another one that is going to replace it: the one or the other is there."""

    name = "replacing"

    def __init__(self, place: Path, trained: Trained) -> None:
        self.folder, self.experiments = place / "run", trained.experiments
        self.states = [files_in(each) for each in trained.folders]
        self.answers = [answers_of(each) for each in trained.folders]
        shutil.copytree(trained.folders[0], self.folder)
        self.job = Train(self.folder, trained.experiments[1], overwrite=True)
        self.trace = run_whole(self.job)
        self.check()

    def next_job(self, rng: np.random.Generator) -> Job:
        new = 1 - self.states.index(without_leftovers(files_in(self.folder)))
        resume = bool(rng.random() < 0.7)
        self.job = Train(self.folder, self.experiments[new], resume=resume, overwrite=True)
        return self.job

    def read(self) -> None:
        if answers_of(self.folder) not in self.answers:
            raise Wrong("a reader got answers of neither run")

    def check(self) -> None:
        self.read()
        found = without_leftovers(files_in(self.folder))
        if found not in self.states:
            nearest = min(self.states, key=lambda state: len(different(found, state)))
            compare(found, nearest)

    def finish(self) -> None:
        run_whole(Train(self.folder, self.job.experiment, resume=True, overwrite=True))
        new = self.experiments.index(self.job.experiment)
        compare(files_in(self.folder), self.states[new])
        check_nothing_left(self.folder)


class Updating:
    """A run whose last batch is whole and never an earlier one than somebody has seen."""

    name = "updating"

    def __init__(self, place: Path, trained: Trained) -> None:
        self.folder, self.number = place / "run", 0
        shutil.copytree(trained.folders[0], self.folder)
        self.trained = facts_of(load_links(self.folder))
        self.trace = run_whole(Update(self.folder))
        self.check()

    def next_job(self, rng: np.random.Generator) -> Job:
        return Update(self.folder)

    def read(self) -> None:
        number = check_updated(load_links(self.folder), self.trained)
        if number < self.number:
            raise Wrong(f"batch {self.number} was there, and now the last one is {number}")
        self.number = number

    def check(self) -> None:
        self.read()

    def finish(self) -> None:
        run_whole(Update(self.folder))
        before = self.number
        self.read()
        if self.number != before + 6:
            raise Wrong(f"six batches after batch {before} the last one is {self.number}")


def make_scenarios(place: Path, kinds: Iterable[str]) -> list[Scenario]:
    trained = train_both(place)
    return [SCENARIOS[kind](place / kind, trained) for kind in kinds]


def files_in(folder: Path) -> Files:
    found: Files = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name == "metrics.json":
            metrics = json.loads(path.read_text())
            varying = ("seconds", "peak_memory")
            found[name] = {key: metrics[key] for key in metrics if key not in varying}
        elif name == "history.jsonl":
            records = [json.loads(line) for line in path.read_text().splitlines()]
            found[name] = [{key: r[key] for key in r if key != "seconds"} for r in records]
        elif path.is_file() and name not in ("checkpoint.safetensors", ".pending"):
            found[name] = path.read_bytes()
    return found


def without_leftovers(files: Files) -> Files:
    """Without what a killed process was writing: no reader opens these names."""
    return {name: files[name] for name in files if not any(part in name for part in LEFT_BY_KILLS)}


def different(found: Files, expected: Files) -> list[str]:
    """The names of files that are not the same."""
    names = sorted(found.keys() | expected.keys())
    return [name for name in names if found.get(name) != expected.get(name)]


def compare(found: Files, expected: Files) -> None:
    names = different(found, expected)
    if names:
        shown = [f"{name}: {found.get(name)!r:.2000}" for name in names]
        shown += [f"instead of: {expected.get(name)!r:.2000}" for name in names]
        raise Wrong("not as in a job that was never killed:\n" + "\n".join(shown))


def check_nothing_left(folder: Path) -> None:
    beside = [path.name for path in folder.parent.iterdir() if path.name.startswith(".")]
    inside = [path.name for path in folder.rglob(".*")]
    if beside or inside:
        raise Wrong(f"a finished job left {', '.join([*beside, *inside])}")


def answers_of(folder: Path) -> list[Prediction]:
    return load(folder).predict(head="person 0", relation="lives in")


SCENARIOS: dict[str, Callable[[Path, Trained], Scenario]] = {
    "tokenizing": Tokenizing,
    "training": Training,
    "replacing": Replacing,
    "updating": Updating,
}
