"""Two machines train to the digits of one process with the same global batch."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.tasks.exact_training import KINDS, train_all

# Sums of float32 in another order. Adam divides a gradient by its size, so a weight whose gradient
# is 0 but for rounding may differ by more; there is one such weight in thousands.
MEAN_DIFFERENCE, MAX_DIFFERENCE = 1e-6, 1e-3


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two processes, each under a torchrun of its own, as on two machines."""
    place = tmp_path_factory.mktemp("two-machines")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"]
    launcher += ["--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port", str(port)]
    machines = [
        subprocess.Popen(
            [*launcher, "--node-rank", str(rank), "-m", "tests.tasks.exact_training", str(place)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    output = [machine.communicate(timeout=600)[0] for machine in machines]
    assert [machine.returncode for machine in machines] == [0, 0], "".join(output)
    return place


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("one-machine")
    train_all(place)
    return place


@pytest.mark.parametrize("kind", KINDS)
def test_two_machines_train_to_the_weights_of_one_process(
    together: Path, alone: Path, kind: str
) -> None:
    both, one = (load_file(place / kind / "model.safetensors") for place in (together, alone))
    assert both.keys() == one.keys()
    difference = torch.cat([(both[name] - one[name]).abs().flatten() for name in one])
    assert difference.mean() < MEAN_DIFFERENCE and difference.max() < MAX_DIFFERENCE


@pytest.mark.parametrize("kind", KINDS)
def test_losses_and_ranks_of_two_machines_are_those_of_one_process(
    together: Path, alone: Path, kind: str
) -> None:
    both, one = (
        json.loads((place / kind / "metrics.json").read_text()) for place in (together, alone)
    )
    assert (both["processes"], one["processes"]) == (2, 1)
    assert both["mrr"] == pytest.approx(one["mrr"], rel=1e-6)
    histories = [
        [json.loads(line) for line in (place / kind / "history.jsonl").read_text().splitlines()]
        for place in (together, alone)
    ]
    losses, expected = ([row["loss"] for row in history] for history in histories)
    assert losses == pytest.approx(expected, rel=2e-6)


def test_validation_of_two_machines_is_that_of_one_process(together: Path, alone: Path) -> None:
    scores = []
    for place in (together, alone):
        lines = (place / "cross-entropy" / "history.jsonl").read_text().splitlines()
        scores.append([json.loads(line)["valid_mrr"] for line in lines])
    assert len(scores[0]) == 3
    assert scores[0] == pytest.approx(scores[1], rel=1e-6)
