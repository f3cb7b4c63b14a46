"""Out-of-sample link prediction on the couples, and experiments for it."""

from dataclasses import replace
from typing import Any

from tests.tasks.couples import couples, experiment
from tests.tasks.training_changes import with_training

from nodepiece.data.out_of_sample import NamedTriple, OutOfSampleDataset, edges_of_unseen
from nodepiece.decoders.walks import WalkSettings
from nodepiece.settings import Experiment
from nodepiece.tasks.out_of_sample import OutOfSample
from nodepiece.training.settings import TrainingSettings

# Two newcomers in each part; both towns and one partner each are seen.
UNSEEN: dict[str, dict[str, tuple[NamedTriple, ...]]] = {
    "valid": {
        "v": (("v", "lives in", "town 0"), ("person 1", "married to", "v")),
        "w": (("w", "lives in", "town 1"), ("w", "married to", "person 4")),
    },
    "test": {
        "x": (
            ("x", "lives in", "town 2"),
            ("x", "lives in", "town 3"),
            ("person 7", "married to", "x"),
        ),
        "y": (("y", "married to", "person 8"), ("person 8", "married to", "y")),
    },
}


def settings(**changes: Any) -> Experiment:
    base = experiment(epochs=2)
    base = with_training(base, **changes.pop("training", {}))
    return replace(base, task="out-of-sample", **changes)


def lookup(**training: Any) -> Experiment:
    chosen = TrainingSettings(loss="softplus", epochs=2, batch_size=16)
    base = settings()
    encoder = replace(base.encoder, kind="lookup")
    sampled = {"margin": 0.0, "num_negatives": 1, "mask_share": 0.5}
    return with_training(replace(base, encoder=encoder, training=chosen), **(sampled | training))


def walking(**training: Any) -> Experiment:
    walks = WalkSettings(steps=2, plain_steps=3, vectors_alone=0.5)
    return settings(training={"mask_share": 0.3} | training, walks=walks)


def task(chosen: Experiment) -> OutOfSample:
    graph = couples().train
    dataset = OutOfSampleDataset("couples", graph, UNSEEN)
    unseen = {split: edges_of_unseen(dataset, split) for split in UNSEEN}
    return OutOfSample(chosen, "couples", graph, unseen)
