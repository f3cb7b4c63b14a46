"""What each of two machines does for test_two_machines.py; a torchrun of its own starts it."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tests.tasks.couples import couples, experiment

from nodepiece.settings import Experiment
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.training.distribution import process_group

CPU = torch.device("cpu")
SAMPLED = {"num_negatives": 8, "steps_per_epoch": 10}

# One process and two have the same draws with each of these.
KINDS: dict[str, dict[str, Any]] = {
    "cross-entropy": {"loss": "cross-entropy", "smoothing": 0.1, "validate_every": 1},
    "some-targets": {"loss": "filtered-cross-entropy", "target_share": 0.5},
    "binary-cross-entropy": {"loss": "binary-cross-entropy", "regularization": 0.01},
    "own-negatives": {"loss": "self-adversarial", "margin": 3.0, "subsampling": True, **SAMPLED},
    "shared-negatives": {"loss": "softplus", "shared_negatives": True, **SAMPLED},
    "sampled-softmax": {"loss": "sampled-softmax", **SAMPLED},
}


def exact(kind: str) -> Experiment:
    """Without dropout, the one draw that differs between processes."""
    chosen = experiment(**{"epochs": 3, "batch_size": 8, **KINDS[kind]})
    return replace(
        chosen,
        encoder=replace(chosen.encoder, dropout=0.0),
        decoder=replace(chosen.decoder, query_dropout=0.0),
    )


def train_all(folder: Path) -> None:
    for kind in KINDS:
        run_experiment(LinkPrediction(exact(kind), couples()), RunOptions(folder / kind, CPU))


if __name__ == "__main__":
    torch.set_num_threads(1)
    with process_group(CPU):
        train_all(Path(sys.argv[1]))
