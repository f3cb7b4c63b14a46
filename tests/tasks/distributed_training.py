"""What two processes do for test_processes.py; torchrun starts them."""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from tests.tasks.couples import couples, experiment

from nodepiece.cli import main
from nodepiece.decoders.link_model import LinkModel
from nodepiece.decoders.walks import WalkSettings
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.settings import Experiment
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary
from nodepiece.training.distribution import current_processes, process_group
from nodepiece.training.links import link_trainer

CPU = torch.device("cpu")


def sampled() -> Experiment:
    """Settings with sampled negatives, and enough epochs to average out randomness."""
    return experiment(
        loss="self-adversarial",
        epochs=8,
        steps_per_epoch=40,
        margin=3.0,
        num_negatives=8,
        learning_rate=0.005,
    )


def run(chosen: Experiment, folder: Path, **options: Any) -> dict[str, Any] | None:
    task = LinkPrediction(chosen, couples())
    return run_experiment(task, RunOptions(folder, CPU, **options))


class StopsAfter:
    """Asks for an end after so many epochs, in one process only."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def __call__(self) -> bool:
        self.epochs -= 1
        return current_processes().rank == 1 and self.epochs == 0


def train_distributed(folder: Path) -> None:
    run(sampled(), folder / "whole")
    assert run(sampled(), folder / "resumed", should_stop=StopsAfter(3)) is None
    run(sampled(), folder / "resumed", resume=True)
    run(experiment(validate_every=3), folder / "against all")
    run(experiment(task="relation-prediction"), folder / "relations")
    run(experiment(epochs=1), folder / "replaced")
    run(experiment(epochs=2), folder / "replaced", overwrite=True)
    facts, processes = np.arange(7, dtype=np.int32), current_processes()
    walks = WalkSettings(steps=2, separate_losses=True, choose_coefficient=True)
    chosen = run(replace(experiment(hide_targets=True), walks=walks), folder / "walks")
    weight = torch.tensor(chosen["coefficients"]["walks"] if chosen else np.nan)
    processes.broadcast([weight])
    assert chosen is not None and float(weight) == chosen["coefficients"]["walks"]
    mine = 10 * processes.part(facts).astype(np.float64)
    collected = processes.collect(mine, len(facts))
    assert collected.tolist() == [0, 10, 20, 30, 40, 50, 60]


# Losses that are means over answers, of which the processes have more or fewer.
MEANS: dict[str, dict[str, Any]] = {
    "answers": {"loss": "cross-entropy", "smoothing": 0.1},
    "facts": {"loss": "cross-entropy", "relation_weight": 0.5, "regularization": 0.1},
    "both": {"loss": "binary-cross-entropy", "relation_weight": 0.5, "regularization": 0.1},
}


def model_of_couples() -> LinkModel:
    """The same in every process, and without dropout."""
    task, rng = LinkPrediction(experiment(), couples()), np.random.default_rng(0)
    vocabulary = fit_vocabulary(task.graph, task.experiment.tokenizer, rng=rng)
    return task.build_model(tokenize(task.graph, vocabulary, rng=rng)).eval()


def average_gradients(folder: Path) -> None:
    """Write the batch of this process, and the gradients of all processes together."""
    processes, model = current_processes(), model_of_couples()
    edges = torch.tensor(with_inverses(couples().train))
    for name, settings in MEANS.items():
        chosen = experiment(**settings, batch_size=48)
        generator = torch.Generator().manual_seed(processes.rank)
        trainer = link_trainer(
            model, edges, chosen.training, one_vs_all=chosen.one_vs_all, generator=generator
        )
        trainer.batches.start_epoch(generator=generator)
        batch = trainer.batches.take(torch.tensor([0]))
        trainer.optimizer.zero_grad()
        trainer.loss(batch).backward()  # type: ignore[arg-type, no-untyped-call]
        trainer._average_gradients()
        content = {
            "heads": batch.heads,
            "relations": batch.relations,
            "answers": batch.answers,  # type: ignore[union-attr]
            "weight": batch.sample_weight,
            "gradients": [parameter.grad for parameter in model.parameters()],
        }
        torch.save(content, folder / f"{name} {processes.rank}.pt")


def train_by_command(folder: Path) -> None:
    words = ["nodepiece", "train", str(folder / "experiment.toml"), "-o", str(folder / "command")]
    with patch.object(sys, "argv", [*words, "--device", "cpu"]):
        try:
            main()
        except SystemExit as end:
            assert not end.code


def threads_of_gloo() -> list[str]:
    """The threads of gloo in this process, if the system lists them."""
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    return [name for name in names if "gloo" in name]


if __name__ == "__main__":
    torch.set_num_threads(1)
    with process_group(CPU) as joined:
        train_distributed(Path(sys.argv[1]))
        average_gradients(Path(sys.argv[1]))
        rank = joined.rank
    assert current_processes().count == 1 and not threads_of_gloo()
    time.sleep(rank)  # the other one is early, and would find old addresses
    train_by_command(Path(sys.argv[1]))
    assert not threads_of_gloo()
