"""What the processes do that are killed: tokenize, train, update."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from tests.tasks.couples import couples

from nodepiece.inference import graph_updates
from nodepiece.inference.run import load_links
from nodepiece.inference.update import update_run
from nodepiece.settings import Experiment
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.storage import save_tokens
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary


class Job(Protocol):
    def run(self) -> None: ...


@dataclass(frozen=True)
class Tokenize:
    """Another seed gives another vocabulary."""

    folder: Path
    seed: int

    def run(self) -> None:
        rng, graph = np.random.default_rng(self.seed), couples().train
        settings = TokenizerSettings(num_anchors=20, anchors_per_node=6, relations_per_node=2)
        vocabulary = fit_vocabulary(graph, settings, rng=rng)
        save_tokens(tokenize(graph, vocabulary, rng=rng), self.folder)


@dataclass(frozen=True)
class Train:
    folder: Path
    experiment: Experiment
    resume: bool = False
    overwrite: bool = False

    def run(self) -> None:
        options = RunOptions(
            self.folder, torch.device("cpu"), resume=self.resume, overwrite=self.overwrite
        )
        run_experiment(LinkPrediction(self.experiment, couples()), options)


@dataclass(frozen=True)
class Update:
    """Six batches: batch n adds "new n" and removes "new n - 1"; compacted after four."""

    folder: Path

    def run(self) -> None:
        graph_updates.COMPACT_AFTER = 4
        run = load_links(self.folder)
        last = 0 if run.updates is None else run.updates.state.number
        for number in range(last + 1, last + 7):
            gone = [f"new {number - 1}"] if number > 1 else []
            update_run(run, add=[(f"new {number}", "lives in", "town 1")], remove_nodes=gone)
