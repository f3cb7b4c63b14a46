"""Training with one process and with two that share its batch, compared.

    python -m benchmarks.processes -o results/processes-codex-s.json

Trains a small model on CoDEx-S with sampled negatives, on the CPU, under torchrun, for three seeds
each, and compares test MRR and loss curves.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.files import write_json
from nodepiece.settings import Experiment, to_toml
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.training.settings import SampledSettings, TrainingSettings

SEEDS = (0, 1, 2)
EXPERIMENT = Experiment(
    name="processes",
    dataset="codex-s",
    tokenizer=TokenizerSettings(num_anchors=100, anchors_per_node=10, relations_per_node=6),
    encoder=EncoderSettings(dim=64, hidden_dim=64, dropout=0.0),
    decoder=DecoderSettings("complex"),
    training=TrainingSettings(
        loss="self-adversarial", batch_size=256, learning_rate=0.003, epochs=8
    ),
    sampled=SampledSettings(
        margin=0.0, temperature=1.0, num_negatives=16, steps_per_epoch=150, subsampling=True
    ),
)


def train(num_processes: int, seed: int, place: Path) -> dict[str, Any]:
    """One run under torchrun; its metrics and the loss of every epoch."""
    source, folder = place / "experiment.toml", place / f"{num_processes}-{seed}"
    source.write_text(to_toml(EXPERIMENT), encoding="utf-8")
    words = ["-m", "torch.distributed.run", "--nproc-per-node", str(num_processes)]
    words += ["-m", "nodepiece", "train", str(source), "-o", str(folder), "--device", "cpu"]
    environment = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"} | os.environ
    command = [sys.executable, *words, "--set", f"seed={seed}"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    lines = (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return {
        "processes": metrics["processes"],
        "seed": seed,
        "mrr": metrics["mrr"],
        "losses": [json.loads(line)["loss"] for line in lines],
        "seconds": metrics["seconds"]["train"],
    }


def compare(runs: list[dict[str, Any]]) -> dict[str, float]:
    """The differences between the curves, and between seeds."""
    one, two = (
        np.array([run["losses"] for run in runs if run["processes"] == count]) for count in (1, 2)
    )
    apart = np.abs(two.mean(axis=0) / one.mean(axis=0) - 1)
    among_seeds = one.std(axis=0) / one.mean(axis=0)
    means = {
        f"mrr_of_{count}": float(np.mean([run["mrr"] for run in runs if run["processes"] == count]))
        for count in (1, 2)
    }
    return {
        **means,
        "largest_difference_of_mean_losses": float(apart.max()),
        "largest_deviation_among_seeds_of_one": float(among_seeds.max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="One process and two that share its batch.")
    parser.add_argument("-o", "--out", type=Path, help="a JSON file; printed as well")
    options = parser.parse_args()
    runs = []
    with tempfile.TemporaryDirectory() as place:
        for seed in SEEDS:
            for num_processes in (1, 2):
                runs.append(train(num_processes, seed, Path(place)))
                print(json.dumps(runs[-1]), flush=True)
    content = {"command": "python -m benchmarks.processes", **compare(runs), "runs": runs}
    print(json.dumps({key: value for key, value in content.items() if key != "runs"}, indent=1))
    if options.out is not None:
        write_json(options.out, content)


if __name__ == "__main__":
    main()
